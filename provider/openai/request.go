package openai

import (
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// protocol is one of OpenAI's two protocols.
type protocol interface {
	// path is the URL path for requests.
	path() string
	// head encodes the beginning of a request, up to its messages.
	head(h *heading) ([]byte, error)
	// encode encodes a message. The result depends only on the message and the protocol.
	// The message caches the result, with the protocol as the key.
	encode(m *belay.Message) (any, error)
	// join adds encoded messages to the request.
	join(messages *list, contents []any)
	// assemble returns an assembler for an answer.
	assemble(names map[string]string) assembler
}

// heading has the values for the beginning of a request.
type heading struct {
	settings

	model    string
	system   string
	tools    []belay.ToolDeclaration
	chosen   belay.Settings
	chat     bool        // the protocol is Chat Completions
	bound    int         // limit on the response in tokens; 0 means none
	thinking func() bool // reports whether the model thinks
}

// body builds the body of a request. It also returns the original names of renamed tools.
// The messages are last, so that a request begins with the bytes of the previous request.
func (m *Model) body(req *belay.Request) (*wire.Body, map[string]string, error) {
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
	b := wire.NewBody(2*len(contents) + 2)
	b.Add(h.JSON)
	m.protocol.join(&list{Body: b, begun: h.JSON[len(h.JSON)-1] != '['}, contents)
	b.Add(endOfRequest)
	return b, h.Names, nil
}

var (
	comma        = []byte(`,`)
	endOfRequest = []byte(`]}`)
)

// list is a JSON list in the body of a request.
type list struct {
	*wire.Body

	begun bool // the list has an item
}

// item adds an item, or several items that are already separated by commas.
func (l *list) item(json []byte) {
	l.separate()
	l.Add(json)
}

// separate adds a comma, except before the first item.
func (l *list) separate() {
	if l.begun {
		l.Add(comma)
	}
	l.begun = true
}

func (m *Model) head(req *belay.Request) (*wire.Head, error) {
	bound := req.MaxTokens
	if bound <= 0 {
		bound = m.settings.maxTokens
	}
	return m.heads.For(req, bound, false, func() ([]byte, map[string]string, error) {
		declared, names, err := m.declare(req.Tools)
		if err != nil {
			return nil, nil, err
		}
		h := &heading{settings: m.settings, model: m.name, system: req.System, tools: declared, chosen: req.Settings, bound: bound, thinking: m.reason}
		h.effort = m.effort(req)
		data, err := m.protocol.head(h)
		return data, names, err
	})
}

// begin returns the encoded fields of a request and the opening bracket of its messages.
// list is the name of the field for the messages.
func begin(h *heading, fields object, list string) ([]byte, error) {
	out := fields.append(nil)
	out, err := h.addExtra(out[:len(out)-1])
	if err != nil {
		return nil, err
	}
	out = append(out, `,"stream":true,"`...)
	out = append(out, list...)
	return append(out, `":[`...), nil
}
