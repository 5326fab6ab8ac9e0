package providertest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
)

// newFrame returns an event. Its data has the name as "type".
func newFrame(name string, fields map[string]any) frame {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["type"] = name
	return frame{name: name, data: encodeJSON(fields)}
}

// signature returns the signature of thinking. It depends on the text, so the server notices
// a change of the text.
func signature(thinking string) string {
	sum := sha256.Sum256([]byte("signed by providertest: " + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// redactedPrefix begins redacted thinking, so that the server notices a change.
const redactedPrefix = "redacted by providertest: "

// redacted returns redacted thinking that isRedacted can check.
func redacted(secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(redactedPrefix + signature(secret)))
}

// isRedacted reports whether data is a result of redacted.
func isRedacted(data string) bool {
	text, err := base64.StdEncoding.DecodeString(data)
	rest, ok := strings.CutPrefix(string(text), redactedPrefix)
	return err == nil && ok && len(rest) == len(signature(""))
}

// frames returns the events that stream a reply.
func (w anthropicWire) frames(reply *Reply) []frame {
	usage := reply.usage()
	early := usage
	early.Out = 1 // the output tokens are not known yet
	frames := []frame{
		newFrame("message_start", map[string]any{"message": w.message([]any{}, nil, anthropicUsage(early))}),
		newFrame("ping", nil),
	}
	for i, p := range reply.Parts {
		block, deltas := anthropicParts(p)
		frames = append(frames, newFrame("content_block_start", map[string]any{"index": i, "content_block": block}))
		for _, d := range deltas {
			f := newFrame("content_block_delta", map[string]any{"index": i, "delta": d.fields})
			f.piece = d.piece
			frames = append(frames, f)
		}
		frames = append(frames, newFrame("content_block_stop", map[string]any{"index": i}))
	}
	return append(frames,
		newFrame("message_delta", map[string]any{
			"delta": map[string]any{"stop_reason": stopWord(reply), "stop_sequence": nil},
			"usage": map[string]any{"output_tokens": usage.Out},
		}),
		newFrame("message_stop", nil))
}

// delta is a piece of a block.
type delta struct {
	fields map[string]any
	piece  bool // it contains a scripted piece
}

// anthropicParts returns the start of a block and its deltas.
func anthropicParts(p Part) (block map[string]any, deltas []delta) {
	var kind, field string
	switch p.Kind {
	case PartThinking:
		block = map[string]any{"type": "thinking", "thinking": "", "signature": ""}
		kind, field = "thinking_delta", "thinking"
	case PartRedacted:
		return map[string]any{"type": "redacted_thinking", "data": redacted(strings.Join(p.Pieces, ""))}, nil
	case PartCall:
		block = map[string]any{"type": "tool_use", "id": p.ID, "name": p.Tool, "input": map[string]any{}}
		kind, field = "input_json_delta", "partial_json"
		deltas = []delta{{map[string]any{"type": kind, field: ""}, false}} // the service sends this delta too
	default:
		block = map[string]any{"type": "text", "text": ""}
		kind, field = "text_delta", "text"
	}
	for _, piece := range p.Pieces {
		deltas = append(deltas, delta{map[string]any{"type": kind, field: piece}, true})
	}
	if p.Kind == PartThinking {
		deltas = append(deltas, delta{map[string]any{"type": "signature_delta", "signature": signature(strings.Join(p.Pieces, ""))}, false})
	}
	return block, deltas
}

// whole returns the body of a reply that is not a stream.
func (w anthropicWire) whole(reply *Reply) []byte {
	content := []any{}
	for _, p := range reply.Parts {
		block, _ := anthropicParts(p)
		text := strings.Join(p.Pieces, "")
		switch p.Kind {
		case PartText:
			block["text"] = text
		case PartThinking:
			block["thinking"], block["signature"] = text, signature(text)
		case PartRedacted: // the block is already complete
		case PartCall:
			if json.Valid([]byte(text)) {
				block["input"] = json.RawMessage(text)
			}
		}
		content = append(content, block)
	}
	return encodeJSON(w.message(content, stopWord(reply), anthropicUsage(reply.usage())))
}

// message returns a message in the service's form.
func (anthropicWire) message(content []any, stop any, usage map[string]any) map[string]any {
	return map[string]any{
		"id": "msg_of_a_test", "type": "message", "role": "assistant", "model": "model-of-a-test",
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
}

// anthropicUsage returns the usage in the service's form.
func anthropicUsage(u belay.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.In, "output_tokens": u.Out,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

// stopWord returns the stop reason. The service uses the same words as Belay.
func stopWord(reply *Reply) string {
	if reply.StopWord != "" {
		return reply.StopWord
	}
	return string(reply.stopReason())
}
