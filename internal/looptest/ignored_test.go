package looptest_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
)

// A setting that a provider ignores in a request is a diagnostic of the turn, once for each
// message.
//
// SPEC L-12
func TestIgnoredSettingsAreDiagnostics(t *testing.T) {
	t.Parallel()
	first, second, third := responseOf(belay.CallPart{ID: "a", Tool: "echo"}), responseOf(belay.CallPart{ID: "b", Tool: "echo"}), doneResponse()
	first.Ignored, second.Ignored, third.Ignored = []string{"the thinking budget"}, []string{"the thinking budget", "the cache \xff"}, []string{"the thinking budget"}
	agent := agentOf(t, responding(first, second, third, doneResponse()), &belay.Options{Tools: []belay.Tool{echoTool("echo")}})
	for _, want := range [][]string{{"the model ignores a setting: the thinking budget", "the model ignores a setting: the cache \uFFFD"}, nil} {
		turn := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
		var got []string
		for _, d := range turn.Diagnostics {
			if d.Code == codes.SettingIgnored && d.Level == codes.LevelWarn {
				got = append(got, d.Message)
			}
		}
		wantEqual(t, "the diagnostics", got, want)
	}
}
