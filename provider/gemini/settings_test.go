package gemini_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
)

// SPEC L-12: CheckSettings returns an error for each setting that the model does not
// support.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][]string{
		"gemini-3-flash-preview": {"cache long", "cache off", "thinking 500"},
		"gemini-2.5-flash":       {"cache long", "cache off", "effort low", "format", "thinking 500"},
	} {
		if diff := cmp.Diff(want, refused(gemini.New(model, &gemini.Options{Key: "test-key"}), look)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", model, diff)
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
