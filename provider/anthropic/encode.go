package anthropic

import (
	"encoding/json"
	"fmt"
	"unique"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// provider is the default of Options.Provider.
const provider = "anthropic"

// encoder encodes messages. It is also the key under which a message caches its encoding.
// All models of a service have an equal encoder, so they share the cache.
type encoder struct {
	// provider is compared with Part.Provider: only the service that signed thinking accepts
	// the signature.
	provider unique.Handle[string]
}

// content is an encoded message: its blocks in JSON, separated by commas. All requests
// with the message share this content, so it must not change.
type content struct {
	role   belay.Role
	json   []byte
	blocks []block
}

// block describes a block of content, for cache marks. end is its end in content.json.
type block struct {
	end      int
	markable bool // false for thinking, which cannot have a mark
	reminder bool
	result   bool // the result of a call
}

// encoded returns the content of a message, from the message's cache if possible.
func (m *Model) encoded(message *belay.Message) (*content, error) {
	c, err := message.Encoded(m.encoder, m.encode)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", message.Seq, err)
	}
	return c.(*content), nil
}

// encode encodes a message. The content has no blocks if the service would reject all parts
// of the message.
func (e encoder) encode(m *belay.Message) (any, error) {
	c := &content{role: m.Role}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type == belay.PartMedia && p.Media != nil && m.Role == belay.RoleAssistant { // the service accepts media only from users
			p = &belay.Part{Type: belay.PartText, Text: wire.FileNotice(p.Media)}
		}
		sent, ok := e.blockOf(p)
		if !ok {
			continue
		}
		data, err := json.Marshal(sent)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		if len(c.blocks) > 0 {
			c.json = append(c.json, ',')
		}
		c.json = append(c.json, data...)
		c.blocks = append(c.blocks, block{len(c.json), p.Type != belay.PartThinking, p.IsReminder, p.Type == belay.PartResult})
	}
	c.dropFinalThinking()
	return c, nil
}

// dropFinalThinking removes thinking at the end of a message, because the service rejects it
// there. A response that was cut off can end with thinking.
func (c *content) dropFinalThinking() {
	for n := len(c.blocks); n > 0 && !c.blocks[n-1].markable; n-- {
		c.blocks, c.json = c.blocks[:n-1], c.json[:0]
		if n > 1 {
			c.json = c.json[:c.blocks[n-2].end]
		}
	}
}

// blockOf returns a part as a block. It returns false if the service would reject the part.
func (e encoder) blockOf(p *belay.Part) (any, bool) {
	switch {
	case p.Type == belay.PartText && !wire.IsBlank(p.Text):
		return newTextBlock(p.Text), true
	case p.Type == belay.PartThinking:
		return e.thinkingOf(p)
	case p.Type == belay.PartMedia && p.Media != nil:
		return mediaOf(p.Media), true
	case p.Type == belay.PartCall && p.Call != nil:
		return toolUseBlock{"tool_use", wireID(p.Call.ID), wireName(p.Call.Tool), wire.Object(p.Call.Input)}, true
	case p.Type == belay.PartResult && p.Result != nil:
		return resultOf(p.Result), true
	default:
		return nil, false
	}
}

// opaque is the data that this package stores in Part.Opaque of a thinking part.
type opaque struct {
	// Signature proves that the service wrote the text.
	Signature string `json:"signature,omitempty"`
	// Redacted is encrypted thinking. The part then has no text.
	Redacted string `json:"redacted,omitempty"`
}

// thinkingOf returns a thinking block. It returns false for thinking of another service,
// and for Anthropic's thinking without a signature, because such thinking was cut off.
// Other services may sign nothing and still need their thinking back. If their thinking
// was cut off, it is the last block of its message, and dropFinalThinking removes it.
func (e encoder) thinkingOf(p *belay.Part) (any, bool) {
	var o opaque
	if p.Provider != e.provider.Value() || len(p.Opaque) > 0 && json.Unmarshal(p.Opaque, &o) != nil {
		return nil, false
	}
	if o.Redacted != "" {
		return redactedBlock{"redacted_thinking", o.Redacted}, true
	}
	return thinkingBlock{"thinking", o.Signature, p.Text}, o.Signature != "" || p.Text != "" && p.Provider != provider
}

// resultOf returns the result of a call. The service requires that an error has content, and
// only text. For an error with media, resultOf writes "Error:" before the text instead of
// setting is_error.
func resultOf(r *belay.ResultPart) toolResultBlock {
	result := toolResultBlock{Type: "tool_result", ToolUseID: wireID(r.Call)}
	text := r.Text
	if r.IsError {
		if wire.IsBlank(text) {
			text = "The tool failed and gave no reason."
		}
		if len(r.Media) == 0 {
			result.IsError = true
		} else {
			text = "Error: " + text
		}
	}
	if !wire.IsBlank(text) {
		result.Content = append(result.Content, newTextBlock(text))
	}
	for i := range r.Media {
		result.Content = append(result.Content, mediaOf(&r.Media[i]))
	}
	return result
}
