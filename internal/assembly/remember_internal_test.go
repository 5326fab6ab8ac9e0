package assembly

import (
	"testing"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
)

func TestModeOfAResumedTurn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule            string
		had, hadFrom    string
		environ, flag   string
		auto, ask       permit.Zone
		name            string
		rememberNothing bool
	}{
		{rule: "the default does not loosen", had: "read-only", hadFrom: "flag", auto: 0, ask: 0, name: "read-only"},
		{rule: "a variable does not loosen", had: "read-only", hadFrom: "user", environ: "permissive", auto: 0, ask: 0, name: "read-only"},
		{rule: "a flag loosens", had: "read-only", hadFrom: "flag", flag: "standard", auto: 1, ask: 5, name: "standard"},
		{rule: "a flag tightens", had: "standard", hadFrom: "default", flag: "strict", auto: 0, ask: 5, name: "strict"},
		{rule: "what a flag gave the turn stays", had: "build", hadFrom: "flag", auto: 2, ask: 5, name: "build"},
		{rule: "what a flag gave the turn stays, whatever is set", had: "build", hadFrom: "flag", environ: "strict", auto: 2, ask: 5, name: "build"},
		{rule: "what was tightened meanwhile is tighter", had: "standard", hadFrom: "default", environ: "read-only", auto: 0, ask: 0, name: "read-only"},
		{rule: "of two modes the tighter half of each", had: "strict", hadFrom: "user", environ: "unattended", auto: 0, ask: 2, name: "strict and unattended"},
		{rule: "a turn that nobody remembers", rememberNothing: true, environ: "build", auto: 2, ask: 5, name: "build"},
		{rule: "a mode that is unknown today", had: "lax", hadFrom: "flag", auto: 1, ask: 5, name: "standard"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			o := &config.Options{Dir: t.TempDir(), UserDir: t.TempDir(), Environ: []string{"BELAY_MODE=" + test.environ}}
			settings, err := config.Load(o)
			if err != nil {
				t.Fatal(err)
			}
			if test.flag != "" {
				if err := settings.Override("mode", "mode", test.flag); err != nil {
					t.Fatal(err)
				}
			}
			var had policy.Settings
			if !test.rememberNothing {
				had = policy.Settings{TurnMode.Set(test.had), turnModeFrom.Set(test.hadFrom)}
			}
			got := modeOfTurn(settings, had)
			if got.Name != test.name || got.Auto != test.auto || got.Ask != test.ask {
				t.Errorf("the mode is %q %d/%d, want %q %d/%d", got.Name, got.Auto, got.Ask, test.name, test.auto, test.ask)
			}
		})
	}
}
