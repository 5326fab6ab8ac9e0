package openai

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// assembler builds a response from events, or from an answer that was not streamed.
type assembler interface {
	// event takes the next event and returns the chunks to send for it.
	event(e wire.Event) ([]belay.Chunk, error)
	// whole takes an answer that was not streamed, and returns the chunks to send for it.
	whole(body []byte) ([]belay.Chunk, error)
	// complete reports whether the response is complete now, and whether it is complete if
	// the stream ends here.
	complete() (now, atEnd bool)
	// response returns the response.
	response() *belay.Response
}

// assembly is the part of an assembler that both protocols share.
type assembly struct {
	provider string
	names    map[string]string // original names of renamed tools, by the new name
	pieces   []*piece
	chunks   []belay.Chunk // of the current event
	stop     belay.StopReason
	refused  bool
	model    string
	usage    belay.Usage
}

// piece is a part that is not complete yet.
type piece struct {
	kind     belay.PartType
	text     []byte // text, thinking, or the input of a call
	id, name string
	opaque   opaque
	part     int // the current part of a summary
}

// begin starts a part.
func (a *assembly) begin(kind belay.PartType) *piece {
	p := &piece{kind: kind}
	a.pieces = append(a.pieces, p)
	return p
}

// call sets the id and the tool of a call. The name is the one that the service knows.
func (a *assembly) call(p *piece, id, name string) {
	if id != "" {
		p.id = id
	}
	if own, ok := a.names[name]; ok {
		name = own
	}
	if name != "" {
		p.name = name
	}
}

// extend appends to a part, and adds a chunk for it.
func (a *assembly) extend(p *piece, text string) {
	if text == "" {
		return
	}
	p.text = append(p.text, text...)
	switch p.kind {
	case belay.PartText:
		a.chunks = append(a.chunks, belay.Chunk{Text: text})
	case belay.PartThinking:
		a.chunks = append(a.chunks, belay.Chunk{Thinking: text})
	case belay.PartCall:
		a.chunks = append(a.chunks, belay.Chunk{Input: &belay.InputDelta{Call: p.id, Tool: p.name, Text: text}})
	default:
	}
}

// take returns the chunks since the last call. They are valid until the next event.
func (a *assembly) take() []belay.Chunk {
	chunks := a.chunks
	a.chunks = a.chunks[:0]
	return chunks
}

// calls counts the calls.
func (a *assembly) calls() int {
	n := 0
	for _, p := range a.pieces {
		if p.kind == belay.PartCall {
			n++
		}
	}
	return n
}

// ended sets the stop reason, for a service that gives none.
func (a *assembly) ended() {
	switch {
	case a.refused:
		a.stop = belay.StopRefusal
	case a.calls() > 0:
		a.stop = belay.StopToolUse
	default:
		a.stop = belay.StopEnd
	}
}

// response returns the complete response.
func (a *assembly) response() *belay.Response {
	r := &belay.Response{Usage: a.usage, Model: a.model, StopReason: a.stop}
	for i, p := range a.pieces {
		part := belay.Part{Type: p.kind}
		switch p.kind {
		case belay.PartText:
			if part.Text = string(p.text); part.Text == "" {
				continue
			}
			a.keep(&part, &p.opaque)
		case belay.PartThinking:
			part.Text = string(p.text)
			if !a.keep(&part, &p.opaque) && part.Text == "" {
				continue
			}
			part.Provider = a.provider
		case belay.PartCall:
			part.Call = wire.Call(p.id, p.name, p.text, a.stop == belay.StopMaxTokens && i == len(a.pieces)-1)
		default:
			continue
		}
		r.Parts = append(r.Parts, part)
	}
	return r
}

// keep stores with a part the data that must be sent back to the service, and reports whether
// there is any.
func (a *assembly) keep(part *belay.Part, o *opaque) bool {
	data, err := json.Marshal(o)
	if err != nil || string(data) == "{}" {
		return false
	}
	part.Opaque, part.Provider = data, a.provider
	return true
}

// count sets the usage. The service includes tokens read from and written to its cache in the
// input tokens; belay counts them separately.
func (a *assembly) count(in, out, read, written int) {
	a.usage = belay.Usage{In: max(in-read-written, 0), Out: out, CacheRead: read, CacheWrite: written, Cost: a.usage.Cost}
}
