package openai_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// SPEC L-12: CheckSettings returns an error for each setting that the model does not
// support.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	budget := []string{"thinking 2048", "thinking 500"}
	for rule, test := range map[string]struct {
		model   string
		options openai.Options
		want    []string
	}{
		"a model that thinks":     {"gpt-5.2", openai.Options{}, append([]string{"cache off", "stop", "temperature"}, append(budget, "top_p")...)},
		"one that is told not to": {"gpt-5.2", openai.Options{Effort: "none", API: openai.Chat}, append([]string{"cache off", "effort low"}, budget...)},
		"a model that does not":   {"gpt-4.1", openai.Options{}, append([]string{"cache off", "effort low", "stop"}, budget...)},
		"Chat":                    {"gpt-4.1", openai.Options{API: openai.Chat}, append([]string{"cache off", "effort low"}, budget...)},
		"another service":         {"m", openai.Options{URL: "http://127.0.0.1:1/v1"}, append([]string{"cache long", "cache off", "format"}, budget...)},
	} {
		test.options.Key = "test-key"
		got := refused(openai.New(test.model, &test.options), look)
		if rule == "one that is told not to" { // effort low overrides effort none
			test.want = slices.DeleteFunc(test.want, func(s string) bool { return s == "effort low" })
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

// It is an error if Options.Extra and a setting set the same field. Strict mode is used
// if it supports the schema.
//
// SPEC L-12
func TestSettingsOfOpenAI(t *testing.T) {
	t.Parallel()
	server := providertest.StartResponses(t)
	m := openai.New("gpt-4.1", &openai.Options{URL: server.URL(), Key: server.Key(), API: openai.Responses, Provider: "openai", Extra: json.RawMessage(`{"temperature":0.2}`)})
	ask := func(s belay.Settings) error {
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("hello")}})
		for _, err := range m.Stream(t.Context(), &belay.Request{Settings: s, Messages: []*belay.Message{{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("a")}}}}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := ask(belay.Settings{Temperature: new(0.5)}); err == nil || len(server.Requests()) != 0 {
		t.Errorf("the temperature is set twice: %v", err)
	}
	for schema, strict := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:               true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                            false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":2}},"required":["a"],"additionalProperties":false}`: false,
	} {
		if err := ask(belay.Settings{Format: json.RawMessage(schema)}); err != nil {
			t.Fatal(err)
		}
		requests := server.Requests()
		var body struct {
			Temperature float64 `json:"temperature"`
			Text        struct {
				Format struct {
					Strict bool `json:"strict"`
				} `json:"format"`
			} `json:"text"`
		}
		if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil || body.Text.Format.Strict != strict || body.Temperature != 0.2 {
			t.Errorf("%s: sent %+v, %v", schema, body, err)
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
