package visible_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/visible"
)

// SPEC C-13
func TestFailure(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("line\n", 50)
	for _, test := range []struct{ rule, happened, said, want string }{
		{"a line that the hook said stands behind what happened", "exit code 1", "no config\n", "hook lint failed at tool.post: exit code 1: no config"},
		{"several lines stand below", "exit code 1", "no config\nsee setup.md\n", "hook lint failed at tool.post: exit code 1\nno config\nsee setup.md"},
		{"what happened alone", "it took longer than 5s", "", "hook lint failed at tool.post: it took longer than 5s"},
		{"what the hook said alone", "", "no route\nto host", "hook lint failed at tool.post: no route\nto host"},
		{"neither is known", "", "", "hook lint failed at tool.post"},
		{"what a terminal would take for a command is left out", "exit code 1", "\x1b[2Jgone", "hook lint failed at tool.post: exit code 1: gone"},
		{"the end of many lines", "exit code 1", many, "hook lint failed at tool.post: exit code 1\n…\n" + strings.TrimSpace(strings.Repeat("line\n", 40))},
	} {
		if got := visible.HookFailure("lint", "tool.post", test.happened, test.said); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
}
