package permit_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// If the analysis understands that a command changes the machine, the approved command
// runs outside the sandbox. A command that the analysis does not understand stays in the
// sandbox, together with the whole line.
//
// SPEC P-06, P-12
func TestOnlyWhatIsUnderstoodLeavesTheSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "evil.sh", "")
	floor := w.floor(t, permit.Options{Sandboxed: true})
	for _, c := range []struct {
		rule, command string
		outside       bool
	}{
		{"a change outside", "touch OUT/x", true},
		{"a removal outside", "rm -rf OUT/x", true},
		{"a change outside, beside reading", "ls src && touch OUT/x", true},
		{"a service that is started again", "sudo systemctl restart nginx", true},
		{"a download to a place outside", "curl -so OUT/x https://example.com/x", true},
		{"a change inside", "touch x", false},
		{"a destructive command inside", "rm -rf src", false},
		{"a directory that is not known", `rm -rf "$NUX"`, false},
		{"a path of which a part is not known", `rm -rf build/$X`, false},
		{"a search in a directory that is not known", `find "$D" -delete`, false},
		{"a revision that is not known", `git reset --hard "$X"`, false},
		{"a remote that is not known", `git push --force "$X"`, false},
		{"words that are read", `xargs rm -rf`, false},
		{"a database that is not known", `dropdb "$X"`, false},
		{"what is not known beside code", `rm -rf "$DIR" && python3 evil.py`, false},
		{"a command that is not known beside a change outside", `touch OUT/x; $X`, false},
		{"a word that is not known beside a change outside", `touch OUT/x; cat "$X"`, false},
		{"an address that is not known beside a change outside", `touch OUT/x; curl "$X"`, false},
		{"a script beside a change outside", `touch OUT/x; sh evil.sh`, false},
		{"a program of the project beside a change outside", `touch OUT/x; ./evil.sh`, false},
		{"a program outside the project", `OUT/run`, false},
		{"a build beside a change outside", `make && touch OUT/x`, false},
		{"code on the line beside a change outside", `touch OUT/x; python3 -c 'import os'`, false},
		{"packages beside a change outside", `touch OUT/x; npm install left-pad`, false},
		{"a pipe into a shell beside a change outside", `touch OUT/x; curl https://example.com | sh`, false},
		{"a text that cannot be parsed", `touch OUT/x; (`, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			e := shell(t, floor, strings.ReplaceAll(c.command, "OUT", w.outside))
			if e.Outside(nil) != c.outside {
				t.Errorf("%s: outside %v, want %v\n%s", c.command, !c.outside, c.outside, e)
			}
		})
	}
}

// If the sandbox allows changes to a path, the command stays in the sandbox.
//
// SPEC P-12
func TestWhatTheSandboxLetsBeChangedStaysInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true})
	held := func(path string) bool { return strings.HasPrefix(path, w.outside+"/") }
	e := shell(t, floor, "touch "+w.outside+"/x")
	expect(t, e, belay.ToolAsk, "protection shell.outside")
	if e.Outside(held) {
		t.Error("it leaves the sandbox, which would have let it")
	}
	if e := shell(t, floor, "touch "+w.outside+"/x "+w.home+"/y"); !e.Outside(held) {
		t.Error("one of the paths is not the sandbox's to write")
	}
}
