package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// event is an event of a stream, with the fields that this package reads. The API
// documentation asks clients to ignore events of unknown types.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage tokens `json:"usage"`
	} `json:"message"`
	ContentBlock contentBlock `json:"content_block"`
	Delta        struct {
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage tokens      `json:"usage"`
	Error streamError `json:"error"`
}

// contentBlock is a block of a response, or the start of a block in a stream.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// tokens are the token counts of an event. They are totals, not differences. If a count
// is missing, it has not changed.
type tokens struct {
	Input         *int `json:"input_tokens"`
	Output        *int `json:"output_tokens"`
	CacheRead     *int `json:"cache_read_input_tokens"`
	CacheCreation *int `json:"cache_creation_input_tokens"`
}

// assembly builds a response from its events.
type assembly struct {
	by      string            // Options.Provider or its default
	names   map[string]string // original names of renamed tools, by new name
	ignored []string          // see belay.Response
	parts   []piece
	stop    string
	model   string
	usage   belay.Usage
	stopped bool
}

// piece is a block that may not be complete yet.
type piece struct {
	kind      string
	text      []byte // the text, the thinking or the input of a call
	signature string
	data      string
	id, name  string
}

// add processes an event and returns the chunk to send, which may be empty.
func (a *assembly) add(raw wire.Event) (belay.Chunk, error) {
	var e event
	kind := raw.Type
	switch kind {
	case "", "message_start", "content_block_start", "content_block_delta", "message_delta", "error":
		if err := json.Unmarshal(raw.Data, &e); err != nil {
			return belay.Chunk{}, wire.Unexpected("the event "+kind, err)
		}
		kind = cmp.Or(kind, e.Type) // some gateways send the type only in the data
	}
	switch kind {
	case "message_start":
		a.model = e.Message.Model
		a.count(e.Message.Usage)
	case "content_block_start":
		return a.begin(&e)
	case "content_block_delta":
		return a.extend(&e)
	case "message_delta":
		a.stop = cmp.Or(e.Delta.StopReason, a.stop) // there may be several message_delta events, and some have no reason
		a.count(e.Usage)
	case "message_stop":
		a.stopped = true
	case "error":
		return belay.Chunk{}, &e.Error
	}
	return belay.Chunk{}, nil
}

// whole processes an answer that is not a stream. It returns the chunks to send before the
// response.
func (a *assembly) whole(body []byte) ([]belay.Chunk, error) {
	var message struct {
		Type       string         `json:"type"`
		Model      string         `json:"model"`
		Content    []contentBlock `json:"content"`
		StopReason string         `json:"stop_reason"`
		Usage      tokens         `json:"usage"`
		Error      *streamError   `json:"error"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, wire.Unexpected("the answer", err)
	}
	switch {
	case message.Error != nil:
		return nil, message.Error
	case message.Type != "message":
		return nil, fmt.Errorf("the answer has the type %q instead of \"message\"", message.Type)
	}
	var chunks []belay.Chunk
	for i := range message.Content {
		e := &event{Index: i, ContentBlock: message.Content[i]}
		chunk, err := a.begin(e)
		if err != nil {
			return nil, err
		}
		if p := &a.parts[i]; p.kind == "tool_use" && len(p.text) == 0 && stopReason(message.StopReason, 0) != belay.StopMaxTokens {
			e.Delta.PartialJSON = string(wire.EmptyObject) // a streamed call without input also gets {}
			if chunk, err = a.extend(e); err != nil {
				return nil, err
			}
		}
		if chunk != (belay.Chunk{}) {
			chunks = append(chunks, chunk)
		}
	}
	a.model, a.stop, a.stopped = message.Model, message.StopReason, true
	a.count(message.Usage)
	return chunks, nil
}

// begin starts a block. The event may contain the first content of the block.
func (a *assembly) begin(e *event) (belay.Chunk, error) {
	if e.Index != len(a.parts) {
		return belay.Chunk{}, fmt.Errorf("the service started block %d, but block %d was expected", e.Index, len(a.parts))
	}
	b := &e.ContentBlock
	if own, ok := a.names[b.Name]; ok {
		b.Name = own
	}
	a.parts = append(a.parts, piece{kind: b.Type, id: b.ID, name: b.Name, data: b.Data})
	e.Delta.Text, e.Delta.Thinking, e.Delta.Signature = b.Text, b.Thinking, b.Signature
	if len(b.Input) > 0 && string(b.Input) != "{}" {
		e.Delta.PartialJSON = string(b.Input)
	}
	return a.extend(e)
}

// extend appends the content of an event to a block.
func (a *assembly) extend(e *event) (belay.Chunk, error) {
	if e.Index < 0 || e.Index >= len(a.parts) {
		return belay.Chunk{}, fmt.Errorf("the service sent a part of block %d before its start", e.Index)
	}
	p, d := &a.parts[e.Index], &e.Delta
	switch p.kind {
	case "text":
		p.text = append(p.text, d.Text...)
		return belay.Chunk{Text: d.Text}, nil
	case "thinking":
		p.text = append(p.text, d.Thinking...)
		p.signature += d.Signature
		return belay.Chunk{Thinking: d.Thinking}, nil
	case "tool_use":
		p.text = append(p.text, d.PartialJSON...)
		if d.PartialJSON != "" {
			return belay.Chunk{Input: &belay.InputDelta{Call: p.id, Tool: p.name, Text: d.PartialJSON}}, nil
		}
	}
	return belay.Chunk{}, nil
}

// count stores the totals that an event contains.
func (a *assembly) count(t tokens) {
	for _, c := range [...]struct{ to, from *int }{
		{&a.usage.In, t.Input},
		{&a.usage.Out, t.Output},
		{&a.usage.CacheRead, t.CacheRead},
		{&a.usage.CacheWrite, t.CacheCreation},
	} {
		if c.from != nil {
			*c.to = *c.from
		}
	}
}

func (a *assembly) response() *belay.Response {
	r := &belay.Response{Usage: a.usage, Model: a.model, Ignored: a.ignored}
	calls := 0
	cut := stopReason(a.stop, 0) == belay.StopMaxTokens
	for i := range a.parts {
		switch p := &a.parts[i]; p.kind {
		case "text":
			if len(p.text) > 0 {
				r.Parts = append(r.Parts, belay.Text(string(p.text)))
			}
		case "thinking":
			if len(p.text) > 0 || p.signature != "" {
				r.Parts = append(r.Parts, p.thinking(a.by, opaque{Signature: p.signature}))
			}
		case "redacted_thinking":
			r.Parts = append(r.Parts, p.thinking(a.by, opaque{Redacted: p.data}))
		case "tool_use":
			calls++
			r.Parts = append(r.Parts, belay.Part{Type: belay.PartCall, Call: wire.Call(p.id, p.name, p.text, cut && i == len(a.parts)-1)})
		}
	}
	r.StopReason = stopReason(a.stop, calls)
	return r
}

// thinking returns a thinking part. Its Opaque is the data that Belay must send back.
func (p *piece) thinking(by string, o opaque) belay.Part {
	part := belay.Part{Type: belay.PartThinking, Text: string(p.text), Provider: by}
	if o != (opaque{}) {
		part.Opaque, _ = json.Marshal(o) //nolint:errchkjson // two strings
	}
	return part
}

// stopReason translates a stop reason of the service. The reason pause_turn is only for
// tools that the service runs, and this package declares none.
func stopReason(reason string, calls int) belay.StopReason {
	switch reason {
	case "end_turn", "stop_sequence", "pause_turn":
		return belay.StopEnd
	case "tool_use":
		return belay.StopToolUse
	case "max_tokens", "model_context_window_exceeded":
		return belay.StopMaxTokens
	case "refusal":
		return belay.StopRefusal
	}
	if calls > 0 {
		return belay.StopToolUse
	}
	return belay.StopEnd
}
