package gemini

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// The JSON between the encoded messages of a request.
var (
	beginUser  = []byte(`{"role":"user","parts":[`)
	beginModel = []byte(`{"role":"model","parts":[`)
	nextUser   = []byte(`]},{"role":"user","parts":[`)
	nextModel  = []byte(`]},{"role":"model","parts":[`)
	nextPart   = []byte(`,`)
	endAll     = []byte(`]}]}`)
	endEmpty   = []byte(`]}`)
)

// body builds the body of a request. The contents are last, so that a request begins with
// the bytes of the previous request.
func (m *Model) body(req *belay.Request) (*wire.Body, *wire.Head, error) {
	head, err := m.head(req)
	if err != nil {
		return nil, nil, err
	}
	b := wire.NewBody(2*len(req.Messages) + 2)
	b.Add(head.JSON)
	var before *content
	for _, message := range req.Messages {
		c, err := m.encoded(message)
		if err != nil {
			return nil, nil, err
		}
		if len(c.json) == 0 {
			continue
		}
		switch {
		case before == nil && c.model:
			b.Add(beginModel)
		case before == nil:
			b.Add(beginUser)
		case before.model == c.model:
			b.Add(nextPart) // consecutive messages of one role become one content
		case c.model:
			b.Add(nextModel)
		default:
			b.Add(nextUser)
		}
		b.Add(c.json)
		before = c
	}
	if before == nil {
		b.Add(endEmpty)
	} else {
		b.Add(endAll)
	}
	return b, head, nil
}

func (m *Model) head(req *belay.Request) (*wire.Head, error) {
	bound := m.boundOf(req)
	return m.heads.For(req, bound, false, func() ([]byte, map[string]string, error) {
		return m.encodeHead(req, bound)
	})
}

// encodeHead encodes the beginning of a request. It also returns the original names of
// renamed tools.
func (m *Model) encodeHead(req *belay.Request, bound int) ([]byte, map[string]string, error) {
	var body head
	if !wire.IsBlank(req.System) {
		body.SystemInstruction = &instruction{Parts: []part{textPart(req.System)}}
	}
	declarations, names, err := declare(req.Tools)
	if err != nil {
		return nil, nil, err
	}
	if len(declarations) > 0 {
		body.Tools = []toolSet{{declarations}}
	}
	body.ToolConfig = toolConfigFor(req.Settings.ToolChoice)
	config := m.generation(&req.Settings, bound)
	if !reflect.ValueOf(config).IsZero() {
		body.GenerationConfig = &config
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	if data, err = wire.AddExtra(data[:len(data)-1], req.Settings.Extra, "contents"); err != nil {
		return nil, nil, err
	}
	if len(data) > len(`{`) {
		data = append(data, ',')
	}
	return append(data, `"contents":[`...), names, nil
}

// declare translates the declarations of tools. The map has the original name of each
// renamed tool, by its new name. The error lists every tool that cannot be declared.
func declare(tools []belay.ToolDeclaration) ([]declaration, map[string]string, error) {
	fitted, renamed, err := wire.Declare(tools, sentName, func(schema json.RawMessage) (json.RawMessage, error) {
		if len(schema) == 0 {
			return nil, nil
		}
		sent, err := sentSchema(schema)
		if err != nil {
			return nil, fmt.Errorf("input schema: %w", err)
		}
		return sent, nil
	})
	if err != nil {
		return nil, nil, err
	}
	declarations := make([]declaration, 0, len(fitted))
	for i := range fitted {
		declarations = append(declarations, declaration{Name: fitted[i].Name, Description: fitted[i].Description, Parameters: fitted[i].InputSchema})
	}
	return declarations, renamed, nil
}

// leastThinking is the smallest thinking budget that all models accept.
const leastThinking = 512

// thinkingFor returns the thinking settings of a request. The budget is in tokens, and bound
// limits the whole response.
func (m *Model) thinkingFor(budget, bound int) *thinkingConfig {
	switch {
	case budget == Adaptive && m.newer:
		return &thinkingConfig{IncludeThoughts: true}
	case budget == Adaptive:
		return &thinkingConfig{IncludeThoughts: true, ThinkingBudget: new(-1)}
	case budget <= 0:
		return nil
	}
	if bound > 0 && budget >= bound {
		if budget = bound - 1; budget < leastThinking {
			return &thinkingConfig{IncludeThoughts: true} // a smaller budget is invalid, so let the model decide
		}
	}
	return &thinkingConfig{IncludeThoughts: true, ThinkingBudget: new(min(budget, 1<<30))}
}
