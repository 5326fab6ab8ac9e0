package openai

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// chatChunk is a chunk of a stream, or an answer that is not a stream. It has the fields
// that this package reads.
type chatChunk struct {
	Model   string        `json:"model"`
	Error   *serviceError `json:"error"`
	Choices []struct {
		Index        int           `json:"index"`
		Delta        chatMessage   `json:"delta"`
		Message      chatMessage   `json:"message"`
		FinishReason string        `json:"finish_reason"`
		Error        *serviceError `json:"error"` // only from OpenRouter
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
}

// chatMessage is a message or a piece of a message. Servers send thinking in one of three
// fields.
type chatMessage struct {
	Content          looseText         `json:"content"`
	Refusal          string            `json:"refusal"`
	ReasoningContent looseText         `json:"reasoning_content"`
	Reasoning        looseText         `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []chatCall        `json:"tool_calls"`
}

type chatCall struct {
	Index    *int      `json:"index"`
	ID       looseText `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments looseText `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Read    int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Total    int `json:"total_tokens"`
	Thinking struct {
		Tokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Hit    int     `json:"prompt_cache_hit_tokens"` // only from DeepSeek
	Cached int     `json:"cached_tokens"`           // only from Moonshot
	Cost   float64 `json:"cost"`                    // only from OpenRouter
	// If OpenRouter uses the user's own key for the upstream service, Cost is only
	// OpenRouter's fee.
	OwnKey bool `json:"is_byok"`
	Costs  struct {
		Upstream float64 `json:"upstream_inference_cost"`
	} `json:"cost_details"`
}

// out returns the output tokens, with thinking. Some servers, such as xAI's, do not include
// thinking in the completion tokens. The total shows this.
func (u *chatUsage) out() int {
	if u.Thinking.Tokens > 0 && u.Total == u.Prompt+u.Completion+u.Thinking.Tokens {
		return u.Completion + u.Thinking.Tokens
	}
	return u.Completion
}

// cost returns the cost of the response that the server reports.
func (u *chatUsage) cost() float64 {
	if u.OwnKey {
		return u.Cost + u.Costs.Upstream
	}
	return u.Cost
}

// looseText is a text. Some servers send it as a list of parts, as a number, or as an object
// instead of a string.
type looseText string

// UnmarshalJSON decodes a string, a list of parts with texts, or any other JSON value.
func (t *looseText) UnmarshalJSON(data []byte) error {
	switch {
	case data[0] == '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err //nolint:wrapcheck // encoding/json says where
		}
		*t = looseText(s)
	case data[0] == '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(data, &parts) == nil { // ignore lists of other values
			*t = ""
			for _, p := range parts {
				*t += looseText(p.Text)
			}
		}
	case string(data) != "null":
		*t = looseText(data)
	}
	return nil
}

// chatAssembly builds a response from the chunks of Chat Completions.
type chatAssembly struct {
	assembly

	calling map[int]*piece // calls by index
	finish  string
	done    bool
}

func (w chatProtocol) assemble(names map[string]string) assembler { //nolint:ireturn // either protocol has its own
	return &chatAssembly{assembly: assembly{provider: w.provider, names: names}, calling: map[int]*piece{}}
}

// complete reports whether the response is complete. Some servers do not send the final
// [DONE]. At the end of the stream a finish reason is enough.
func (c *chatAssembly) complete() (now, atEnd bool) { return c.done, c.done || c.finish != "" }

// event processes a chunk of the stream.
func (c *chatAssembly) event(raw wire.Event) ([]belay.Chunk, error) {
	switch {
	case bytes.HasPrefix(raw.Data, []byte("[DONE]")):
		c.done = true
		return nil, nil
	case raw.Type == "error":
		return nil, readError(raw.Data)
	}
	return c.chunk(raw.Data)
}

// whole processes an answer that is not a stream.
func (c *chatAssembly) whole(body []byte) ([]belay.Chunk, error) {
	told, err := c.chunk(body)
	if err == nil && c.finish == "" && len(c.pieces) == 0 {
		return nil, errNoAnswer
	}
	c.done = true
	return told, err
}

var errNoAnswer = errors.New("the answer contains no response")

func (c *chatAssembly) chunk(data []byte) ([]belay.Chunk, error) {
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return nil, wire.Unexpected("a chunk of the stream", err)
	}
	if chunk.Error != nil {
		return nil, chunk.Error
	}
	if chunk.Model != "" {
		c.model = chunk.Model
	}
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.Index != 0 {
			continue // the request asks for one choice
		}
		c.add(&choice.Delta)
		c.add(&choice.Message)
		switch {
		case choice.Error != nil:
			return nil, choice.Error
		case brokenOff[choice.FinishReason]:
			return nil, &serviceError{Type: choice.FinishReason, Message: "the server aborted the response"}
		case choice.FinishReason != "":
			c.finish = choice.FinishReason
		}
	}
	if len(chunk.Usage) > 0 && string(chunk.Usage) != "null" {
		var u chatUsage
		_ = json.Unmarshal(chunk.Usage, &u) // after an error some counts may stay 0
		c.usage.Cost = u.cost()
		c.count(u.Prompt, u.out(), max(u.Details.Read, u.Hit, u.Cached), u.Details.Written)
	}
	return c.take(), nil
}

// brokenOff are the finish reasons that mean a failure. OpenRouter, Z.ai, DeepSeek and vLLM
// send them.
var brokenOff = map[string]bool{"error": true, "network_error": true, "insufficient_system_resource": true, "abort": true}

// add processes a piece of the message.
func (c *chatAssembly) add(m *chatMessage) {
	detailed := false
	for _, raw := range m.ReasoningDetails {
		detailed = c.detail(raw) || detailed
	}
	switch {
	case detailed: // the other fields repeat the details
	case m.ReasoningContent != "":
		c.think("reasoning_content", string(m.ReasoningContent))
	case m.Reasoning != "":
		c.think("reasoning", string(m.Reasoning))
	}
	if text := string(m.Content) + m.Refusal; text != "" {
		c.refused = c.refused || m.Refusal != ""
		c.extend(c.last(belay.PartText, func(*piece) bool { return true }), text)
	}
	for i := range m.ToolCalls {
		c.toolCall(&m.ToolCalls[i], i)
	}
}

// last returns the last part if it has the kind and fits returns true. Otherwise it starts a
// new part.
func (c *chatAssembly) last(kind belay.PartType, fits func(*piece) bool) *piece {
	if n := len(c.pieces); n > 0 && c.pieces[n-1].kind == kind && fits(c.pieces[n-1]) {
		return c.pieces[n-1]
	}
	return c.begin(kind)
}

// think adds thinking that the server sends as plain text.
func (c *chatAssembly) think(field, text string) {
	p := c.last(belay.PartThinking, func(p *piece) bool { return p.opaque.Field == field })
	p.opaque.Field = field
	c.extend(p, text)
}

// detail adds thinking in the form of details, as OpenRouter sends it. It reports whether
// the detail has text. Pieces of the same detail have the same index and type.
func (c *chatAssembly) detail(raw json.RawMessage) (hasText bool) {
	detail, err := readObject(raw)
	if err != nil {
		return false
	}
	text := textOf(detail.take("text")) + textOf(detail.take("summary"))
	number, kind := string(detail.at("index")), string(detail.at("type"))
	p := c.last(belay.PartThinking, func(p *piece) bool { return p.id == number && p.name == kind && len(p.opaque.Detail) > 0 })
	p.id, p.name = number, kind
	known, err := readObject(p.opaque.Detail)
	if err != nil {
		known = object{}
	}
	for _, m := range detail {
		if string(m.value) != "null" || known.at(m.key) == nil {
			known.set(m.key, m.value)
		}
	}
	p.opaque.Detail = known.append(nil)
	c.extend(p, text)
	return text != ""
}

// toolCall adds a piece of a call. Calls have indexes, but some servers give all calls the
// same index. So a piece with a name starts a new call in two cases: its id is new, or it
// has no id and the input of the previous call is complete. Some servers give each piece of
// a call its own id. toolCall keeps the first id.
func (c *chatAssembly) toolCall(call *chatCall, place int) {
	number := place
	if call.Index != nil {
		number = *call.Index
	}
	p := c.calling[number]
	if p == nil || call.Function.Name != "" && (call.ID != "" && p.id != "" && string(call.ID) != p.id || call.ID == "" && wire.IsObject(p.text)) {
		p = c.begin(belay.PartCall)
		c.calling[number] = p
	}
	if p.id != "" {
		call.ID = ""
	}
	c.call(p, string(call.ID), call.Function.Name)
	c.extend(p, string(call.Function.Arguments))
}

// response returns the complete response. With calls the stop reason is StopToolUse, because
// some servers report "stop" instead of "tool_calls".
func (c *chatAssembly) response() *belay.Response {
	c.ended()
	switch c.finish {
	case "length", "model_length", "max_tokens", "model_context_window_exceeded":
		c.stop = belay.StopMaxTokens
	case "content_filter", "sensitive", "refusal":
		c.stop = belay.StopRefusal
	}
	return c.assembly.response()
}
