package providertest

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
)

// geminiChunk returns an event of a stream, or an answer that is not a stream.
func geminiChunk(parts []any, stop string, usage map[string]any) map[string]any {
	candidate := map[string]any{"content": map[string]any{"parts": parts, "role": "model"}, "index": 0}
	if stop != "" {
		candidate["finishReason"] = stop
	}
	return map[string]any{
		"candidates": []any{candidate}, "usageMetadata": usage,
		"modelVersion": "model-of-a-test", "responseId": "response-of-a-test",
	}
}

// frames returns the events that stream a reply. Each call is one event. The first call has
// a signature. Thinking and text have a signature at their end.
func (geminiWire) frames(reply *Reply) []frame {
	usage := reply.usage()
	early := geminiUsage(belay.Usage{In: usage.In, CacheRead: usage.CacheRead}) // the output tokens are not known yet
	var frames []frame
	said, calls := "", 0
	for _, p := range reply.Parts {
		for _, part := range geminiParts(p, calls == 0) {
			f := frame{data: encodeJSON(geminiChunk([]any{part}, "", early)), piece: p.Kind != PartRedacted}
			frames = append(frames, f)
		}
		said = ""
		switch p.Kind {
		case PartText:
			said = strings.Join(p.Pieces, "")
		case PartCall:
			calls++
		case PartThinking, PartRedacted:
		}
	}
	stop := geminiStop(reply)
	last := map[string]any{"text": ""}
	if said != "" && stop == "STOP" {
		last["thoughtSignature"] = signature("text " + said)
	}
	return append(frames, frame{data: encodeJSON(geminiChunk([]any{last}, stop, geminiUsage(usage))), enough: true})
}

// geminiParts returns the pieces of a scripted part in the service's form.
func geminiParts(p Part, firstCall bool) []any {
	var parts []any
	whole := strings.Join(p.Pieces, "")
	switch p.Kind {
	case PartRedacted:
		return []any{map[string]any{"text": "", "thoughtSignature": redacted(whole)}}
	case PartCall:
		call := map[string]any{"name": p.Tool, "id": p.ID}
		if whole != "" {
			call["args"] = json.RawMessage(whole)
		}
		part := map[string]any{"functionCall": call}
		if firstCall {
			part["thoughtSignature"] = geminiCallSignature(p.Tool, json.RawMessage(whole))
		}
		return []any{part}
	case PartText, PartThinking:
		for i, piece := range p.Pieces {
			part := map[string]any{"text": piece}
			if p.Kind == PartThinking {
				part["thought"] = true
				if i == len(p.Pieces)-1 {
					part["thoughtSignature"] = signature("thought " + whole)
				}
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// geminiCallSignature returns the signature of a call. The format of args does not matter.
func geminiCallSignature(tool string, args json.RawMessage) string {
	return signature("call " + tool + " " + canonical(args))
}

// canonical returns JSON in a fixed format. It keeps numbers and the order of keys.
func canonical(raw json.RawMessage) string {
	var compact, escaped bytes.Buffer
	if json.Compact(&compact, raw) != nil || compact.Len() == 0 {
		return "{}"
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return escaped.String()
}

// whole returns the body of a reply that is not a stream.
func (geminiWire) whole(reply *Reply) []byte {
	parts, calls := []any{}, 0
	for _, p := range reply.Parts {
		joined := p
		joined.Pieces = []string{strings.Join(p.Pieces, "")}
		parts = append(parts, geminiParts(joined, calls == 0)...)
		if p.Kind == PartCall {
			calls++
		}
	}
	return encodeJSON(geminiChunk(parts, geminiStop(reply), geminiUsage(reply.usage())))
}

// geminiUsage returns the usage in the service's form. The prompt count includes cached
// tokens. The output is split into thoughts and candidates.
func geminiUsage(u belay.Usage) map[string]any {
	usage := map[string]any{"promptTokenCount": u.In + u.CacheRead, "totalTokenCount": u.Tokens()}
	if u.CacheRead > 0 {
		usage["cachedContentTokenCount"] = u.CacheRead
	}
	if u.Out > 0 {
		usage["thoughtsTokenCount"], usage["candidatesTokenCount"] = u.Out/3, u.Out-u.Out/3
	}
	return usage
}

// geminiStop returns the service's finish reason.
func geminiStop(reply *Reply) string {
	switch {
	case reply.StopWord != "":
		return reply.StopWord
	case reply.stopReason() == belay.StopMaxTokens:
		return "MAX_TOKENS"
	case reply.stopReason() == belay.StopRefusal:
		return "SAFETY"
	default:
		return "STOP"
	}
}
