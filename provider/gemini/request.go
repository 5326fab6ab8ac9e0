package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
)

// What stands between the parts of a request.
var (
	beginUser  = []byte(`{"role":"user","parts":[`)
	beginModel = []byte(`{"role":"model","parts":[`)
	nextUser   = []byte(`]},{"role":"user","parts":[`)
	nextModel  = []byte(`]},{"role":"model","parts":[`)
	nextPart   = []byte(`,`)
	endAll     = []byte(`]}]}`)
	endEmpty   = []byte(`]}`)
)

// body builds the body of a request. The contents are last, so that a request
// begins with the bytes of the one before it.
func (m *Model) body(req *belay.Request) (*body, *head, error) {
	head, err := m.head(req)
	if err != nil {
		return nil, nil, err
	}
	b := &body{pieces: make([][]byte, 0, 2*len(req.Messages)+2)}
	b.add(head.json)
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
			b.add(beginModel)
		case before == nil:
			b.add(beginUser)
		case before.model == c.model:
			b.add(nextPart) // neighbours on one side are one content
		case c.model:
			b.add(nextModel)
		default:
			b.add(nextUser)
		}
		b.add(c.json)
		before = c
	}
	if before == nil {
		b.add(endEmpty)
	} else {
		b.add(endAll)
	}
	return b, head, nil
}

// body is the body of a request, in the pieces that it consists of: most of them
// are what old messages were encoded to, and are not copied but when they are
// sent.
type body struct {
	pieces [][]byte
	size   int64
}

func (b *body) add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	b.size += int64(len(piece))
}

// reader returns a reader of the whole of it.
func (b *body) reader() io.ReadCloser { return &bodyReader{left: b.pieces} }

// bodyReader reads a body. Closing it twice, or while it is read, is harmless.
type bodyReader struct {
	left  [][]byte
	piece []byte
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.piece) == 0 {
			if len(r.left) == 0 {
				break
			}
			r.piece, r.left = r.left[0], r.left[1:]
		}
		copied := copy(p[n:], r.piece)
		r.piece, n = r.piece[copied:], n+copied
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }

// head is the beginning of a request: everything up to its contents.
type head struct {
	system string
	tools  []belay.ToolDeclaration
	bound  int
	json   []byte
	// names are the tools whose names the service does not take, by the names
	// they are sent as.
	names map[string]string
}

// maxHeads is how many heads a model keeps. Agents that share a model differ in
// their heads.
const maxHeads = 8

// head returns the beginning of a request. Sessions repeat it, so that the last
// few are kept; one that is lost to a race is made again.
func (m *Model) head(req *belay.Request) (*head, error) {
	bound := req.MaxTokens
	if bound <= 0 {
		bound = m.maxOut
	}
	var known []*head
	if p := m.heads.Load(); p != nil {
		known = *p
	}
	for _, h := range known {
		if h.is(req, bound) {
			return h, nil
		}
	}
	h := &head{system: req.System, tools: slices.Clone(req.Tools), bound: bound}
	for i := range h.tools {
		h.tools[i].InputSchema = bytes.Clone(h.tools[i].InputSchema)
	}
	if err := m.encodeHead(h); err != nil {
		return nil, err
	}
	known = append([]*head{h}, known[:min(len(known), maxHeads-1)]...)
	m.heads.Store(&known)
	return h, nil
}

// is reports whether the request begins with this head.
func (h *head) is(req *belay.Request, bound int) bool {
	return h.bound == bound && h.system == req.System &&
		slices.EqualFunc(h.tools, req.Tools, func(a, b belay.ToolDeclaration) bool {
			return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.InputSchema, b.InputSchema)
		})
}

// encodeHead encodes the beginning of a request.
func (m *Model) encodeHead(h *head) error {
	var body struct {
		SystemInstruction *sdk.Content          `json:"systemInstruction,omitempty"` //nolint:tagliatelle // the service's name
		Tools             []*sdk.Tool           `json:"tools,omitempty"`
		GenerationConfig  *sdk.GenerationConfig `json:"generationConfig,omitempty"` //nolint:tagliatelle // the service's name
	}
	if !blank(h.system) {
		body.SystemInstruction = &sdk.Content{Parts: []*sdk.Part{{Text: h.system}}}
	}
	if len(h.tools) > 0 {
		declarations, err := h.declare()
		if err != nil {
			return err
		}
		body.Tools = []*sdk.Tool{{FunctionDeclarations: declarations}}
	}
	thinking := m.thinkingFor(h.bound)
	if h.bound > 0 || thinking != nil {
		body.GenerationConfig = &sdk.GenerationConfig{MaxOutputTokens: int32(min(h.bound, 1<<30)), ThinkingConfig: thinking}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	h.json = data[:len(data)-1]
	if len(h.json) > len(`{`) {
		h.json = append(h.json, ',')
	}
	h.json = append(h.json, `"contents":[`...)
	return nil
}

// declare returns the tools as the service takes them.
func (h *head) declare() ([]*sdk.FunctionDeclaration, error) {
	sent := make(map[string]string, len(h.tools))
	declarations := make([]*sdk.FunctionDeclaration, 0, len(h.tools))
	for i := range h.tools {
		t := &h.tools[i]
		name := sentName(t.Name)
		if other, ok := sent[name]; ok {
			return nil, fmt.Errorf("tool %q: the service would take it for the tool %q: rename one of them", t.Name, other)
		}
		sent[name] = t.Name
		if name != t.Name {
			if h.names == nil {
				h.names = make(map[string]string)
			}
			h.names[name] = t.Name
		}
		d := &sdk.FunctionDeclaration{Name: name, Description: t.Description}
		if len(t.InputSchema) > 0 {
			schema, err := sentSchema(t.InputSchema)
			if err != nil {
				return nil, fmt.Errorf("tool %q: input schema: %w", t.Name, err)
			}
			d.ParametersJsonSchema = schema
		}
		declarations = append(declarations, d)
	}
	return declarations, nil
}

// leastThinking is the smallest budget for thinking that all models take.
const leastThinking = 512

// thinkingFor returns the thinking that fits into a response.
func (m *Model) thinkingFor(bound int) *sdk.ThinkingConfig {
	switch {
	case m.thinking == Adaptive && m.newer:
		return &sdk.ThinkingConfig{IncludeThoughts: true}
	case m.thinking == Adaptive:
		return &sdk.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: new(int32(-1))}
	case m.thinking <= 0:
		return nil
	}
	budget := m.thinking
	if bound > 0 && budget >= bound {
		if budget = bound - 1; budget < leastThinking {
			return &sdk.ThinkingConfig{IncludeThoughts: true} // it finds room by itself, or has none
		}
	}
	return &sdk.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: new(int32(min(budget, 1<<30)))}
}
