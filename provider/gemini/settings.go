package gemini

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

var _ belay.SettingsModel = (*Model)(nil)

// abilities are the settings that the model can use in a request. Before Gemini 3 a model has a
// budget for thinking and no effort, and cannot both call tools and write a format.
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

// CheckSettings returns an error that names the settings which the model cannot use. A request
// with such settings fails with the same error before it is sent.
func (m *Model) CheckSettings(req *belay.Request) error {
	a := m.abilities(req)
	if err := a.Check(req); err != nil {
		return m.failures.New(belay.ModelInvalid, err)
	}
	return nil
}

// boundOf returns the limit on the response; 0 for none.
func (m *Model) boundOf(req *belay.Request) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	return m.maxOut
}

// generation returns the settings as the service has them.
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

// toolConfigFor returns which tools the model must call, or nil if it may choose.
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
