package anthropic_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
)

// SPEC L-12: CheckSettings returns an error for each setting that the model does not
// support.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		options anthropic.Options
		want    []string
	}{
		"by default":          {anthropic.Options{}, []string{"effort low", "format", "thinking 500"}},
		"a model that thinks": {anthropic.Options{Thinking: 4096}, []string{"effort low", "format", "temperature", "thinking 500", "tool_choice", "top_p"}},
	} {
		test.options.Key = "test-key"
		if diff := cmp.Diff(test.want, refused(anthropic.New("claude-sonnet-4-5", &test.options), look)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

// If the service does not accept a budget, the model returns an error. It does not drop
// the budget silently.
//
// SPEC L-12
func TestABudgetThatIsTooSmallIsAnError(t *testing.T) {
	t.Parallel()
	m := anthropic.New("claude-sonnet-4-5", &anthropic.Options{Key: "test-key", Thinking: 500})
	for _, err := range m.Stream(t.Context(), &belay.Request{}) {
		if err == nil || !strings.Contains(err.Error(), "Options.Thinking: 500") {
			t.Errorf("the error is %v", err)
		}
	}
}

// refused returns the names of the settings that a model refuses.
func refused(m belay.SettingsModel, tools ...belay.ToolDeclaration) []string {
	all := map[string]belay.Settings{
		"temperature": {Temperature: new(0.0)}, "top_p": {TopP: new(0.5)}, "stop": {Stop: []string{"END"}}, "effort low": {Effort: "low"}, "thinking 500": {Thinking: 500},
		"thinking 2048": {Thinking: 2048}, "cache off": {Cache: belay.CacheOff}, "cache long": {Cache: belay.CacheLong}, "format": {Format: json.RawMessage(`{"type":"object"}`)},
		"tool_choice": {ToolChoice: "look"},
	}
	var names []string
	for name, s := range all {
		if m.CheckSettings(&belay.Request{Tools: tools, Settings: s}) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var look = belay.ToolDeclaration{Name: "look"}
