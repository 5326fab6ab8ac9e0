package providertest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // image.DecodeConfig needs the formats
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// anthropicBlock is a block of any type. blockFields lists the fields of each type.
type anthropicBlock struct {
	Type         string           `json:"type"`
	CacheControl *anthropicMark   `json:"cache_control"`
	Text         string           `json:"text"`
	Thinking     *string          `json:"thinking"`
	Signature    string           `json:"signature"`
	Data         string           `json:"data"`
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Input        json.RawMessage  `json:"input"`
	ToolUseID    string           `json:"tool_use_id"`
	Content      json.RawMessage  `json:"content"`
	IsError      bool             `json:"is_error"`
	Source       *anthropicSource `json:"source"`
	Title        string           `json:"title"`
	Context      string           `json:"context"`
	Citations    json.RawMessage  `json:"citations"`
}

type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// blockFields are the fields that each type of block may have, in addition to "type".
var blockFields = map[string][]string{
	"text":              {"text", "cache_control", "citations"},
	"thinking":          {"thinking", "signature"},
	"redacted_thinking": {"data"},
	"image":             {"source", "cache_control"},
	"document":          {"source", "title", "context", "citations", "cache_control"},
	"tool_use":          {"id", "name", "input", "cache_control"},
	"tool_result":       {"tool_use_id", "content", "is_error", "cache_control"},
}

// callID matches the valid ids of calls.
var callID = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)

// block decodes a block and checks its fields.
func (c *anthropicChecked) block(at string, raw json.RawMessage) (*anthropicBlock, error) {
	var fields map[string]json.RawMessage
	var b anthropicBlock
	if json.Unmarshal(raw, &fields) != nil {
		return nil, fmt.Errorf("%s: must be an object", at)
	}
	if err := strict(at, raw, &b); err != nil {
		return nil, err
	}
	allowed, ok := blockFields[b.Type]
	if !ok {
		return nil, fmt.Errorf("%s.type: %q is not known", at, b.Type)
	}
	for name := range fields {
		if name != "type" && !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("%s.%s.%s: extra inputs are not permitted", at, b.Type, name)
		}
	}
	if err := c.mark(at, b.CacheControl); err != nil {
		return nil, err
	}
	return &b, checkBlock(at, &b)
}

func checkBlock(at string, b *anthropicBlock) error {
	switch b.Type {
	case "text":
		if b.Text == "" {
			return fmt.Errorf("%s: text content blocks must be non-empty", at)
		}
		if strings.TrimSpace(b.Text) == "" {
			return fmt.Errorf("%s: text content blocks must contain non-whitespace text", at)
		}
	case "thinking":
		if b.Thinking == nil {
			return fmt.Errorf("%s.thinking: field required", at)
		}
		if b.Signature != signature(*b.Thinking) {
			return fmt.Errorf("%s: invalid signature in thinking block: it is missing, or the thinking was changed", at)
		}
	case "redacted_thinking":
		if !isRedacted(b.Data) {
			return fmt.Errorf("%s: invalid data in redacted_thinking block", at)
		}
	case "tool_use":
		switch {
		case !callID.MatchString(b.ID):
			return fmt.Errorf("%s.tool_use.id: %q must match %s", at, b.ID, callID)
		case !toolName.MatchString(b.Name):
			return fmt.Errorf("%s.tool_use.name: %q must match %s", at, b.Name, toolName)
		case json.Unmarshal(b.Input, &map[string]json.RawMessage{}) != nil || string(b.Input) == "null":
			return fmt.Errorf("%s.tool_use.input: must be an object", at)
		}
	case "tool_result":
		if b.ToolUseID == "" {
			return fmt.Errorf("%s.tool_result.tool_use_id: field required", at)
		}
	case "image", "document":
		return checkSource(at, b)
	}
	return nil
}

// checkSource checks the source of an image or a document.
func checkSource(at string, b *anthropicBlock) error {
	s := b.Source
	if s == nil {
		return fmt.Errorf("%s.source: field required", at)
	}
	types := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	if b.Type == "document" {
		types = []string{"application/pdf"}
	}
	switch data, err := base64.StdEncoding.DecodeString(s.Data); {
	case s.Type == "url" && strings.HasPrefix(s.URL, "http"):
	case s.Type == "text" && b.Type == "document" && s.MediaType == "text/plain" && s.Data != "":
	case s.Type != "base64":
		return fmt.Errorf("%s.source.type: %q does not fit", at, s.Type)
	case !slices.Contains(types, s.MediaType):
		return fmt.Errorf("%s.source.media_type: %q is not allowed: use one of %s", at, s.MediaType, quoted(types))
	case err != nil || len(data) == 0:
		return fmt.Errorf("%s.source.data: must be non-empty base64", at)
	case b.Type == "image":
		return checkImage(at, s, data)
	}
	return nil
}

// The service's limits for an image: bytes in base64, and pixels per side.
const (
	mostOfImage  = 5 << 20
	mostOfPixels = 8000
)

// checkImage checks the type and the size of an image.
func checkImage(at string, s *anthropicSource, data []byte) error {
	size, _, _ := image.DecodeConfig(bytes.NewReader(data)) // on an error the size is 0 x 0
	switch seen := http.DetectContentType(data); {
	case strings.HasPrefix(seen, "image/") && seen != s.MediaType:
		return fmt.Errorf("%s.source: the image was specified using the %s media type, but it appears to be %s", at, s.MediaType, seen)
	case len(s.Data) > mostOfImage:
		return fmt.Errorf("%s.source.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", at, len(s.Data), mostOfImage)
	case max(size.Width, size.Height) > mostOfPixels:
		return fmt.Errorf("%s.source.base64.data: at least one of the image dimensions exceeds %d pixels", at, mostOfPixels)
	}
	return nil
}

// hear translates a block into a belay.Part.
func (c *anthropicChecked) hear(at string, b *anthropicBlock) (belay.Part, error) {
	switch b.Type {
	case "thinking":
		return belay.Part{Type: belay.PartThinking, Text: *b.Thinking}, nil
	case "redacted_thinking":
		return belay.Part{Type: belay.PartThinking, Opaque: encodeJSON(b.Data)}, nil
	case "image", "document":
		return belay.Part{Type: belay.PartMedia, Media: mediaOf(b)}, nil
	case "tool_use":
		return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: b.ID, Tool: b.Name, Input: b.Input}}, nil
	case "tool_result":
		return c.hearResult(at, b)
	default:
		return belay.Text(b.Text), nil
	}
}

// hearResult translates the result of a call into a belay.Part.
func (c *anthropicChecked) hearResult(at string, b *anthropicBlock) (belay.Part, error) {
	part := belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: b.ToolUseID, Tool: c.names[b.ToolUseID]}}
	result := &part.Result.Result
	result.IsError = b.IsError
	var blocks []json.RawMessage
	if len(b.Content) > 0 && string(b.Content) != `""` {
		var err error
		if blocks, err = blocksOf(at+".content", b.Content); err != nil {
			return part, err
		}
	}
	if b.IsError && len(blocks) == 0 {
		return part, fmt.Errorf("%s.tool_result: content cannot be empty if is_error is true", at)
	}
	for i, raw := range blocks {
		at := fmt.Sprintf("%s.tool_result.content.%d", at, i)
		inner, err := c.block(at, raw)
		if err != nil {
			return part, err
		}
		if b.IsError && inner.Type != "text" {
			return part, fmt.Errorf("%s: all content must be type text if is_error is true", at)
		}
		switch inner.Type {
		case "text":
			result.Text += inner.Text
		case "image", "document":
			result.Media = append(result.Media, *mediaOf(inner))
		default:
			return part, fmt.Errorf("%s: a result holds no block of type %q", at, inner.Type)
		}
	}
	return part, nil
}

// mediaOf returns the image or the document in a block that was checked.
func mediaOf(b *anthropicBlock) *belay.Media {
	m := &belay.Media{MIME: b.Source.MediaType, Name: b.Title, URL: b.Source.URL}
	if b.Source.Type == "text" {
		m.Data = []byte(b.Source.Data)
	} else {
		m.Data, _ = base64.StdEncoding.DecodeString(b.Source.Data) // checkSource has checked the data
	}
	return m
}
