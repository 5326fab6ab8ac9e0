package anthropic

import (
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// mark ends a block up to which the service caches the request.
var mark = []byte(`,"cache_control":{"type":"ephemeral"}`)

// place is a block of a request: that of a message, both by number.
type place struct{ message, block int }

// What stands between the blocks of a request.
var (
	beginUser      = []byte(`{"role":"user","content":[`)
	beginAssistant = []byte(`{"role":"assistant","content":[`)
	nextUser       = []byte(`]},{"role":"user","content":[`)
	nextAssistant  = []byte(`]},{"role":"assistant","content":[`)
	nextBlock      = []byte(`,`)
	endAll         = []byte(`]}]}`)
	endEmpty       = []byte(`]}`)
)

// body builds the body of a request. The messages are last, so that a request
// begins with the bytes of the one before it, marks aside.
func (m *Model) body(req *belay.Request) (*wire.Body, map[string]string, error) {
	contents := make([]*content, 0, len(req.Messages))
	for _, message := range req.Messages {
		c, err := m.encoded(message)
		if err != nil {
			return nil, nil, err
		}
		if len(c.blocks) > 0 {
			contents = append(contents, c)
		}
	}
	head, err := m.head(req, m.thinking > 0 && begunWithoutThinking(contents))
	if err != nil {
		return nil, nil, err
	}
	marks := places(contents)
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
			b.Add(nextBlock) // neighbours on one side are one message
		case assistant:
			b.Add(nextAssistant)
		default:
			b.Add(nextUser)
		}
		addMarked(b, c, i, marks)
	}
	if len(contents) > 0 {
		b.Add(endAll)
	} else {
		b.Add(endEmpty)
	}
	return b, head.Names, nil
}

// addMarked adds the blocks of message i, with the marks that are in it.
func addMarked(b *wire.Body, c *content, i int, marks []place) {
	from := 0
	for _, p := range marks {
		if p.message == i {
			inside := c.blocks[p.block].end - 1 // before the closing brace
			b.Add(c.json[from:inside])
			b.Add(mark)
			from = inside
		}
	}
	b.Add(c.json[from:])
}

// places returns where the marks go, in order: where the request before this one
// ended, which is behind what the user's side said before the last response; at
// the end; and if that is a reminder, which may be gone from the next request,
// before the reminders too. With the one in the head they are the four that the
// service allows.
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

// find returns the last block that fits, in message i or before.
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

// sideStart returns the first of the neighbours on one side that end with
// message i.
func sideStart(contents []*content, i int) int {
	for i > 0 && contents[i-1].role == contents[i].role {
		i--
	}
	return i
}

// begunWithoutThinking reports whether the turn that is under way, from a response with
// calls on, began without thinking, as with a model of another provider. The service
// refuses a budget for thinking then.
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

// head returns the beginning of a request.
func (m *Model) head(req *belay.Request, quiet bool) (*wire.Head, error) {
	bound := req.MaxTokens
	if bound <= 0 {
		bound = m.bound()
	}
	return m.heads.Get(req, bound, quiet, func() ([]byte, map[string]string, error) {
		declared, names, err := wire.Declare(req.Tools, wireName, fitSchema)
		if err != nil {
			return nil, nil, err
		}
		data, err := m.encodeHead(req.System, declared, bound, quiet)
		return data, names, err
	})
}

// encodeHead encodes the beginning of a request. The mark behind the system
// prompt covers the tools too, which the service puts before it.
func (m *Model) encodeHead(system string, tools []belay.ToolDeclaration, bound int, quiet bool) ([]byte, error) {
	params := sdk.MessageNewParams{Model: m.name, MaxTokens: int64(bound), Thinking: m.thinkingFor(bound, quiet)}
	for i := range tools {
		t := &tools[i]
		tool := sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](t.InputSchema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	switch {
	case !wire.IsBlank(system):
		params.System = []sdk.TextBlockParam{{Text: system, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	case len(params.Tools) > 0:
		params.Tools[len(params.Tools)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	data, err := params.MarshalJSON()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it belongs to
	}
	return append(data[:len(data)-1], `,"stream":true,"messages":[`...), nil
}
