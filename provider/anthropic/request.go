package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// The service caches a request up to the end of a block with a mark. With longMark the
// service keeps the cache for an hour.
var (
	mark     = []byte(`,"cache_control":{"type":"ephemeral"}`)
	longMark = []byte(`,"cache_control":{"type":"ephemeral","ttl":"1h"}`)
)

// place is the position of a block: the index of the message, and of the block in the
// message.
type place struct{ message, block int }

// The JSON between the encoded messages of a request.
var (
	beginUser      = []byte(`{"role":"user","content":[`)
	beginAssistant = []byte(`{"role":"assistant","content":[`)
	nextUser       = []byte(`]},{"role":"user","content":[`)
	nextAssistant  = []byte(`]},{"role":"assistant","content":[`)
	nextBlock      = []byte(`,`)
	endAll         = []byte(`]}]}`)
	endEmpty       = []byte(`]}`)
)

// sent is what the reader of a response must know about its request.
type sent struct {
	names   map[string]string // original names of renamed tools, by new name
	ignored []string          // see belay.Response
}

// body builds the body of a request. The messages are last, so that a request begins with
// the bytes of the previous request, except for cache marks.
func (m *Model) body(req *belay.Request) (*wire.Body, sent, error) {
	contents := make([]*content, 0, len(req.Messages))
	for _, message := range req.Messages {
		c, err := m.encoded(message)
		if err != nil {
			return nil, sent{}, err
		}
		if len(c.blocks) > 0 {
			contents = append(contents, c)
		}
	}
	quiet := (m.thinking > 0 || req.Settings.Thinking > 0) && begunWithoutThinking(contents)
	head, err := m.head(req, quiet)
	if err != nil {
		return nil, sent{}, err
	}
	var marks []place
	sign := mark
	switch req.Settings.Cache {
	case belay.CacheOff:
	case belay.CacheLong:
		marks, sign = places(contents), longMark
	default:
		marks = places(contents)
	}
	b := wire.NewBody(2*len(contents) + 2*len(marks) + 2)
	b.Add(head.JSON)
	for i, c := range contents {
		assistant := c.role == belay.RoleAssistant
		switch {
		case i == 0 && assistant:
			b.Add(beginAssistant)
		case i == 0:
			b.Add(beginUser)
		case contents[i-1].role == c.role:
			b.Add(nextBlock) // consecutive messages of a role become one message
		case assistant:
			b.Add(nextAssistant)
		default:
			b.Add(nextUser)
		}
		addMarked(b, c, i, marks, sign)
	}
	if len(contents) > 0 {
		b.Add(endAll)
	} else {
		b.Add(endEmpty)
	}
	return b, sent{head.Names, m.ignored(req, quiet)}, nil
}

// addMarked adds the blocks of message i and its cache marks.
func addMarked(b *wire.Body, c *content, i int, marks []place, sign []byte) {
	from := 0
	for _, p := range marks {
		if p.message == i {
			inside := c.blocks[p.block].end - 1 // just before the closing brace of the block
			b.Add(c.json[from:inside])
			b.Add(sign)
			from = inside
		}
	}
	b.Add(c.json[from:])
}

// places returns the positions of the cache marks, in order:
//
//   - at the last user message before the last response, where the previous request ended;
//   - if the request ends with reminders, before them, because the next request may lack them;
//   - at the end of the request.
//
// The head has one more mark. The service allows at most four marks.
func places(contents []*content) []place {
	var marks []place
	last := len(contents) - 1
	end := find(contents, last, func(b block) bool { return b.markable })
	if end.message < 0 {
		return nil
	}
	start := sideStart(contents, last)
	answer := sideStart(contents, start-1)
	if before := find(contents, answer-1, func(b block) bool { return b.markable }); before.message >= 0 {
		marks = append(marks, before)
	}
	if contents[end.message].blocks[end.block].reminder {
		if said := find(contents, last, func(b block) bool { return b.markable && !b.reminder }); said.message >= start {
			marks = append(marks, said)
		}
	}
	return append(marks, end)
}

// find returns the last block for which fits is true, in message i or before it. If there is
// none, both indexes are -1.
func find(contents []*content, i int, fits func(block) bool) place {
	for ; i >= 0; i-- {
		for j, b := range slices.Backward(contents[i].blocks) {
			if fits(b) {
				return place{i, j}
			}
		}
	}
	return place{-1, -1}
}

// sideStart returns the index of the first message in a run of messages with the same role.
// Message i is the last of the run.
func sideStart(contents []*content, i int) int {
	for i > 0 && contents[i-1].role == contents[i].role {
		i--
	}
	return i
}

// begunWithoutThinking reports whether the first response of the current turn has calls
// but no thinking, for example because another provider's model wrote the response. The
// service then rejects a thinking budget.
func begunWithoutThinking(contents []*content) bool {
	begun := -1
	for end := len(contents) - 1; end >= 0; {
		start := sideStart(contents, end)
		answers := contents[end].role == belay.RoleUser && slices.ContainsFunc(contents[start:end+1], func(c *content) bool {
			return slices.ContainsFunc(c.blocks, func(b block) bool { return b.result })
		})
		if !answers || start == 0 {
			break
		}
		begun = sideStart(contents, start-1)
		end = begun - 1
	}
	return begun >= 0 && contents[begun].blocks[0].markable
}

// head returns the beginning of a request. If quiet is set, the request has no thinking
// budget.
func (m *Model) head(req *belay.Request, quiet bool) (*wire.Head, error) {
	bound := m.boundOf(req)
	return m.heads.For(req, bound, quiet, func() ([]byte, map[string]string, error) {
		declared, names, err := wire.Declare(req.Tools, wireName, fitSchema)
		if err != nil {
			return nil, nil, err
		}
		data, err := m.encodeHead(req, declared, bound, quiet)
		return data, names, err
	})
}

// encodeHead encodes the beginning of a request. The cache mark on the system prompt also
// covers the tools, because the service puts tools before the system prompt.
func (m *Model) encodeHead(req *belay.Request, tools []belay.ToolDeclaration, bound int, quiet bool) ([]byte, error) {
	params := head{Model: m.name, MaxTokens: bound, Thinking: m.thinkingFor(cmp.Or(req.Settings.Thinking, m.thinking), bound, quiet)}
	choose(&params, &req.Settings)
	control := cacheControl(req.Settings.Cache)
	for i := range tools {
		t := &tools[i]
		params.Tools = append(params.Tools, toolParam{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	switch {
	case !wire.IsBlank(req.System):
		params.System = []textBlock{{Type: "text", Text: req.System, CacheControl: control}}
	case len(params.Tools) > 0:
		params.Tools[len(params.Tools)-1].CacheControl = control
	}
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if data, err = wire.AddExtra(data[:len(data)-1], req.Settings.Extra, "stream", "messages"); err != nil {
		return nil, err
	}
	return append(data, `,"stream":true,"messages":[`...), nil
}
