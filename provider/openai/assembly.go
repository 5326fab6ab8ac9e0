package openai

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// assembler builds a response from events or from an answer that is not a stream.
type assembler interface {
	// event processes an event and returns the chunks to send.
	event(e wire.Event) ([]belay.Chunk, error)
	// whole processes an answer that is not a stream, and returns the chunks to send.
	whole(body []byte) ([]belay.Chunk, error)
	// complete reports whether the response is complete now, and whether it would be
	// complete if the stream ended now.
	complete() (now, atEnd bool)
	// response returns the response. Call it only when the response is complete.
	response() *belay.Response
}

// assembly is the part of an assembler that both protocols share.
type assembly struct {
	provider string
	names    map[string]string // original names of renamed tools, by new name
	pieces   []*piece
	chunks   []belay.Chunk // the chunks of the current event
	stop     belay.StopReason
	refused  bool
	model    string
	usage    belay.Usage
}

// piece is a part that may not be complete yet.
type piece struct {
	kind     belay.PartType
	text     []byte // the text, the thinking or the input of a call
	id, name string
	opaque   opaque
	part     int // SummaryIndex of the last event for this piece
}

func (a *assembly) begin(kind belay.PartType) *piece {
	p := &piece{kind: kind}
	a.pieces = append(a.pieces, p)
	return p
}

// call sets the id and the tool of a call. The name may be one that Belay sent instead of
// the tool's original name.
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

// extend appends text to a part and adds a chunk with the text.
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

// take returns the chunks since the last call of take. They are valid until the next event.
func (a *assembly) take() []belay.Chunk {
	chunks := a.chunks
	a.chunks = a.chunks[:0]
	return chunks
}

func (a *assembly) calls() int {
	n := 0
	for _, p := range a.pieces {
		if p.kind == belay.PartCall {
			n++
		}
	}
	return n
}

// ended sets the default stop reason, for a service that sends none.
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

// keep stores o in a part, so that Belay can send the data back to the service. It reports
// whether o has any data.
func (a *assembly) keep(part *belay.Part, o *opaque) bool {
	data, err := json.Marshal(o)
	if err != nil || string(data) == "{}" {
		return false
	}
	part.Opaque, part.Provider = data, a.provider
	return true
}

// count sets the usage. The service includes cached tokens in the input tokens. Belay
// counts them separately.
func (a *assembly) count(in, out, read, written int) {
	a.usage = belay.Usage{In: max(in-read-written, 0), Out: out, CacheRead: read, CacheWrite: written, Cost: a.usage.Cost}
}
