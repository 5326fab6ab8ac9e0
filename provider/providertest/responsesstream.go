package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// frames returns the events that stream a reply.
func (w responsesWire) frames(reply *Reply) []frame {
	s := w.word(reply)
	begun := responsesBody("in_progress", nil, nil, nil)
	head := &responsesScript{}
	head.say("response.created", map[string]any{"response": begun})
	head.say("response.in_progress", map[string]any{"response": begun})
	return slices.Concat(head.frames, s.frames)
}

// whole returns the body of a reply that is not a stream.
func (w responsesWire) whole(reply *Reply) []byte { return encodeJSON(w.word(reply).body(reply)) }

// word builds the events of a reply, without the first two.
func (w responsesWire) word(reply *Reply) *responsesScript {
	s := &responsesScript{stop: reply.stopReason(), word: reply.StopWord, items: w.items}
	for i, p := range reply.Parts {
		s.part(i, p, i == len(reply.Parts)-1)
	}
	body := s.body(reply)
	s.say(fmt.Sprint("response.", body["status"]), map[string]any{"response": body})
	return s
}

// responsesScript builds the events of a reply.
type responsesScript struct {
	stop   belay.StopReason
	word   string
	items  *atomic.Int64
	frames []frame
	output []any
}

// say adds an event to the stream.
func (s *responsesScript) say(name string, fields map[string]any) {
	fields["sequence_number"] = len(s.frames)
	s.frames = append(s.frames, newFrame(name, fields))
}

// at adds an event about an item.
func (s *responsesScript) at(index int, name string, fields map[string]any) {
	fields["output_index"] = index
	s.say(name, fields)
}

// pieces adds an event for each scripted piece.
func (s *responsesScript) pieces(index int, name string, p Part, fields map[string]any) {
	for _, piece := range p.Pieces {
		event := map[string]any{"delta": piece}
		maps.Copy(event, fields)
		s.at(index, name, event)
		s.frames[len(s.frames)-1].piece = true
	}
}

// id returns a new id for an item.
func (s *responsesScript) id(prefix string) string {
	return fmt.Sprintf("%s_of_a_test_%d", prefix, s.items.Add(1))
}

// item adds the start and the end of an item, and the events between them.
func (s *responsesScript) item(index int, begun, done map[string]any, between func()) {
	s.at(index, "response.output_item.added", map[string]any{"item": begun})
	between()
	s.at(index, "response.output_item.done", map[string]any{"item": done})
	s.output = append(s.output, done)
}

// part adds the events of a part.
func (s *responsesScript) part(index int, p Part, last bool) {
	whole := strings.Join(p.Pieces, "")
	status := "completed"
	if last && s.stop == belay.StopMaxTokens {
		status = "incomplete"
	}
	switch p.Kind {
	case PartThinking, PartRedacted:
		s.thinking(index, p, whole)
	case PartCall:
		id := s.id("fc")
		call := func(status, arguments string) map[string]any {
			return map[string]any{"type": "function_call", "id": id, "call_id": p.ID, "name": p.Tool, "status": status, "arguments": arguments}
		}
		s.item(index, call("in_progress", ""), call(status, whole), func() {
			s.pieces(index, "response.function_call_arguments.delta", p, map[string]any{"item_id": id})
			if status == "completed" {
				s.at(index, "response.function_call_arguments.done", map[string]any{"item_id": id, "arguments": whole, "name": p.Tool})
			}
		})
	default:
		s.text(index, p, whole, status)
	}
}

// text adds the events of a text or a refusal.
func (s *responsesScript) text(index int, p Part, whole, status string) {
	id, kind, field := s.id("msg"), "output_text", "text"
	if s.stop == belay.StopRefusal && s.word == "" {
		kind, field = "refusal", "refusal"
	}
	content := func(text string) map[string]any {
		c := map[string]any{"type": kind, field: text}
		if kind == "output_text" {
			c["annotations"] = []any{}
		}
		return c
	}
	message := func(status string, content ...any) map[string]any {
		if content == nil {
			content = []any{}
		}
		return map[string]any{"type": "message", "id": id, "role": "assistant", "status": status, "content": content}
	}
	s.item(index, message("in_progress"), message(status, content(whole)), func() {
		place := map[string]any{"item_id": id, "content_index": 0}
		s.at(index, "response.content_part.added", map[string]any{"item_id": id, "content_index": 0, "part": content("")})
		s.pieces(index, "response."+kind+".delta", p, place)
		s.at(index, "response."+kind+".done", map[string]any{"item_id": id, "content_index": 0, field: whole})
		s.at(index, "response.content_part.done", map[string]any{"item_id": id, "content_index": 0, "part": content(whole)})
	})
}

// thinking adds the events of thinking. Thinking has encrypted content and a readable
// summary.
func (s *responsesScript) thinking(index int, p Part, whole string) {
	id := s.id("rs")
	item := func(encrypted any, summary ...any) map[string]any {
		if summary == nil {
			summary = []any{}
		}
		return map[string]any{"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}
	}
	if p.Kind == PartRedacted {
		s.item(index, item(""), item(redacted(whole)), func() {})
		return
	}
	summary := map[string]any{"type": "summary_text", "text": whole}
	s.item(index, item(""), item(signature(whole), summary), func() {
		place := map[string]any{"item_id": id, "summary_index": 0}
		s.at(index, "response.reasoning_summary_part.added", map[string]any{"item_id": id, "summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}})
		s.pieces(index, "response.reasoning_summary_text.delta", p, place)
		s.at(index, "response.reasoning_summary_text.done", map[string]any{"item_id": id, "summary_index": 0, "text": whole})
		s.at(index, "response.reasoning_summary_part.done", map[string]any{"item_id": id, "summary_index": 0, "part": summary})
	})
}

// body returns the complete response.
func (s *responsesScript) body(reply *Reply) map[string]any {
	reason := s.word
	switch {
	case reason != "":
	case s.stop == belay.StopMaxTokens:
		reason = "max_output_tokens"
	case s.stop == belay.StopRefusal && !slices.ContainsFunc(reply.Parts, func(p Part) bool { return p.Kind == PartText }):
		reason = "content_filter"
	}
	u := reply.usage()
	usage := map[string]any{
		"input_tokens": u.In + u.CacheRead + u.CacheWrite, "output_tokens": u.Out, "total_tokens": u.Tokens(),
		"input_tokens_details":  map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
	if reason == "" {
		return responsesBody("completed", s.output, nil, usage)
	}
	return responsesBody("incomplete", s.output, map[string]any{"reason": reason}, usage)
}

func responsesBody(status string, output []any, details, usage any) map[string]any {
	if output == nil {
		output = []any{}
	}
	return map[string]any{
		"id": "resp_of_a_test", "object": "response", "created_at": 1, "status": status, "error": nil, "incomplete_details": details,
		"model": "model-of-a-test", "output": output, "parallel_tool_calls": true, "store": false, "usage": usage,
	}
}
