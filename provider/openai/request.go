package openai

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
)

// wire is one of the protocols.
type wire interface {
	// path is where requests are sent.
	path() string
	// head encodes the beginning of a request, up to its messages.
	head(h *heading) []byte
	// encode encodes a message. What it makes depends on nothing but the message and
	// the wire, which is the key under which the message keeps it.
	encode(m *belay.Message) (any, error)
	// join adds encoded messages.
	join(messages *list, contents []any)
	// assemble begins to read an answer.
	assemble(names map[string]string) assembler
}

// heading is what the beginning of a request says.
type heading struct {
	settings

	model    string
	system   string
	tools    []declaration
	bound    int         // 0 for none
	thinking func() bool // whether the model thinks
}

// body builds the body of a request, and returns the names of its tools. The
// messages are last, so that a request begins with the bytes of the one before it.
func (m *Model) body(req *belay.Request) (*body, map[string]string, error) {
	h, err := m.head(req)
	if err != nil {
		return nil, nil, err
	}
	contents := make([]any, 0, len(req.Messages))
	encoder := m.encoder()
	encode := encoder.encode
	for _, message := range req.Messages {
		c, err := message.Encoded(encoder, encode)
		if err != nil {
			return nil, nil, fmt.Errorf("message %d: %w", message.Seq, err)
		}
		contents = append(contents, c)
	}
	b := &body{pieces: make([][]byte, 0, 2*len(contents)+2)}
	b.add(h.json)
	m.wire.join(&list{body: b, begun: h.json[len(h.json)-1] != '['}, contents)
	b.add(endOfRequest)
	return b, h.names, nil
}

// What stands between the pieces of a request.
var (
	comma        = []byte(`,`)
	endOfRequest = []byte(`]}`)
)

// list is a list in the body of a request.
type list struct {
	*body

	begun bool // there is something in it
}

// item adds an item, or several that are separated already.
func (l *list) item(json []byte) {
	l.separate()
	l.add(json)
}

// separate prepares for another item.
func (l *list) separate() {
	if l.begun {
		l.add(comma)
	}
	l.begun = true
}

// head is the beginning of a request: everything up to its messages.
type head struct {
	system string
	tools  []belay.ToolDeclaration
	bound  int
	json   []byte
	names  map[string]string // of the tools whose names are translated, by what they became
}

// maxHeads is how many heads a model keeps. Agents that share a model differ in
// their heads.
const maxHeads = 8

// head returns the beginning of a request. Sessions repeat it, so that the last
// few are kept; one that is lost to a race is made again.
func (m *Model) head(req *belay.Request) (*head, error) {
	bound := req.MaxTokens
	if bound <= 0 {
		bound = m.settings.maxTokens
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
	declared, names, err := m.declare(req.Tools)
	if err != nil {
		return nil, err
	}
	h := &head{req.System, slices.Clone(req.Tools), bound, m.wire.head(&heading{
		settings: m.settings, model: m.name, system: req.System, tools: declared, bound: bound, thinking: m.reason,
	}), names}
	for i := range h.tools {
		h.tools[i].InputSchema = bytes.Clone(h.tools[i].InputSchema)
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

// begin begins a request with its fields, and ends with the list that its messages
// go into.
func begin(h *heading, fields object, list string) []byte {
	out := fields.append(nil)
	out = out[:len(out)-1]
	if len(h.extra) > 0 {
		out = append(out, ',')
		out = append(out, h.extra...)
	}
	out = append(out, `,"stream":true,"`...)
	out = append(out, list...)
	return append(out, `":[`...)
}
