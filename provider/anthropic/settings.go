package anthropic

import (
	"math"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

var _ belay.SettingsModel = (*Model)(nil)

// abilities returns the settings that the model supports in a request. A model that thinks
// has no temperature and no top_p, and a request cannot force it to call a tool.
func (m *Model) abilities(req *belay.Request) wire.Abilities {
	a := wire.Abilities{
		MostTemperature: 1, TopP: req.Settings.Temperature == nil, MostStops: math.MaxInt, LeastThinking: leastThinking, MostThinking: m.boundOf(req),
		Caches: []string{belay.CacheOff, belay.CacheLong},
		Instead: map[string]string{
			"effort": "set Thinking instead",
			"top_p":  "set either the temperature or top_p",
		},
	}
	if m.binds || m.thinking != 0 || req.Settings.Thinking != 0 {
		a.MostTemperature, a.TopP, a.Unforced = 0, false, true
		a.Instead["temperature"], a.Instead["top_p"] = "remove it, or turn thinking off, because a model that thinks does not support it", "remove it, or turn thinking off, because a model that thinks does not support it"
	}
	return a
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

// boundOf returns the limit on the response, in tokens.
func (m *Model) boundOf(req *belay.Request) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	return m.bound()
}

// choose copies settings into a request.
func choose(params *head, s *belay.Settings) {
	params.Temperature, params.TopP, params.StopSequences = s.Temperature, s.TopP, s.Stop
	switch s.ToolChoice {
	case "":
	case belay.ToolChoiceNone:
		params.ToolChoice = &toolChoice{Type: "none"}
	case belay.ToolChoiceRequired:
		params.ToolChoice = &toolChoice{Type: "any"}
	default:
		params.ToolChoice = &toolChoice{Type: "tool", Name: wireName(s.ToolChoice)}
	}
}

// cacheControl returns the cache mark for the end of the system prompt or of the tools.
func cacheControl(cache string) *cacheMark {
	switch cache {
	case belay.CacheOff:
		return nil
	case belay.CacheLong:
		return &cacheMark{Type: "ephemeral", TTL: "1h"}
	}
	return &cacheMark{Type: "ephemeral"}
}
