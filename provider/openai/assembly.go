package openai

import (
	"encoding/json"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// assembler puts a response together, from events or from the whole of it.
type assembler interface {
	// event takes the next event and returns what of it is worth telling at once.
	event(e ssestream.Event) ([]belay.Chunk, error)
	// whole takes an answer that was not streamed.
	whole(body []byte) ([]belay.Chunk, error)
	// complete reports whether the response is complete: now, or if the stream ends
	// here.
	complete() (now, atEnd bool)
	// response returns the response.
	response() *belay.Response
}

// assembly is what both protocols need to put a response together.
type assembly struct {
	provider string
	names    map[string]string // of tools, by what they became
	pieces   []*piece
	told     []belay.Chunk // by the event at hand
	stop     belay.StopReason
	refused  bool
	model    string
	usage    belay.Usage
}

// piece is a part under way.
type piece struct {
	kind     belay.PartType
	text     []byte // text, thinking, or the input of a call
	id, name string
	opaque   opaque
	part     int // of a summary
}

// begin begins a part.
func (a *assembly) begin(kind belay.PartType) *piece {
	p := &piece{kind: kind}
	a.pieces = append(a.pieces, p)
	return p
}

// call makes a piece a call of a tool, by the name that the service has for it.
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

// extend adds to a part and tells it.
func (a *assembly) extend(p *piece, text string) {
	if text == "" {
		return
	}
	p.text = append(p.text, text...)
	switch p.kind {
	case belay.PartText:
		a.told = append(a.told, belay.Chunk{Text: text})
	case belay.PartThinking:
		a.told = append(a.told, belay.Chunk{Thinking: text})
	case belay.PartCall:
		a.told = append(a.told, belay.Chunk{Input: &belay.InputDelta{Call: p.id, Tool: p.name, Text: text}})
	default:
	}
}

// tell returns what is worth telling since it was last asked.
func (a *assembly) tell() []belay.Chunk {
	told := a.told
	a.told = a.told[:0]
	return told
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

// ended sets why the model stopped, if nothing says otherwise.
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

// response returns the whole of it.
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

// keep keeps with a part what the service wants back, and reports whether there is
// anything.
func (a *assembly) keep(part *belay.Part, o *opaque) bool {
	data, err := json.Marshal(o)
	if err != nil || string(data) == "{}" {
		return false
	}
	part.Opaque, part.Provider = data, a.provider
	return true
}

// count counts tokens: the service counts those from and to its cache among those
// that come in.
func (a *assembly) count(in, out, read, written int) {
	a.usage = belay.Usage{In: max(in-read-written, 0), Out: out, CacheRead: read, CacheWrite: written, Cost: a.usage.Cost}
}
