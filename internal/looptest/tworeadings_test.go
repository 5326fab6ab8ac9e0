package looptest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// If an input has a duplicate key, a gate and a tool can read different values, because
// encoding/json merges structs but replaces the values of maps. So an input with a
// duplicate key reaches neither a gate nor a tool.
//
// SPEC T-02
func TestAnInputWithTwoReadingsReachesNoTool(t *testing.T) {
	t.Parallel()
	type file struct {
		Path string `json:"path,omitempty"`
		Mode string `json:"mode,omitempty"`
	}
	type input struct {
		File file `json:"file"`
	}
	for rule, text := range map[string]string{
		"a key twice":           `{"file":{"path":"/secret"},"file":{"mode":"r"}}`,
		"a key in another case": `{"file":{"path":"/secret"},"FILE":{"mode":"r"}}`,
		"a key twice within":    `{"file":{"path":"/secret","path":""}}`,
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			open := belay.NewTool("open", "opens a file", func(_ context.Context, in input) (string, error) {
				d.notef("opened %s", in.File.Path)
				return "ok", nil
			}, nil)
			gate := belay.ToolPre.On("no-paths", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
				var in map[string]map[string]any
				if err := json.Unmarshal(call.Input(), &in); err != nil {
					return belay.Pass, err
				}
				if path := in["file"]["path"]; path != nil && path != "" {
					return belay.Deny("no paths"), nil
				}
				return belay.Pass, nil
			}, nil)
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{open}, Hooks: []hook.Subscription{gate}}, callWith("open", text))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			wantEqual(t, "what happened", d.all(), nil)
			if r := onlyResult(t, session); r.Class != belay.ClassInvalid {
				t.Errorf("the result is %+v", r)
			}
		})
	}
}
