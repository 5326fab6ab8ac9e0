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

// provider is who serves Claude, unless the options say another.
const provider = "anthropic"

// encoder encodes messages, and is the key under which they keep their encoding. It is
// the same for all models of a service, since the encoding is.
type encoder struct {
	// provider is the name under which this package marks what it wants back: what one
	// service signed, no other takes for signed.
	provider unique.Handle[string]
}

// content is a message as the service wants it: its blocks in JSON, separated by
// commas. It is shared by all requests that hold the message.
type content struct {
	role   belay.Role
	json   []byte
	blocks []block
}

// block is where a block ends and what matters for marking it.
type block struct {
	end      int
	markable bool // thinking cannot carry a mark
	reminder bool
	result   bool // of a call
}

// encoded returns the content of a message, from the message's cache if it can.
func (m *Model) encoded(message *belay.Message) (*content, error) {
	c, err := message.Encoded(m.encoder, m.encode)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", message.Seq, err)
	}
	return c.(*content), nil
}

// encode encodes a message. It has no blocks if the message says nothing that
// the service takes.
func (e encoder) encode(m *belay.Message) (any, error) {
	c := &content{role: m.Role}
	for i := range m.Parts {
		p := &m.Parts[i]
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
	c.endWithWords()
	return c, nil
}

// endWithWords takes thinking off that nothing follows, as when a response is cut off:
// the service refuses a message that ends with it.
func (c *content) endWithWords() {
	for n := len(c.blocks); n > 0 && !c.blocks[n-1].markable; n-- {
		c.blocks, c.json = c.blocks[:n-1], c.json[:0]
		if n > 1 {
			c.json = c.json[:c.blocks[n-2].end]
		}
	}
}

// blockOf returns a part as a block, unless the service would not take it.
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

// opaque is what this package keeps with a part of thinking.
type opaque struct {
	// Signature vouches for the text.
	Signature string `json:"signature,omitempty"`
	// Redacted is thinking that only the service can read. There is no text.
	Redacted string `json:"redacted,omitempty"`
}

// thinkingOf returns thinking that came from the service. What has no signature was cut
// off, or is somebody else's; but other services than Anthropic may sign nothing, and want
// it back all the same. If it was cut off there it is the last of its message, and left out.
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

// resultOf returns the result of a call. The service wants an error to say something,
// and to say it in text: one that shows something is told to be one in words.
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
