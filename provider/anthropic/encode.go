package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/belay-run/belay"
)

// provider is the name under which this package marks what it wants back.
const provider = "anthropic"

// encoder is the key under which messages keep their encoding. It is the same
// for all models, since the encoding is.
type encoder struct{}

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
func encoded(m *belay.Message) (*content, error) {
	c, err := m.Encoded(encoder{}, encode)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	return c.(*content), nil
}

// encode encodes a message. It has no blocks if the message says nothing that
// the service takes.
func encode(m *belay.Message) (any, error) {
	c := &content{role: m.Role}
	for i := range m.Parts {
		p := &m.Parts[i]
		union, ok := blockOf(p)
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
	return c, nil
}

// blockOf returns a part as a block, unless the service would not take it.
func blockOf(p *belay.Part) (sdk.ContentBlockParamUnion, bool) {
	switch {
	case p.Type == belay.PartText && !blank(p.Text):
		return sdk.NewTextBlock(p.Text), true
	case p.Type == belay.PartThinking:
		return thinkingOf(p)
	case p.Type == belay.PartMedia && p.Media != nil:
		return mediaOf(p.Media), true
	case p.Type == belay.PartCall && p.Call != nil:
		return sdk.NewToolUseBlock(wireID(p.Call.ID), objectOf(p.Call.Input), wireName(p.Call.Tool)), true
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

// thinkingOf returns thinking that came from the service. What has no signature
// was cut off, or is somebody else's.
func thinkingOf(p *belay.Part) (sdk.ContentBlockParamUnion, bool) {
	var o opaque
	if p.Provider != provider || json.Unmarshal(p.Opaque, &o) != nil {
		return sdk.ContentBlockParamUnion{}, false
	}
	if o.Redacted != "" {
		return sdk.NewRedactedThinkingBlock(o.Redacted), true
	}
	return sdk.NewThinkingBlock(o.Signature, p.Text), o.Signature != ""
}

// resultOf returns the result of a call. The service wants an error to say
// something.
func resultOf(r *belay.ResultPart) sdk.ContentBlockParamUnion {
	result := sdk.ToolResultBlockParam{ToolUseID: wireID(r.Call)}
	text := r.Text
	if r.IsError {
		result.IsError = param.NewOpt(true)
		if blank(text) && len(r.Media) == 0 {
			text = "The tool failed and did not say why."
		}
	}
	if !blank(text) {
		result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: text}})
	}
	for i := range r.Media {
		m := mediaOf(&r.Media[i])
		result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: m.OfText, OfImage: m.OfImage, OfDocument: m.OfDocument})
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &result}
}

// imageTypes are the images that the service looks at.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// mediaOf returns an image or a file, or a text that says what cannot be shown.
func mediaOf(m *belay.Media) sdk.ContentBlockParamUnion {
	switch {
	case slices.Contains(imageTypes, m.MIME) && len(m.Data) > 0:
		return sdk.NewImageBlockBase64(m.MIME, base64.StdEncoding.EncodeToString(m.Data))
	case slices.Contains(imageTypes, m.MIME) && m.URL != "":
		return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: m.URL})
	case m.MIME == "application/pdf" && len(m.Data) > 0:
		return titled(sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(m.Data)}), m.Name)
	case m.MIME == "application/pdf" && m.URL != "":
		return titled(sdk.NewDocumentBlock(sdk.URLPDFSourceParam{URL: m.URL}), m.Name)
	case strings.HasPrefix(m.MIME, "text/") && !blank(string(m.Data)):
		return titled(sdk.NewDocumentBlock(sdk.PlainTextSourceParam{Data: string(m.Data)}), m.Name)
	default:
		return sdk.NewTextBlock(fmt.Sprintf("[A file that cannot be shown: name %q, type %q, %d bytes, address %q]", m.Name, m.MIME, len(m.Data), m.URL))
	}
}

// titled puts a file's name on a document.
func titled(document sdk.ContentBlockParamUnion, name string) sdk.ContentBlockParamUnion {
	if name != "" {
		document.OfDocument.Title = param.NewOpt(name)
	}
	return document
}

// blank reports whether a text has nothing to read, which the service refuses.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// emptyObject is the input of a call that has none.
var emptyObject = json.RawMessage("{}")

// objectOf returns the input of a call, which the service wants to be an object.
func objectOf(input json.RawMessage) json.RawMessage {
	if !isObject(input) {
		return emptyObject
	}
	return input
}

// isObject reports whether a text is a JSON object.
func isObject(text []byte) bool {
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{':
			return json.Valid(text)
		}
		break
	}
	return false
}
