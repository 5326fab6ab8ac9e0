package gemini

import (
	"cmp"
	"strings"

	sdk "google.golang.org/genai"

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
func (m *Model) generation(s *belay.Settings, bound int) sdk.GenerationConfig {
	config := sdk.GenerationConfig{MaxOutputTokens: int32(min(bound, 1<<30)), StopSequences: s.Stop, ThinkingConfig: m.thinkingFor(cmp.Or(s.Thinking, m.thinking), bound)}
	if s.Temperature != nil {
		config.Temperature = new(float32(*s.Temperature))
	}
	if s.TopP != nil {
		config.TopP = new(float32(*s.TopP))
	}
	if s.Effort != "" {
		config.ThinkingConfig = &sdk.ThinkingConfig{IncludeThoughts: m.thinking != 0, ThinkingLevel: sdk.ThinkingLevel(strings.ToUpper(s.Effort))}
	}
	if len(s.Format) > 0 {
		config.ResponseMIMEType, config.ResponseJsonSchema = "application/json", s.Format
	}
	return config
}

// toolConfig returns which tools the model must call, or nil if it may choose.
func toolConfig(choice string) *sdk.ToolConfig {
	calling := &sdk.FunctionCallingConfig{Mode: sdk.FunctionCallingConfigModeAny}
	switch choice {
	case "":
		return nil
	case belay.ToolChoiceNone:
		calling.Mode = sdk.FunctionCallingConfigModeNone
	case belay.ToolChoiceRequired:
	default:
		calling.AllowedFunctionNames = []string{sentName(choice)}
	}
	return &sdk.ToolConfig{FunctionCallingConfig: calling}
}
