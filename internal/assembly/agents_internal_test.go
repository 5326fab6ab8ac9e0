package assembly

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/subagent"
)

// No caller can make an agent without the hooks in its file, because one of them may be a
// gate.
func TestNoAgentIsMadeWithoutItsHooks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"name: a\nhooks:\n  - {id: x, phase: tool.pre, action: deny}\n": `elsewhere/a.yaml:3: hooks: 1 hook of agent "a" would not run`,
		"name: a\nhooks: []\n": "",
		"name: a\n":            "",
	} {
		d, problems := subagent.Parse("elsewhere/a.yaml", []byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, places := range []*Places{nil, {}} {
			own, err := (&declaredAgents{places: places}).ownHooks(d)
			switch {
			case len(own) > 0:
				t.Errorf("%q has %v", text, own)
			case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
				t.Errorf("%q: the error is %v, want %q", text, err, want)
			}
		}
	}
}
