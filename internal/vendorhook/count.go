package vendorhook

import (
	"slices"

	"github.com/belay-run/belay/internal/frontmatter"
)

// declared counts the hooks below a key of hooks, also in forms that Belay does not run.
func declared(v frontmatter.Value) int {
	if v.Kind != frontmatter.List {
		return 1
	}
	n := 0
	for _, group := range v.List {
		n += inGroup(group)
	}
	return n
}

// inGroup counts the hooks of an entry with a matcher.
func inGroup(v frontmatter.Value) int {
	i := slices.IndexFunc(v.Map, func(f frontmatter.Field) bool { return f.Key == "hooks" })
	switch {
	case v.Kind == frontmatter.Map && i < 0 && !isDirect(v): // a matcher without hooks
		return 0
	case i < 0 || v.Map[i].Value.Kind != frontmatter.List:
		return 1
	case isDirect(v):
		return len(v.Map[i].Value.List) + 1
	default:
		return len(v.Map[i].Value.List)
	}
}

// isDirect reports whether an entry is itself a hook, without a list of hooks.
func isDirect(v frontmatter.Value) bool { return hasKey(v, "command") || hasKey(v, "type") }
