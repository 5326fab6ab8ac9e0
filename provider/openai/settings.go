package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

var _ belay.SettingsModel = (*Model)(nil)

// abilities returns the settings that the model supports in a request. An OpenAI model that
// thinks has no temperature, no top_p and no stop texts. The models of other servers are not
// known. For them, abilities returns everything in the protocol that is not only for OpenAI.
func (m *Model) abilities(req *belay.Request) wire.Abilities {
	a := wire.Abilities{
		MostTemperature: 2, TopP: true, MostStops: math.MaxInt, Efforts: []string{"none", "minimal", "low", "medium", "high", "xhigh"},
		Instead: map[string]string{"thinking": "set Effort instead"},
	}
	if m.settings.official {
		a.MostStops, a.Caches, a.Format = 4, []string{belay.CacheLong}, true
		if !m.reason() {
			a.Efforts = nil
		} else if m.effort(req) != "none" {
			a.MostTemperature, a.TopP, a.MostStops = 0, false, 0
			for _, name := range []string{"temperature", "top_p", "stop"} {
				a.Instead[name] = "remove it, or set Effort to none, because a model that thinks does not support it"
			}
		}
	}
	if _, ok := m.protocol.(responsesProtocol); ok {
		a.MostStops = 0
		a.Instead["stop"] = "the Responses API has no stop texts: set Options.API to openai.Chat"
	}
	return a
}

// effort returns Settings.Effort of the request, or else Options.Effort.
func (m *Model) effort(req *belay.Request) string {
	if req.Settings.Effort != "" {
		return req.Settings.Effort
	}
	return m.settings.effort
}

// CheckSettings returns an error that lists the settings that the model does not support. A
// request with such a setting fails with the same error before it is sent.
func (m *Model) CheckSettings(req *belay.Request) error {
	a := m.abilities(req)
	if err := a.Check(req); err != nil {
		return m.failures.New(belay.ModelInvalid, err)
	}
	return nil
}

// choose adds the settings that both protocols have.
func (h *heading) choose(fields *object) {
	if v := h.chosen.Temperature; v != nil {
		fields.set("temperature", float(*v))
	}
	if v := h.chosen.TopP; v != nil {
		fields.set("top_p", float(*v))
	}
	if h.chosen.Cache == belay.CacheLong {
		fields.set("prompt_cache_retention", quoted("24h"))
	}
	switch h.chosen.ToolChoice {
	case "":
	case belay.ToolChoiceNone:
		fields.set("tool_choice", quoted("none"))
	case belay.ToolChoiceRequired:
		fields.set("tool_choice", quoted("required"))
	default:
		name := object{{"name", quoted(wireName(h.chosen.ToolChoice))}}
		if h.chat {
			fields.set("tool_choice", object{{"type", quoted("function")}, {"function", name.append(nil)}}.append(nil))
		} else {
			fields.set("tool_choice", append(object{{"type", quoted("function")}}, name...).append(nil))
		}
	}
}

// format returns the fields that describe the schema of the response.
func (h *heading) format() object {
	return object{{"name", quoted("answer")}, {"schema", h.chosen.Format}, {"strict", truth(isStrict(h.chosen.Format))}}
}

func truth(b bool) json.RawMessage {
	if b {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

func float(f float64) json.RawMessage {
	data, err := json.Marshal(f)
	if err != nil {
		return json.RawMessage("0") // cannot happen: CheckSettings has checked the value
	}
	return data
}

// strictKeywords are the schema keywords that strict mode supports.
var strictKeywords = map[string]bool{
	"type": true, "properties": true, "required": true, "additionalProperties": true, "items": true, "enum": true, "const": true, "description": true, "title": true,
	"anyOf": true, "$ref": true, "$defs": true, "minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "pattern": true,
	"minItems": true, "maxItems": true,
}

// isStrict reports whether strict mode supports a schema. Strict mode requires that all
// properties of all objects are required and that additionalProperties is false.
func isStrict(schema json.RawMessage) bool {
	var keywords map[string]json.RawMessage
	if json.Unmarshal(schema, &keywords) != nil {
		return false
	}
	var properties, defs map[string]json.RawMessage
	var required []string
	for name, value := range keywords {
		ok := strictKeywords[name]
		switch name {
		case "properties":
			ok = json.Unmarshal(value, &properties) == nil
		case "required":
			ok = json.Unmarshal(value, &required) == nil
		case "$defs":
			ok = json.Unmarshal(value, &defs) == nil
		case "items":
			ok = isStrict(value)
		case "additionalProperties":
			ok = string(bytes.TrimSpace(value)) == "false"
		case "anyOf":
			var list []json.RawMessage
			ok = json.Unmarshal(value, &list) == nil
			for _, s := range list {
				ok = ok && isStrict(s)
			}
		}
		if !ok {
			return false
		}
	}
	for _, inner := range []map[string]json.RawMessage{properties, defs} {
		for _, s := range inner {
			if !isStrict(s) {
				return false
			}
		}
	}
	isObject := bytes.Contains(keywords["type"], []byte(`"object"`))
	return len(required) == len(properties) && (!isObject || keywords["additionalProperties"] != nil)
}

// addExtra adds the fields of Options.Extra and of Settings.Extra.
func (h *heading) addExtra(out []byte) ([]byte, error) {
	if len(h.extra) > 0 {
		options := append(append([]byte("{"), h.extra...), '}')
		var err error
		if _, err = wire.AddExtra(bytes.Clone(out), options); err != nil {
			return nil, fmt.Errorf("Options.Extra: %w", err)
		}
		out = append(append(out, ','), h.extra...)
	}
	out, err := wire.AddExtra(out, h.chosen.Extra, "stream", "input", "messages")
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return out, nil
}
