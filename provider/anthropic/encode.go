package anthropic

import (
	"encoding/json"
	"fmt"
	"unique"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// provider is the name of the provider, unless the options set another.
const provider = "anthropic"

// encoder encodes messages. It is also the key under which a message keeps its encoding: all
// models of a service share it, since they share the encoding.
type encoder struct {
	// provider marks the parts that must be sent back to the service. A signature is valid
	// only for the service that made it.
	provider unique.Handle[string]
}

// content is an encoded message: its blocks in JSON, separated by commas. All requests
// that contain the message share it.
type content struct {
	role   belay.Role
	json   []byte
	blocks []block
}

// block says where a block ends and what is needed to place cache marks.
type block struct {
	end      int
	markable bool // thinking cannot have a mark
	reminder bool
	result   bool // the result of a call
}

// encoded returns the content of a message, from the cache of the message if it is there.
func (m *Model) encoded(message *belay.Message) (*content, error) {
	c, err := message.Encoded(m.encoder, m.encode)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", message.Seq, err)
	}
	return c.(*content), nil
}

// encode encodes a message. The content has no blocks if the service accepts no part of the
// message.
func (e encoder) encode(m *belay.Message) (any, error) {
	c := &content{role: m.Role}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type == belay.PartMedia && p.Media != nil && m.Role == belay.RoleAssistant { // the service accepts it only from users
			p = &belay.Part{Type: belay.PartText, Text: wire.FileNotice(p.Media)}
		}
		union, ok := e.blockOf(p)
		if !ok {
			continue
		}
		data, err := union.MarshalJSON()
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

// dropFinalThinking removes thinking at the end of a message, as in a response that was cut
// off: the service rejects a message that ends with thinking.
func (c *content) dropFinalThinking() {
	for n := len(c.blocks); n > 0 && !c.blocks[n-1].markable; n-- {
		c.blocks, c.json = c.blocks[:n-1], c.json[:0]
		if n > 1 {
			c.json = c.json[:c.blocks[n-2].end]
		}
	}
}

// blockOf returns a part as a block, or false if the service would reject it.
func (e encoder) blockOf(p *belay.Part) (sdk.ContentBlockParamUnion, bool) {
	switch {
	case p.Type == belay.PartText && !wire.IsBlank(p.Text):
		return sdk.NewTextBlock(p.Text), true
	case p.Type == belay.PartThinking:
		return e.thinkingOf(p)
	case p.Type == belay.PartMedia && p.Media != nil:
		return mediaOf(p.Media), true
	case p.Type == belay.PartCall && p.Call != nil:
		return sdk.NewToolUseBlock(wireID(p.Call.ID), wire.Object(p.Call.Input), wireName(p.Call.Tool)), true
	case p.Type == belay.PartResult && p.Result != nil:
		return resultOf(p.Result), true
	default:
		return sdk.ContentBlockParamUnion{}, false
	}
}

// opaque is the data that this package keeps with a part of thinking.
type opaque struct {
	// Signature proves that the text is the service's own.
	Signature string `json:"signature,omitempty"`
	// Redacted is encrypted thinking that only the service can read. The part has no text.
	Redacted string `json:"redacted,omitempty"`
}

// thinkingOf returns the block of thinking, or false if it did not come from this service.
// Anthropic's thinking without a signature was cut off, and is left out. Other services may
// sign nothing and still need their thinking back; if it was cut off it is last in its
// message, where dropFinalThinking removes it.
func (e encoder) thinkingOf(p *belay.Part) (sdk.ContentBlockParamUnion, bool) {
	var o opaque
	if p.Provider != e.provider.Value() || len(p.Opaque) > 0 && json.Unmarshal(p.Opaque, &o) != nil {
		return sdk.ContentBlockParamUnion{}, false
	}
	if o.Redacted != "" {
		return sdk.NewRedactedThinkingBlock(o.Redacted), true
	}
	return sdk.NewThinkingBlock(o.Signature, p.Text), o.Signature != "" || p.Text != "" && p.Provider != provider
}

// resultOf returns the result of a call. The service requires that an error has content, and
// that the content is text: an error with media is marked with the word Error instead.
func resultOf(r *belay.ResultPart) sdk.ContentBlockParamUnion {
	result := sdk.ToolResultBlockParam{ToolUseID: wireID(r.Call)}
	text := r.Text
	if r.IsError {
		if wire.IsBlank(text) {
			text = "The tool failed and did not say why."
		}
		if len(r.Media) == 0 {
			result.IsError = param.NewOpt(true)
		} else {
			text = "Error: " + text
		}
	}
	if !wire.IsBlank(text) {
		result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: text}})
	}
	for i := range r.Media {
		m := mediaOf(&r.Media[i])
		result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: m.OfText, OfImage: m.OfImage, OfDocument: m.OfDocument})
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &result}
}
