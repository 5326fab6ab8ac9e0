package gemini

import (
	"encoding/json"
	"fmt"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// provider is the name under which this package marks what it wants back.
const provider = "gemini"

// encoding is the key under which messages keep their encoding. It depends on the
// model, since a signature goes to the model that made it.
type encoding struct{ model string }

// content is a message as the service wants it: its parts in JSON, separated by
// commas. It is shared by all requests that hold the message.
type content struct {
	model bool // it is on the model's side
	json  []byte
}

// part is a part as the service wants it. The SDK's own has no text that is
// empty, which a signature may come with, and changes the numbers of inputs.
//
//nolint:tagliatelle // the service's names
type part struct {
	Text             *string               `json:"text,omitempty"`
	Thought          bool                  `json:"thought,omitempty"`
	InlineData       *sdk.Blob             `json:"inlineData,omitempty"`
	FileData         *sdk.FileData         `json:"fileData,omitempty"`
	FunctionCall     *functionCall         `json:"functionCall,omitempty"`
	FunctionResponse *sdk.FunctionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string                `json:"thoughtSignature,omitempty"`
}

// functionCall is a call as it comes and goes.
type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// anyCall is the signature that Google has for calls that none of its models
// made: those of Gemini 3 and later refuse a call without one.
const anyCall = "skip_thought_signature_validator"

// opaque is what this package keeps with a part.
type opaque struct {
	// Model is who said it. No other model can read its signatures.
	Model string `json:"model"`
	// Signature vouches for a call.
	Signature string `json:"signature,omitempty"`
	// Pieces are how a text came, if a piece of it is signed.
	Pieces []signed `json:"pieces,omitempty"`
	// Spoken says that what is kept as thinking came as text: there is a signature
	// and nothing to read.
	Spoken bool `json:"spoken,omitempty"`
}

// signed is a piece of a text, by its length in bytes, and what vouches for it.
type signed struct {
	Bytes     int    `json:"bytes"`
	Signature string `json:"signature,omitempty"`
}

// encoded returns the content of a message, from the message's cache if it can.
func (m *Model) encoded(message *belay.Message) (*content, error) {
	c, err := message.Encoded(m.as, m.encoder)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", message.Seq, err)
	}
	return c.(*content), nil
}

// encode encodes a message. It has no parts if the message says nothing that the
// service takes.
func (m *Model) encode(message *belay.Message) (any, error) {
	c := &content{model: message.Role == belay.RoleAssistant}
	calls := 0
	for i := range message.Parts {
		p := &message.Parts[i]
		parts := m.partsOf(p)
		if p.Type == belay.PartCall && len(parts) > 0 {
			if calls++; calls == 1 && m.newer && parts[0].ThoughtSignature == "" {
				parts[0].ThoughtSignature = anyCall // of parallel calls the first is signed
			}
		}
		for _, sent := range parts {
			data, err := json.Marshal(sent)
			if err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
			if len(c.json) > 0 {
				c.json = append(c.json, ',')
			}
			c.json = append(c.json, data...)
		}
	}
	return c, nil
}

// partsOf returns a part as the service takes it: most are one, and some none.
func (m *Model) partsOf(p *belay.Part) []part {
	switch {
	case p.Type == belay.PartText && !wire.IsBlank(p.Text):
		o, _ := m.own(p)
		return textOf(p.Text, false, o.Pieces)
	case p.Type == belay.PartThinking:
		if o, ok := m.own(p); ok {
			return textOf(p.Text, !o.Spoken, o.Pieces)
		}
	case p.Type == belay.PartMedia && p.Media != nil:
		return mediaOf(asItIs(p.Media))
	case p.Type == belay.PartCall && p.Call != nil:
		o, _ := m.own(p)
		call := &functionCall{ID: p.Call.ID, Name: sentName(p.Call.Tool), Args: wire.Object(p.Call.Input)}
		return []part{{FunctionCall: call, ThoughtSignature: o.Signature}}
	case p.Type == belay.PartResult && p.Result != nil:
		return m.resultOf(p.Result)
	}
	return nil
}

// own returns what is kept with a part, if this model said it.
func (m *Model) own(p *belay.Part) (opaque, bool) {
	var o opaque
	if p.Provider != provider || json.Unmarshal(p.Opaque, &o) != nil || o.Model != m.name {
		return opaque{}, false
	}
	return o, true
}

// textOf returns a text in the pieces that it came in, if they are known.
func textOf(text string, thought bool, pieces []signed) []part {
	sum := 0
	for _, s := range pieces {
		sum += max(s.Bytes, 0)
	}
	if sum != len(text) || len(pieces) == 0 {
		if text == "" {
			return nil
		}
		return []part{{Text: &text, Thought: thought}}
	}
	parts := make([]part, 0, len(pieces))
	for _, s := range pieces {
		var piece string
		piece, text = text[:max(s.Bytes, 0)], text[max(s.Bytes, 0):]
		parts = append(parts, part{Text: &piece, Thought: thought, ThoughtSignature: s.Signature})
	}
	return parts
}

// resultOf returns the result of a call, and behind it what does not go into it.
func (m *Model) resultOf(r *belay.ResultPart) []part {
	said := map[string]any{"output": r.Text}
	if r.IsError {
		said = map[string]any{"error": r.Text}
		if wire.IsBlank(r.Text) {
			said["error"] = "The tool failed and did not say why."
		}
	}
	response := &sdk.FunctionResponse{ID: r.Call, Name: sentName(r.Tool), Response: said}
	parts := []part{{FunctionResponse: response}}
	for i := range r.Media {
		media := asItIs(&r.Media[i])
		if blob := m.withinResult(media); blob != nil {
			response.Parts = append(response.Parts, &sdk.FunctionResponsePart{InlineData: blob})
		} else {
			parts = append(parts, mediaOf(media)...)
		}
	}
	return parts
}
