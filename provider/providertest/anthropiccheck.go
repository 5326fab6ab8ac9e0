package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// anthropicRequest is the body of a request. Fields of type json.RawMessage may be present,
// but some are not checked.
type anthropicRequest struct {
	Model         string             `json:"model"`
	MaxTokens     *int               `json:"max_tokens"`
	Messages      []json.RawMessage  `json:"messages"`
	System        json.RawMessage    `json:"system"`
	Tools         []json.RawMessage  `json:"tools"`
	Stream        bool               `json:"stream"`
	Thinking      *anthropicThinking `json:"thinking"`
	CacheControl  *anthropicMark     `json:"cache_control"`
	Container     json.RawMessage    `json:"container"`
	InferenceGeo  json.RawMessage    `json:"inference_geo"`
	Metadata      json.RawMessage    `json:"metadata"`
	OutputConfig  json.RawMessage    `json:"output_config"`
	Tier          json.RawMessage    `json:"service_tier"`
	StopSequences []string           `json:"stop_sequences"`
	Temperature   json.RawMessage    `json:"temperature"`
	ToolChoice    json.RawMessage    `json:"tool_choice"`
	TopK          json.RawMessage    `json:"top_k"`
	TopP          json.RawMessage    `json:"top_p"`
}

type anthropicThinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens"`
	Display string `json:"display"`
	Binding *struct {
		Mismatch string `json:"prefix_mismatch_behavior"`
	} `json:"block_binding"`
}

type anthropicTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	Type         string          `json:"type"`
	CacheControl *anthropicMark  `json:"cache_control"`
}

// anthropicMark is a cache mark.
type anthropicMark struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

// anthropicChecked is the decoded request. The checks fill it in.
type anthropicChecked struct {
	system    string
	heard     []Heard
	tools     []belay.ToolDeclaration
	maxTokens int
	stream    bool

	marks int
	names map[string]string // the tool of each call, by the call's id
}

// maxMarks is how many cache marks a request may have.
const maxMarks = 4

var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)

// bindingControls is the beta header that a request with thinking.block_binding needs.
const bindingControls = "thinking-binding-controls-2026-08-01"

// checkAnthropic decodes and checks the body of a request. betas is the header
// Anthropic-Beta.
func checkAnthropic(body []byte, betas string) (*anthropicChecked, error) {
	var r anthropicRequest
	if at := halfCharacter(body); at >= 0 {
		return nil, fmt.Errorf("the request body is not valid JSON: no low surrogate in string: char %d", at)
	}
	if err := strict("", body, &r); err != nil {
		return nil, err
	}
	if t := r.Thinking; t != nil && t.Binding != nil && !strings.Contains(betas, bindingControls) {
		return nil, errors.New("thinking.block_binding: extra inputs are not permitted without the beta " + bindingControls)
	}
	c := &anthropicChecked{stream: r.Stream, names: map[string]string{}}
	switch {
	case r.Model == "":
		return nil, errors.New("model: field required")
	case r.MaxTokens == nil:
		return nil, errors.New("max_tokens: field required")
	case *r.MaxTokens < 1:
		return nil, errors.New("max_tokens: must be at least 1")
	case r.Messages == nil:
		return nil, errors.New("messages: field required")
	case len(r.Messages) == 0:
		return nil, errors.New("messages: at least one message is required")
	}
	c.maxTokens = *r.MaxTokens
	for _, check := range []func() error{
		func() error { return checkThinking(r.Thinking, c.maxTokens) },
		func() error { return c.mark("", r.CacheControl) },
		func() error { return c.checkTools(r.Tools) },
		func() error { return c.checkSystem(r.System) },
		func() error { return c.checkMessages(r.Messages) },
		func() error { return c.checkBegun(r.Thinking) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if c.marks > maxMarks {
		return nil, fmt.Errorf("a maximum of %d blocks with cache_control may be provided, found %d", maxMarks, c.marks)
	}
	return c, nil
}

// strict decodes JSON and rejects unknown fields. at is the path in the request, for errors.
func strict(at string, data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("there is text after the end of the JSON value")
	}
	if err == nil {
		return nil
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if field, ok := strings.CutPrefix(message, "unknown field "); ok {
		return fmt.Errorf("%s: extra inputs are not permitted", strings.TrimPrefix(at+"."+strings.Trim(field, `"`), "."))
	}
	if at == "" {
		at = "the request body is not valid JSON"
	}
	return fmt.Errorf("%s: %s", at, message)
}

// mark checks and counts a cache mark.
func (c *anthropicChecked) mark(at string, m *anthropicMark) error {
	if m == nil {
		return nil
	}
	c.marks++
	if m.Type != "ephemeral" {
		return fmt.Errorf("%s: the type must be ephemeral", strings.TrimPrefix(at+".cache_control", "."))
	}
	if m.TTL != "" && m.TTL != "5m" && m.TTL != "1h" {
		return fmt.Errorf("%s: the ttl must be 5m or 1h", strings.TrimPrefix(at+".cache_control", "."))
	}
	return nil
}

// checkThinking checks the thinking settings.
func checkThinking(t *anthropicThinking, maxTokens int) error {
	switch {
	case t == nil || t.Type == "disabled" || t.Type == "adaptive":
		return nil
	case t.Type != "enabled":
		return fmt.Errorf("thinking.type: %q is none of enabled, adaptive and disabled", t.Type)
	case t.Budget < 1024:
		return errors.New("thinking.budget_tokens: must be at least 1024")
	case t.Budget >= maxTokens:
		return errors.New("max_tokens: must be greater than thinking.budget_tokens")
	}
	return nil
}

// checkBegun checks that the current turn began with thinking. The service requires this
// if the request has a thinking budget.
func (c *anthropicChecked) checkBegun(t *anthropicThinking) error {
	if t == nil || t.Type != "enabled" {
		return nil
	}
	begun := -1
	for i := len(c.heard) - 1; i > 0; i -= 2 { // heard alternates between user and assistant
		if c.heard[i].Role != belay.RoleUser || !slices.ContainsFunc(c.heard[i].Parts, func(p belay.Part) bool { return p.Type == belay.PartResult }) {
			break
		}
		begun = i - 1
	}
	if begun >= 0 && c.heard[begun].Parts[0].Type != belay.PartThinking {
		return fmt.Errorf("messages.%d.content.0.type: expected thinking or redacted_thinking: with a budget for thinking a turn that uses tools begins with it", begun)
	}
	return nil
}

func (c *anthropicChecked) checkTools(tools []json.RawMessage) error {
	seen := map[string]bool{}
	for i, raw := range tools {
		at := fmt.Sprintf("tools.%d", i)
		var t anthropicTool
		if err := strict(at, raw, &t); err != nil {
			return err
		}
		var schema struct {
			Type  string          `json:"type"`
			AnyOf json.RawMessage `json:"anyOf"` //nolint:tagliatelle // JSON Schema spells it so
			OneOf json.RawMessage `json:"oneOf"` //nolint:tagliatelle // likewise
			AllOf json.RawMessage `json:"allOf"` //nolint:tagliatelle // likewise
		}
		switch err := json.Unmarshal(t.InputSchema, &schema); {
		case !toolName.MatchString(t.Name):
			return fmt.Errorf("%s.name: %q must match %s", at, t.Name, toolName)
		case seen[t.Name]:
			return fmt.Errorf("%s.name: %q is used twice: tool names must be unique", at, t.Name)
		case t.Type != "" && t.Type != "custom":
			return fmt.Errorf("%s.type: %q is not known", at, t.Type)
		case len(t.InputSchema) == 0:
			return fmt.Errorf("%s.input_schema: field required", at)
		case err != nil || schema.Type != "object":
			return fmt.Errorf("%s.input_schema.type: must be object", at)
		case schema.AnyOf != nil || schema.OneOf != nil || schema.AllOf != nil:
			return fmt.Errorf("%s.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", at)
		}
		seen[t.Name] = true
		if err := c.mark(at, t.CacheControl); err != nil {
			return err
		}
		c.tools = append(c.tools, belay.ToolDeclaration{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return nil
}

// checkSystem checks the system prompt: a string or text blocks.
func (c *anthropicChecked) checkSystem(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	blocks, err := blocksOf("system", raw)
	if err != nil {
		return err
	}
	var texts []string
	for i, raw := range blocks {
		at := fmt.Sprintf("system.%d", i)
		b, err := c.block(at, raw)
		if err != nil {
			return err
		}
		if b.Type != "text" {
			return fmt.Errorf("%s: a system prompt is text, not %q", at, b.Type)
		}
		texts = append(texts, b.Text)
	}
	c.system = strings.Join(texts, "\n")
	return nil
}

// blocksOf returns the blocks of a content. A plain string becomes a text block.
func blocksOf(at string, raw json.RawMessage) ([]json.RawMessage, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []json.RawMessage{encodeJSON(map[string]string{"type": "text", "text": text})}, nil
	}
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil {
		return nil, fmt.Errorf("%s: must be a text or a list of blocks", at)
	}
	return blocks, nil
}
