package belay

import (
	"encoding/json"
	"fmt"
)

// Settings are the settings of a request that providers have in common. A field that is not set
// leaves the choice to the provider. A value that a model cannot use is never ignored: the
// request fails with an error of kind [ModelInvalid] before it is sent, and if the model is a
// [SettingsModel], [New] refuses it.
type Settings struct {
	// Temperature and TopP control how much the model varies its words. Zero is a value:
	// write new(0.0).
	Temperature, TopP *float64
	// Stop are texts that end the response when the model writes one of them.
	Stop []string
	// ToolChoice is [ToolChoiceNone], [ToolChoiceRequired] or the name of a tool that the model
	// must call. An agent requires a call in the first request of a turn only, because the model
	// could never answer otherwise.
	ToolChoice string
	// Effort is how much the model thinks, in the words of the provider, such as low, medium or
	// high.
	Effort string
	// Thinking is how many tokens of the response may be thinking.
	Thinking int
	// Cache is [CacheOff] or [CacheLong].
	Cache string
	// Format is the JSON schema of the response: the model writes JSON and no other text. Use
	// [Answer] instead, which sets it where the model can do it.
	Format json.RawMessage
	// Extra is a JSON object whose fields are added to the request of the provider, for
	// features that have no setting here. A field that Belay sets in this request is refused.
	Extra json.RawMessage
}

// Values of [Settings].ToolChoice. No tool can have such a name.
const (
	ToolChoiceNone     = "(none)"     // the model must not call a tool
	ToolChoiceRequired = "(required)" // the model must call one of the tools
)

// Values of [Settings].Cache.
const (
	CacheOff  = "off"  // the provider caches nothing
	CacheLong = "long" // the provider keeps the request for its longer time, at a higher price
)

// SettingsModel is a Model that can check a request in advance: whether it can use the settings.
// It is asked when an agent is made, and by [Answer] before it sets a format.
type SettingsModel interface {
	Model
	// CheckSettings returns an error that names the settings which the model cannot use, and
	// says what to do. It does not look at the messages.
	CheckSettings(req *Request) error
}

// checkSettings lets the model check a request. A model that cannot check accepts everything
// but a format.
func (n *namedModel) checkSettings(req *Request) error {
	if c, ok := n.first().(SettingsModel); ok {
		return c.CheckSettings(req)
	}
	if len(req.Settings.Format) > 0 {
		return fmt.Errorf("model %s: setting format: it is not known whether the model can use it: use belay.Answer", n.info.Name)
	}
	return nil
}

// checkSettings lets a model check the agent's settings. Tools come and go, so the choice of one
// is checked with each request.
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

// first returns the model that answers first.
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
		s.ToolChoice = "" // the model must be able to answer
	}
	return s
}

// summarySettings returns the settings of a request for a summary.
func (a *Agent) summarySettings() Settings {
	s := a.opts.Settings
	s.Stop, s.ToolChoice, s.Format = nil, "", nil
	return s
}
