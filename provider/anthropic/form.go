package anthropic

import "encoding/json"

// The types below are the parts of the Messages API that this package sends. Fields that the
// service requires do not have omitempty.

// head is a request without its messages.
type head struct {
	Model         string          `json:"model"`
	MaxTokens     int             `json:"max_tokens"`
	System        []textBlock     `json:"system,omitempty"`
	Temperature   *float64        `json:"temperature,omitempty"`
	TopP          *float64        `json:"top_p,omitempty"`
	StopSequences []string        `json:"stop_sequences,omitempty"`
	Thinking      *thinkingConfig `json:"thinking,omitempty"`
	ToolChoice    *toolChoice     `json:"tool_choice,omitempty"`
	Tools         []toolParam     `json:"tools,omitempty"`
}

type toolParam struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheMark      `json:"cache_control,omitempty"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

// cacheMark makes the service cache the request up to the end of the block with the mark.
type cacheMark struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

type thinkingConfig struct {
	Type         string        `json:"type"`
	BudgetTokens int           `json:"budget_tokens,omitempty"`
	Display      string        `json:"display,omitempty"`
	BlockBinding *blockBinding `json:"block_binding,omitempty"`
}

type blockBinding struct {
	PrefixMismatch string `json:"prefix_mismatch_behavior"`
}

type textBlock struct {
	Type         string     `json:"type"`
	Text         string     `json:"text"`
	CacheControl *cacheMark `json:"cache_control,omitempty"`
}

func newTextBlock(text string) textBlock { return textBlock{Type: "text", Text: text} }

type thinkingBlock struct {
	Type      string `json:"type"`
	Signature string `json:"signature"`
	Thinking  string `json:"thinking"`
}

type redactedBlock struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

type toolUseBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResultBlock struct {
	Type      string `json:"type"`
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error,omitempty"`
	Content   []any  `json:"content,omitempty"`
}

// mediaBlock is an image or a document.
type mediaBlock struct {
	Type   string      `json:"type"`
	Title  string      `json:"title,omitempty"`
	Source mediaSource `json:"source"`
}

type mediaSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}
