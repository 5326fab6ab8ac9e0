package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Abilities describes the settings that a model supports. The zero value supports none.
type Abilities struct {
	// MostTemperature is the highest temperature; 0 if the model has no such setting.
	MostTemperature float64
	TopP            bool
	// MostStops is the highest number of stop texts.
	MostStops int
	// Efforts are the allowed values of Settings.Effort, which sets how much the model
	// thinks.
	Efforts []string
	// LeastThinking is the smallest budget for thinking; 0 if the model has no such setting.
	// The budget must be below MostThinking, unless MostThinking is 0.
	LeastThinking, MostThinking int
	// Caches are the allowed values of Settings.Cache.
	Caches []string
	Format bool
	// Unforced means that a request cannot force the model to call a tool.
	Unforced bool
	// Instead maps the name of a setting to advice: what to do if the model does not support
	// it.
	Instead map[string]string
}

// Check returns an error if the model does not support a setting of the request. The error
// lists all such settings and says what to do.
func (a *Abilities) Check(req *belay.Request) error {
	s := &req.Settings
	var problems []error
	refuse := func(setting, format string, args ...any) {
		text := "setting " + setting + ": " + fmt.Sprintf(format, args...)
		if instead := a.Instead[setting]; instead != "" {
			text += ": " + instead
		}
		problems = append(problems, errors.New(text))
	}
	cannot := func(setting string) {
		if a.Instead[setting] == "" {
			refuse(setting, "this model does not support this setting: remove it")
		} else {
			refuse(setting, "this model does not support this setting")
		}
	}
	switch v := s.Temperature; {
	case v == nil:
	case a.MostTemperature == 0:
		cannot("temperature")
	case !(*v >= 0 && *v <= a.MostTemperature):
		refuse("temperature", "%v is not between 0 and %v", *v, a.MostTemperature)
	}
	switch v := s.TopP; {
	case v == nil:
	case !a.TopP:
		cannot("top_p")
	case !(*v > 0 && *v <= 1):
		refuse("top_p", "%v is not allowed: use a number above 0 and up to 1", *v)
	}
	switch n := len(s.Stop); {
	case n == 0:
	case a.MostStops == 0:
		cannot("stop")
	case n > a.MostStops:
		refuse("stop", "there are %d stop texts, and the service accepts at most %d: remove some", n, a.MostStops)
	case slices.ContainsFunc(s.Stop, IsBlank):
		refuse("stop", "a stop text is blank, and the service refuses blank texts: remove it")
	}
	switch {
	case s.Effort == "":
	case len(a.Efforts) == 0:
		cannot("effort")
	case !slices.Contains(a.Efforts, s.Effort):
		refuse("effort", "%q is not allowed: use one of %s", s.Effort, strings.Join(a.Efforts, ", "))
	}
	switch {
	case s.Thinking == 0:
	case a.LeastThinking == 0:
		cannot("thinking")
	case s.Thinking < a.LeastThinking:
		refuse("thinking", "%d tokens are too few: the service accepts %d or more", s.Thinking, a.LeastThinking)
	case a.MostThinking > 0 && s.Thinking >= a.MostThinking:
		refuse("thinking", "a thinking budget of %d tokens does not fit into a response of at most %d tokens: set a higher MaxTokens or a smaller budget", s.Thinking, a.MostThinking)
	}
	if s.Effort != "" && s.Thinking != 0 {
		refuse("thinking", "thinking and effort are both set: remove one of them")
	}
	if s.Cache != "" && !slices.Contains(a.Caches, s.Cache) {
		refuse("cache", "this model does not support the cache policy %q: remove the setting", s.Cache)
	}
	if len(s.Format) > 0 && !a.Format {
		refuse("format", "the service does not support a schema for the answer to this request: use belay.Answer, which uses a tool instead")
	}
	a.checkChoice(req, refuse)
	if _, err := Extra(s.Extra); err != nil {
		refuse("extra", "%v", err)
	}
	return errors.Join(problems...)
}

func (a *Abilities) checkChoice(req *belay.Request, refuse func(setting, format string, args ...any)) {
	choice := req.Settings.ToolChoice
	switch {
	case choice == "" || choice == belay.ToolChoiceNone:
	case a.Unforced:
		refuse("tool_choice", "a model that thinks cannot be forced to call a tool: remove the setting, or turn thinking off")
	case len(req.Tools) == 0:
		refuse("tool_choice", "the request has no tools: add a tool or remove the setting")
	case choice != belay.ToolChoiceRequired && !slices.ContainsFunc(req.Tools, func(t belay.ToolDeclaration) bool { return t.Name == choice }):
		refuse("tool_choice", "the request has no tool %q: use the name of one of its tools", choice)
	}
}

// Extra decodes Settings.Extra, the fields that Belay adds to a request unchanged.
func Extra(extra json.RawMessage) (map[string]json.RawMessage, error) {
	if len(extra) == 0 {
		return nil, nil //nolint:nilnil // there are none
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(extra, &fields); err != nil || fields == nil {
		return nil, errors.New("the value is not a JSON object")
	}
	return fields, nil
}

// AddExtra appends the fields of extra to head, the encoded first fields of a request
// without the closing brace. own lists fields that the provider adds later. AddExtra returns
// an error if an extra field is in head or in own.
func AddExtra(head []byte, extra json.RawMessage, own ...string) ([]byte, error) {
	fields, err := Extra(extra)
	if err != nil || len(fields) == 0 {
		return head, err
	}
	var set map[string]json.RawMessage
	if err := json.Unmarshal(append(bytes.Clone(head), '}'), &set); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, taken := set[name]; taken || slices.Contains(own, name) {
			return nil, fmt.Errorf("setting extra: Belay already sets the field %q in this request: use the setting for this field, or remove the field", name)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		if head[len(head)-1] != '{' {
			head = append(head, ',')
		}
		head = append(append(append(head, key...), ':'), fields[name]...)
	}
	return head, nil
}

func sameSettings(a, b *belay.Settings) bool {
	same := func(x, y *float64) bool { return x == y || x != nil && y != nil && *x == *y }
	return same(a.Temperature, b.Temperature) && same(a.TopP, b.TopP) && slices.Equal(a.Stop, b.Stop) && a.ToolChoice == b.ToolChoice &&
		a.Effort == b.Effort && a.Thinking == b.Thinking && a.Cache == b.Cache && bytes.Equal(a.Format, b.Format) && bytes.Equal(a.Extra, b.Extra)
}
