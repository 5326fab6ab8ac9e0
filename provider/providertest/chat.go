package providertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// ChatOptions are the settings of a [Chat] server.
type ChatOptions struct {
	// Key is the only key that the server accepts. Defaults to key-of-a-test.
	Key string
	// Whole makes the server answer without a stream, even if the request asks for a stream.
	// By default the request decides.
	Whole bool
	// Thinking is the message field for thinking: reasoning_content as in llama.cpp, vLLM
	// and DeepSeek, reasoning as in Ollama, or reasoning_details as in OpenRouter. Redacted
	// thinking needs reasoning_details. Defaults to reasoning_content.
	Thinking string
}

// Chat is a test server with the Chat Completions protocol of OpenAI. It also has the
// thinking fields of other servers. It sends the scripted replies. Like OpenAI, it refuses
// these requests, with status 400 or 401:
//
//   - The key is missing or wrong.
//   - There are unknown fields, no model, no messages, or messages without content.
//   - A call has no result directly after it, or a result has no call.
//   - The id of a call is too long or used twice.
//   - A tool has an invalid name, description or schema.
//
// It also refuses thinking that it did not send.
type Chat struct{ *loopback }

var _ LimitedServer = (*Chat)(nil)

// NewChat starts a server. It stops when the test ends.
func NewChat(t testing.TB, opts *ChatOptions) *Chat {
	t.Helper()
	var o ChatOptions
	if opts != nil {
		o = *opts
	}
	key := cmp.Or(o.Key, testKey)
	return &Chat{newLoopback(t, key, &chatWire{key: key, unstream: o.Whole, thinking: cmp.Or(o.Thinking, "reasoning_content"), thoughts: map[string]bool{}})}
}

// StartChat starts a [Chat] server with default options, for [Test].
func StartChat(t testing.TB) Server {
	t.Helper()
	return NewChat(t, nil)
}

// URL returns the server's address, with /v1.
func (c *Chat) URL() string { return c.loopback.URL() + "/v1" }

// Cannot reports what the protocol cannot express: several texts in a message, thinking
// after text, content after calls, and redacted thinking without the field
// reasoning_details.
func (c *Chat) Cannot(reply Reply) string {
	texts, calls := 0, 0
	for _, p := range reply.Parts {
		switch {
		case p.Kind == PartRedacted && c.wire.(*chatWire).thinking != "reasoning_details":
			return "this thinking field cannot have redacted thinking"
		case p.Kind == PartCall:
			calls++
		case calls > 0:
			return "a message has no content after its calls"
		case p.Kind == PartText && strings.Join(p.Pieces, "") != "":
			texts++
		case texts > 0 && p.Kind != PartText:
			return "thinking must be before the text"
		}
	}
	if texts > 1 {
		return "a message can have only one text"
	}
	return ""
}

// Extends compares the requests field by field and message by message. In the later request,
// the text of the last user message may be longer.
func (c *Chat) Extends(earlier, later Request) error {
	return extendsOpenAI(earlier.Body, later.Body, "messages", func(old, extended []json.RawMessage) error {
		n := len(old)
		if n > 0 && n <= len(extended) {
			if begun, ok := strings.CutSuffix(string(old[n-1]), `"}`); ok && strings.HasPrefix(string(extended[n-1]), begun+`\n\n`) {
				old = old[:n-1]
			}
		}
		return begins("item", old, extended)
	})
}

// chatWire is the Chat Completions protocol.
type chatWire struct {
	key      string
	unstream bool // never streams
	thinking string

	mu       sync.Mutex
	thoughts map[string]bool // the thinking that the server has sent
}

func (w *chatWire) understand(r *http.Request, request *Request) (stream bool, refused *refused) {
	if err := openAIDoor(r, "/v1/chat/completions", http.MethodPost, w.key); err != nil {
		return false, err.refused()
	}
	stream, err := w.check(request)
	if err != nil {
		return false, err.refused()
	}
	return stream && !w.unstream, nil
}

func (w *chatWire) list(r *http.Request) ([]byte, *refused) { return openAIModels(r, w.key) }

func (*chatWire) refusal(r *Refusal) *refused { return openAIRefusal(r) }

// broken returns the event that reports a refusal in a stream.
func (*chatWire) broken(r *refused) frame { return frame{data: r.body} }

// frames returns the events that stream a reply.
func (w *chatWire) frames(reply *Reply) []frame {
	var frames []frame
	add := func(piece bool, delta map[string]any, finish any) {
		choice := map[string]any{"index": 0, "delta": delta, "finish_reason": finish}
		frames = append(frames, frame{data: encodeJSON(chatBody("chat.completion.chunk", []any{choice}, nil)), piece: piece, enough: finish != nil})
	}
	add(false, map[string]any{"role": "assistant", "content": ""}, nil)
	calls := 0
	for i, p := range reply.Parts {
		if p.Kind == PartCall {
			call := func(fields map[string]any) map[string]any {
				fields["index"] = calls
				return map[string]any{"tool_calls": []any{fields}}
			}
			add(false, call(map[string]any{"id": p.ID, "type": "function", "function": map[string]any{"name": p.Tool, "arguments": ""}}), nil)
			for _, piece := range p.Pieces {
				add(true, call(map[string]any{"function": map[string]any{"arguments": piece}}), nil)
			}
			calls++
			continue
		}
		d := chatDelta{kind: p.Kind, index: i, whole: strings.Join(p.Pieces, ""), inWords: refusesInWords(reply)}
		for j, piece := range p.Pieces {
			add(true, w.delta(&d, piece, j == len(p.Pieces)-1), nil)
		}
	}
	add(false, map[string]any{}, chatFinish(reply))
	return append(frames, frame{data: encodeJSON(chatBody("chat.completion.chunk", []any{}, chatUsage(reply)))}, frame{data: []byte("[DONE]")})
}

// chatDelta has the values that all pieces of a text or of thinking share.
type chatDelta struct {
	kind    PartKind
	index   int
	whole   string
	inWords bool // the text is a refusal
}

// delta returns a piece of text or of thinking.
func (w *chatWire) delta(d *chatDelta, piece string, last bool) map[string]any {
	switch {
	case d.kind == PartText && d.inWords:
		return map[string]any{"refusal": piece}
	case d.kind == PartText:
		return map[string]any{"content": piece}
	case w.thinking != "reasoning_details":
		w.think(d.whole)
		return map[string]any{w.thinking: piece}
	}
	detail := map[string]any{"index": d.index, "format": "anthropic-claude-v1"}
	if d.kind == PartRedacted {
		detail["type"], detail["data"] = "reasoning.encrypted", redacted(d.whole)
		return map[string]any{"reasoning_details": []any{detail}}
	}
	detail["type"], detail["text"] = "reasoning.text", piece
	if last {
		detail["signature"] = signature(d.whole)
	}
	return map[string]any{"reasoning": piece, "reasoning_details": []any{detail}}
}

// think stores thinking that the server sends.
func (w *chatWire) think(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.thoughts[text] = true
}

// whole returns the body of a reply that is not a stream.
func (w *chatWire) whole(reply *Reply) []byte {
	message := map[string]any{"role": "assistant", "content": nil}
	var details, calls []any
	for i, p := range reply.Parts {
		whole := strings.Join(p.Pieces, "")
		if p.Kind == PartCall {
			calls = append(calls, map[string]any{"id": p.ID, "type": "function", "function": map[string]any{"name": p.Tool, "arguments": whole}})
			continue
		}
		if len(p.Pieces) == 0 {
			continue
		}
		for field, value := range w.delta(&chatDelta{p.Kind, i, whole, refusesInWords(reply)}, whole, true) {
			if field == "reasoning_details" {
				details = append(details, value.([]any)...)
				continue
			}
			said, _ := message[field].(string) // empty for the first piece
			message[field] = said + fmt.Sprint(value)
		}
	}
	if details != nil {
		message["reasoning_details"] = details
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	choice := map[string]any{"index": 0, "message": message, "finish_reason": chatFinish(reply)}
	return encodeJSON(chatBody("chat.completion", []any{choice}, chatUsage(reply)))
}

// refusesInWords reports whether the model refuses with a text and not with a finish reason.
func refusesInWords(reply *Reply) bool {
	return reply.stopReason() == "refusal" && reply.StopWord == ""
}

// chatFinish returns the service's finish reason.
func chatFinish(reply *Reply) string {
	if reply.StopWord != "" {
		return reply.StopWord
	}
	for _, p := range reply.Parts {
		if p.Kind == PartText && refusesInWords(reply) {
			return "stop" // the text is in the field "refusal"
		}
	}
	return map[string]string{"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}[string(reply.stopReason())]
}

// chatUsage returns the usage in the service's form.
func chatUsage(reply *Reply) map[string]any {
	u := reply.usage()
	return map[string]any{
		"prompt_tokens": u.In + u.CacheRead + u.CacheWrite, "completion_tokens": u.Out, "total_tokens": u.Tokens(),
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"completion_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
}

// chatBody returns an answer, or a chunk of a stream.
func chatBody(object string, choices []any, usage any) map[string]any {
	return map[string]any{"id": "chatcmpl-of-a-test", "object": object, "created": 1, "model": "model-of-a-test", "choices": choices, "usage": usage}
}
