package toolbox

import "github.com/belay-run/belay/internal/diff"

const maxDiff = 64 << 10 // maximum length of a diff in bytes

// changeView returns the render data of a change.
func changeView(name, action, before, after string) ChangeView {
	v := ChangeView{Kind: "change", Path: name, Action: action}
	from := inText("a/" + name)
	if action == "created" {
		from = ""
	}
	v.Diff, v.Added, v.Removed = diff.Unified(from, inText("b/"+name), before, after)
	if len(v.Diff) > maxDiff {
		v.Diff, v.Cut = string(cutEnd([]byte(v.Diff), maxDiff)), true
	}
	return v
}
