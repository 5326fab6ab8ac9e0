package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/belay-run/belay"
)

// setting is a setting of a request, and where protocols put it.
type setting struct {
	name string
	set  func(s *belay.Settings)
	// sent are pairs of a path in the body and the JSON value there. If the request is sent,
	// one of the pairs must be in its body.
	sent [][2]string
}

// answerSchema is a format that every service supports.
const answerSchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`

// allSettings are all settings. A provider must either send a setting or refuse it.
var allSettings = []setting{
	{"temperature", func(s *belay.Settings) { s.Temperature = new(0.0) }, [][2]string{{"temperature", "0"}, {"generationConfig.temperature", "0"}}},
	{"temperature", func(s *belay.Settings) { s.Temperature = new(0.5) }, [][2]string{{"temperature", "0.5"}, {"generationConfig.temperature", "0.5"}}},
	{"top_p", func(s *belay.Settings) { s.TopP = new(0.5) }, [][2]string{{"top_p", "0.5"}, {"generationConfig.topP", "0.5"}}},
	{"stop", func(s *belay.Settings) { s.Stop = []string{"END", "STOP"} }, [][2]string{
		{"stop", `["END","STOP"]`}, {"stop_sequences", `["END","STOP"]`}, {"generationConfig.stopSequences", `["END","STOP"]`},
	}},
	{"tool_choice", func(s *belay.Settings) { s.ToolChoice = belay.ToolChoiceNone }, [][2]string{
		{"tool_choice", `"none"`}, {"tool_choice", `{"type":"none"}`}, {"toolConfig.functionCallingConfig", `{"mode":"NONE"}`},
	}},
	{"tool_choice", func(s *belay.Settings) { s.ToolChoice = belay.ToolChoiceRequired }, [][2]string{
		{"tool_choice", `"required"`}, {"tool_choice", `{"type":"any"}`}, {"toolConfig.functionCallingConfig", `{"mode":"ANY"}`},
	}},
	{"tool_choice", func(s *belay.Settings) { s.ToolChoice = "look" }, [][2]string{
		{"tool_choice", `{"type":"function","name":"look"}`},
		{"tool_choice", `{"type":"function","function":{"name":"look"}}`},
		{"tool_choice", `{"type":"tool","name":"look"}`},
		{"toolConfig.functionCallingConfig", `{"mode":"ANY","allowedFunctionNames":["look"]}`},
	}},
	{"effort", func(s *belay.Settings) { s.Effort = "low" }, [][2]string{
		{"reasoning.effort", `"low"`}, {"reasoning_effort", `"low"`}, {"generationConfig.thinkingConfig.thinkingLevel", `"LOW"`}, {"output_config.effort", `"low"`},
	}},
	{"thinking", func(s *belay.Settings) { s.Thinking = 2048 }, [][2]string{{"thinking.budget_tokens", "2048"}, {"generationConfig.thinkingConfig.thinkingBudget", "2048"}}},
	{"cache", func(s *belay.Settings) { s.Cache = belay.CacheLong }, [][2]string{{"prompt_cache_retention", `"24h"`}, {"system.0.cache_control.ttl", `"1h"`}}},
	{"cache", func(s *belay.Settings) { s.Cache = belay.CacheOff }, [][2]string{{"system.0.cache_control", ""}}},
	{"format", func(s *belay.Settings) { s.Format = json.RawMessage(answerSchema) }, [][2]string{
		{"text.format.schema", answerSchema}, {"response_format.json_schema.schema", answerSchema}, {"generationConfig.responseJsonSchema", answerSchema},
	}},
}

// extras are fields for Settings.Extra. Each protocol knows one of them.
var extras = []string{"metadata", "safetySettings"}

// impossible are settings that every provider must refuse.
var impossible = []setting{
	{name: "temperature", set: func(s *belay.Settings) { s.Temperature = new(-1.0) }},
	{name: "temperature", set: func(s *belay.Settings) { s.Temperature = new(99.0) }},
	{name: "top_p", set: func(s *belay.Settings) { s.TopP = new(1.5) }},
	{name: "stop", set: func(s *belay.Settings) { s.Stop = []string{" "} }},
	{name: "tool_choice", set: func(s *belay.Settings) { s.ToolChoice = "nothing" }},
	{name: "effort", set: func(s *belay.Settings) { s.Effort = "much" }},
	{name: "thinking", set: func(s *belay.Settings) { s.Thinking = 1 }},
	{name: "cache", set: func(s *belay.Settings) { s.Cache = "forever" }},
	{name: "extra", set: func(s *belay.Settings) { s.Extra = json.RawMessage(`[]`) }},
	{name: "extra", set: func(s *belay.Settings) { s.Extra = json.RawMessage(`{"tools":[]}`) }},
}

// settingRules check the settings of requests.
var settingRules = []rule{
	{"a setting is sent as the protocol has it, or refused before anything is sent", func(s *scene) {
		sent := 0
		for _, setting := range allSettings {
			s.talk.Messages, s.talk.Settings = nil, belay.Settings{}
			s.user("hello")
			setting.set(&s.talk.Settings)
			if s.refuses(setting) {
				continue
			}
			sent++
			var body any
			if err := json.Unmarshal(s.last().Body, &body); err != nil {
				s.Fatalf("the body: %v", err)
			}
			found := false
			for _, want := range setting.sent {
				found = found || sameAs(at(body, want[0]), want[1])
			}
			if !found {
				s.Errorf("setting %s is neither refused nor sent: %.2000s", setting.name, s.last().Body)
			}
		}
		if sent == 0 {
			s.Errorf("every setting is refused")
		}
	}},
	{"a setting that no service accepts is refused before anything is sent", func(s *scene) {
		for _, setting := range impossible {
			s.talk.Messages, s.talk.Settings = nil, belay.Settings{}
			s.user("hello")
			setting.set(&s.talk.Settings)
			if !s.refuses(setting) {
				s.Errorf("%+v is sent: %.2000s", s.talk.Settings, s.last().Body)
			}
		}
	}},
	{"extra fields are added to the request", func(s *scene) {
		s.user("hello")
		sent := false
		for _, name := range extras {
			s.talk.Settings.Extra = json.RawMessage(`{"` + name + `":[]}`)
			s.script(Reply{Parts: []Part{Text("Good morning!")}})
			o := s.ask(s.Context())
			requests := s.server.Requests()
			if len(requests) == 0 {
				s.Fatalf("nothing was sent: %v", o.err)
			}
			var body map[string]json.RawMessage
			if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil {
				s.Fatalf("the body: %v", err)
			}
			if string(body[name]) != "[]" {
				s.Errorf("the field %s is not in the request: %.2000s", name, requests[len(requests)-1].Body)
			}
			sent = sent || o.err == nil // the service rejects a field of another protocol
		}
		if !sent {
			s.Errorf("the service accepts none of the fields")
		}
	}},
	{"requests with different settings do not share what is kept", func(s *scene) {
		s.user("hello")
		s.script(Reply{Parts: []Part{Text("Good morning!")}}, Reply{Parts: []Part{Text("Good morning!")}})
		for _, choice := range []string{belay.ToolChoiceNone, ""} {
			s.talk.Settings.ToolChoice = choice
			if o := s.ask(s.Context()); o.err != nil {
				s.Fatalf("the request failed: %v", o.err)
			}
		}
		requests := s.server.Requests()
		if bytes.Equal(requests[0].Body, requests[1].Body) {
			s.Errorf("the second request has the settings of the first: %.2000s", requests[1].Body)
		}
	}},
}

// refuses sends a request. It reports whether the model refused the request and sent
// nothing. The error must name the setting.
func (s *scene) refuses(setting setting) bool {
	s.Helper()
	before := len(s.server.Requests())
	s.script(Reply{Parts: []Part{Text("Good morning!")}})
	o := s.ask(s.Context())
	if len(s.server.Requests()) > before {
		if o.err != nil {
			s.Errorf("setting %s: the service refused what was sent: %v", setting.name, o.err)
		}
		return false
	}
	failure, ok := errors.AsType[*belay.ModelError](o.err)
	if !ok || failure.Kind != belay.ModelInvalid || failure.Model == "" || !strings.Contains(failure.Error(), "setting "+setting.name+": ") {
		s.Errorf("setting %s: want an error of kind invalid that names the setting, got %v", setting.name, o.err)
	}
	if c, ok := s.model.(belay.SettingsModel); ok && setting.name != "extra" && c.CheckSettings(&s.talk) == nil {
		s.Errorf("setting %s: it is refused, and CheckSettings does not say so", setting.name)
	}
	return true
}

// at returns the value at a path, or nil.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			if name != "0" || len(v) == 0 {
				return nil
			}
			value = v[0]
		default:
			return nil
		}
	}
	return value
}

// sameAs reports whether a value equals the value in a JSON text. An empty text means no
// value.
func sameAs(value any, text string) bool {
	if text == "" {
		return value == nil
	}
	var want any
	return value != nil && json.Unmarshal([]byte(text), &want) == nil && reflect.DeepEqual(value, want)
}
