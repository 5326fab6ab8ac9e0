package gemini

import (
	"encoding/json"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// event is an event of a stream, with the fields that this package reads.
//
//nolint:tagliatelle // the service's names
type event struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text             string        `json:"text"`
				Thought          bool          `json:"thought"`
				ThoughtSignature string        `json:"thoughtSignature"`
				FunctionCall     *functionCall `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	UsageMetadata tokens   `json:"usageMetadata"`
	ModelVersion  string   `json:"modelVersion"`
	ResponseID    string   `json:"responseId"`
	Error         *failure `json:"error"`
}

// tokens are the token counts of an event. They are totals, not differences. If a count
// is missing, it has not changed. The prompt count includes cached tokens. The candidates
// count does not include thoughts.
//
//nolint:tagliatelle // the service's names
type tokens struct {
	Prompt     *int `json:"promptTokenCount"`
	ToolUse    *int `json:"toolUsePromptTokenCount"`
	Cached     *int `json:"cachedContentTokenCount"`
	Candidates *int `json:"candidatesTokenCount"`
	Thoughts   *int `json:"thoughtsTokenCount"`
}

// assembly builds a response from its events.
type assembly struct {
	model string            // the model of the request
	names map[string]string // original names of renamed tools, by new name

	pieces  []piece
	calls   int
	stop    string // the finish reason; if it is set, the response is complete
	message string // the service's explanation of the finish reason
	version string
	id      string
	counted struct{ prompt, toolUse, cached, candidates, thoughts int }
}

// piece is a part that may not be complete yet.
type piece struct {
	kind      belay.PartType
	text      []byte
	signed    []signed // how the service divided the text
	vouched   bool     // one of signed has a signature
	call      *belay.CallPart
	bare      bool   // the call has no input
	signature string // the signature of the call
}

// blocked is this package's finish reason for a prompt that the service blocked.
const blocked = "PROMPT_BLOCKED"

// add processes an event and sends its chunks.
func (a *assembly) add(data []byte, send func(belay.Chunk) bool) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return &failure{Message: wire.Unexpected("an event", err).Error()}
	}
	if e.Error != nil {
		return e.Error
	}
	a.count(e.UsageMetadata)
	if e.ModelVersion != "" {
		a.version = e.ModelVersion
	}
	if e.ResponseID != "" {
		a.id = e.ResponseID
	}
	if e.PromptFeedback.BlockReason != "" && a.stop == "" {
		a.stop = blocked
	}
	if len(e.Candidates) == 0 {
		return nil
	}
	c := &e.Candidates[0] // the request asks for one candidate
	for i := range c.Content.Parts {
		p := &c.Content.Parts[i]
		var chunk belay.Chunk
		switch {
		case p.FunctionCall != nil:
			chunk = a.called(p.FunctionCall, p.ThoughtSignature)
		case p.Thought:
			a.extend(belay.PartThinking, p.Text, p.ThoughtSignature)
			chunk.Thinking = p.Text
		default:
			a.extend(belay.PartText, p.Text, p.ThoughtSignature)
			chunk.Text = p.Text
		}
		if chunk != (belay.Chunk{}) && !send(chunk) {
			return wire.ErrStopped
		}
	}
	if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
		a.stop, a.message = c.FinishReason, c.FinishMessage
	}
	return nil
}

// extend appends to the last piece, or starts a new piece. A signature without text is
// appended to the text before it. If there is no text before it, the signature is a piece of
// its own.
func (a *assembly) extend(kind belay.PartType, text, signature string) {
	if text == "" && signature == "" {
		return
	}
	n := len(a.pieces)
	if n == 0 || a.pieces[n-1].kind != kind || a.pieces[n-1].vouched && wire.IsBlank(string(a.pieces[n-1].text)) {
		a.pieces = append(a.pieces, piece{kind: kind})
		n++
	}
	p := &a.pieces[n-1]
	p.text = append(p.text, text...)
	if last := len(p.signed) - 1; signature == "" && last >= 0 && p.signed[last].Signature == "" {
		p.signed[last].Bytes += len(text) // unsigned text needs no division
	} else {
		p.signed = append(p.signed, signed{len(text), signature})
	}
	p.vouched = p.vouched || signature != ""
}

// called adds a call. A call is always in one event. If the call has no id, called makes one
// from the id of the response, so that the same response always has the same call ids.
func (a *assembly) called(c *functionCall, signature string) belay.Chunk {
	a.calls++
	call := &belay.CallPart{ID: c.ID, Tool: c.Name, Input: c.Args}
	if call.ID == "" {
		call.ID = "call_" + strconv.Itoa(a.calls)
		if a.id != "" {
			call.ID = a.id + "_" + strconv.Itoa(a.calls)
		}
	}
	if name, ok := a.names[c.Name]; ok {
		call.Tool = name
	}
	bare := len(call.Input) == 0 || string(call.Input) == "null"
	if bare {
		call.Input = wire.EmptyObject
	}
	delta := &belay.InputDelta{Call: call.ID, Tool: call.Tool, Text: string(call.Input)}
	if call.Input[0] != '{' { // JSON, but not an object
		call.Malformed, call.Input = string(call.Input), wire.EmptyObject
	}
	a.pieces = append(a.pieces, piece{kind: belay.PartCall, call: call, bare: bare, signature: signature})
	return belay.Chunk{Input: delta}
}

// count stores the totals that an event contains.
func (a *assembly) count(t tokens) {
	for _, c := range [...]struct{ to, from *int }{
		{&a.counted.prompt, t.Prompt},
		{&a.counted.toolUse, t.ToolUse},
		{&a.counted.cached, t.Cached},
		{&a.counted.candidates, t.Candidates},
		{&a.counted.thoughts, t.Thoughts},
	} {
		if c.from != nil {
			*c.to = *c.from
		}
	}
}

func (a *assembly) response() *belay.Response {
	c := &a.counted
	r := &belay.Response{Model: a.version, StopReason: stopReason(a.stop, a.calls), Usage: belay.Usage{
		In: max(c.prompt-c.cached, 0) + c.toolUse, CacheRead: c.cached, Out: c.candidates + c.thoughts,
	}}
	for i := range a.pieces {
		p := &a.pieces[i]
		if p.bare && r.StopReason == belay.StopMaxTokens && i == len(a.pieces)-1 {
			p.call.Malformed = "{" // the limit may have cut off the input
		}
		r.Parts = append(r.Parts, p.part(a.model))
	}
	return r
}

// part returns the piece as a part, with the data that Belay must send back to the
// service.
func (p *piece) part(model string) belay.Part {
	part := belay.Part{Type: p.kind, Text: string(p.text), Call: p.call}
	o := opaque{Model: model, Signature: p.signature}
	if p.vouched {
		o.Pieces = p.signed
	}
	if p.kind == belay.PartText && wire.IsBlank(part.Text) && p.vouched {
		part.Type, o.Spoken = belay.PartThinking, true
	}
	if part.Type == belay.PartThinking || p.vouched || p.signature != "" {
		part.Provider = provider
		part.Opaque, _ = json.Marshal(o) //nolint:errchkjson // strings and numbers
	}
	return part
}
