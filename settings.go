package belay

import (
	"encoding/json"
	"fmt"
)

// Settings are settings of a request that several providers support. If a field is not
// set, the provider decides. If the model does not support a value, the request is not
// sent and fails with an error of kind [ModelInvalid]. If the model is a [SettingsModel],
// [New] already returns the error.
type Settings struct {
	// Temperature and TopP control how random the model's words are. To set zero, write
	// new(0.0). Nil means that the provider decides.
	Temperature, TopP *float64
	// Stop are texts. The response ends when the model writes one of them.
	Stop []string
	// ToolChoice is [ToolChoiceNone], [ToolChoiceRequired] or the name of a tool that the
	// model must call. An agent requires a call only in the first request of a turn, so
	// that the model can give its final answer later.
	ToolChoice string
	// Effort says how much the model thinks, such as low, medium or high. The provider
	// defines the words.
	Effort string
	// Thinking is the maximum number of tokens for thinking in a response.
	Thinking int
	// Cache is [CacheOff] or [CacheLong].
	Cache string
	// Format is the JSON Schema of the response. The model then writes JSON and no other
	// text. Use [Answer] instead: it sets Format if the model supports it.
	Format json.RawMessage
	// Extra is a JSON object whose fields are added to the request, for features of a
	// provider that have no setting here. The request fails if Extra has a field that Belay
	// sets itself.
	Extra json.RawMessage
}

// Values of [Settings].ToolChoice. These are not valid names of tools.
const (
	ToolChoiceNone     = "(none)"     // the model must not call a tool
	ToolChoiceRequired = "(required)" // the model must call one of the tools
)

// Values of [Settings].Cache.
const (
	CacheOff  = "off"  // the provider caches nothing
	CacheLong = "long" // the provider caches the request for a longer time, at a higher price
)

// SettingsModel is a Model that can check in advance whether it supports the settings of a
// request. [New] and [Answer] call CheckSettings.
type SettingsModel interface {
	Model
	// CheckSettings returns an error that names the settings that the model does not
	// support and says what to do. It does not look at the messages.
	CheckSettings(req *Request) error
}

// checkSettings lets the model check a request. A model without CheckSettings accepts
// everything except Format.
func (n *namedModel) checkSettings(req *Request) error {
	if c, ok := n.first().(SettingsModel); ok {
		return c.CheckSettings(req)
	}
	if len(req.Settings.Format) > 0 {
		return fmt.Errorf("model %s: setting format: the model cannot check whether it supports this setting: use belay.Answer instead", n.info.Name)
	}
	return nil
}

// checkSettings lets a model check the agent's settings. It leaves out ToolChoice, because
// the tools may still change: ToolChoice is checked with each request.
func (a *Agent) checkSettings(model Model) error {
	c, ok := model.(SettingsModel)
	if !ok {
		return nil
	}
	s := a.opts.Settings
	s.ToolChoice = ""
	if err := c.CheckSettings(&Request{MaxTokens: a.opts.MaxTokens, Settings: s}); err != nil {
		return fmt.Errorf("options: settings: %w", err)
	}
	return nil
}

// first returns the first model of a Fallback, or the model itself.
func (n *namedModel) first() Model { //nolint:ireturn // a model is used through the interface
	if f, ok := n.Model.(*fallbackModel); ok {
		return f.models[0]
	}
	return n.Model
}

// settings returns the settings of the next request of the turn.
func (t *turn) settings() Settings {
	s := t.agent.opts.Settings
	if t.scope.Step > 1 && s.ToolChoice != ToolChoiceNone {
		s.ToolChoice = "" // otherwise the model could never give its final answer
	}
	return s
}

// summarySettings returns the settings of a request for a summary.
func (a *Agent) summarySettings() Settings {
	s := a.opts.Settings
	s.Stop, s.ToolChoice, s.Format = nil, "", nil
	return s
}
