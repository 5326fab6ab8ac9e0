package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// provider is Part.Provider of the parts that this package returns.
const provider = "gemini"

// encoding is the key under which a message caches its encoding. It contains the model,
// because Belay sends a signature only to the model that made it.
type encoding struct{ model string }

// content is an encoded message: its parts in JSON, separated by commas. All requests
// with the message share this content, so it must not change.
type content struct {
	model bool // the role is "model"
	json  []byte
}

// anyCall is the signature that Google provides for calls of other models. Gemini 3 and
// later reject a call without a signature.
const anyCall = "skip_thought_signature_validator"

// opaque is the data that this package stores in Part.Opaque.
type opaque struct {
	// Model is the model that made the part. No other model accepts its signatures.
	Model string `json:"model"`
	// Signature is the signature of a call.
	Signature string `json:"signature,omitempty"`
	// Pieces says how the service divided a text, if a piece has a signature.
	Pieces []signed `json:"pieces,omitempty"`
	// Spoken means that the service sent this thinking part as text. The part has a
	// signature, and its text is only white space.
	Spoken bool `json:"spoken,omitempty"`
}

// signed is a piece of a text: its length in bytes and its signature.
type signed struct {
	Bytes     int    `json:"bytes"`
	Signature string `json:"signature,omitempty"`
}

// encoded returns the content of a message, from the message's cache if possible.
func (m *Model) encoded(message *belay.Message) (*content, error) {
	c, err := message.Encoded(m.as, m.encoder)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", message.Seq, err)
	}
	return c.(*content), nil
}

// encode encodes a message. The content is empty if the service would reject all parts of
// the message.
func (m *Model) encode(message *belay.Message) (any, error) {
	c := &content{model: message.Role == belay.RoleAssistant}
	calls := 0
	for i := range message.Parts {
		p := &message.Parts[i]
		parts := m.partsOf(p)
		if p.Type == belay.PartCall && len(parts) > 0 {
			if calls++; calls == 1 && m.newer && parts[0].ThoughtSignature == "" {
				parts[0].ThoughtSignature = anyCall // of parallel calls, only the first has a signature
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

// partsOf returns a part in the form of the service. Usually this is one part. It can be
// none or several.
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

// own returns the data in Part.Opaque. It returns false if another model made the part.
func (m *Model) own(p *belay.Part) (opaque, bool) {
	var o opaque
	if p.Provider != provider || json.Unmarshal(p.Opaque, &o) != nil || o.Model != m.name {
		return opaque{}, false
	}
	return o, true
}

// textOf returns a text. If the lengths in pieces fit the text, textOf divides it into these
// pieces.
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

// resultOf returns the result of a call. Media that cannot be inside the result are parts
// after it.
func (m *Model) resultOf(r *belay.ResultPart) []part {
	said := map[string]string{"output": r.Text}
	if r.IsError {
		said = map[string]string{"error": r.Text}
		if wire.IsBlank(r.Text) {
			said["error"] = "The tool failed and gave no reason."
		}
	}
	response := &functionResponse{ID: r.Call, Name: sentName(r.Tool), Response: said}
	parts := []part{{FunctionResponse: response}}
	for i := range r.Media {
		media := asItIs(&r.Media[i])
		if inside := m.withinResult(media); inside != nil {
			response.Parts = append(response.Parts, responsePart{InlineData: inside})
		} else {
			parts = append(parts, mediaOf(media)...)
		}
	}
	return parts
}
