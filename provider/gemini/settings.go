package gemini

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

var _ belay.SettingsModel = (*Model)(nil)

// abilities returns the settings that the model supports in a request. A model before Gemini
// 3 has no effort, and cannot have both tools and a format.
func (m *Model) abilities(req *belay.Request) wire.Abilities {
	a := wire.Abilities{
		MostTemperature: 2, TopP: true, MostStops: 5, LeastThinking: leastThinking, MostThinking: m.boundOf(req),
		Format:  m.newer || len(req.Tools) == 0,
		Instead: map[string]string{"effort": "set Thinking instead"},
	}
	if m.newer {
		a.Efforts = []string{"minimal", "low", "medium", "high"}
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

// boundOf returns the limit on the response in tokens; 0 means none.
func (m *Model) boundOf(req *belay.Request) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	return m.maxOut
}

// generation returns the settings in the form of the service.
func (m *Model) generation(s *belay.Settings, bound int) generationConfig {
	config := generationConfig{MaxOutputTokens: min(bound, 1<<30), StopSequences: s.Stop, Temperature: s.Temperature, TopP: s.TopP, Thinking: m.thinkingFor(cmp.Or(s.Thinking, m.thinking), bound)}
	if s.Effort != "" {
		config.Thinking = &thinkingConfig{IncludeThoughts: m.thinking != 0, ThinkingLevel: strings.ToUpper(s.Effort)}
	}
	if len(s.Format) > 0 {
		config.ResponseMIMEType, config.ResponseJSONSchema = "application/json", s.Format
	}
	return config
}

// toolConfigFor returns the setting that forces the model to call a tool, or forbids all
// calls. It returns nil if the model may choose.
func toolConfigFor(choice string) *toolConfig {
	calling := functionCalling{Mode: "ANY"}
	switch choice {
	case "":
		return nil
	case belay.ToolChoiceNone:
		calling.Mode = "NONE"
	case belay.ToolChoiceRequired:
	default:
		calling.AllowedFunctionNames = []string{sentName(choice)}
	}
	return &toolConfig{calling}
}
