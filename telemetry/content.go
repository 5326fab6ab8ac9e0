package telemetry

import (
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/redact"
)

// content returns a text for a span: without secrets and not too long.
func (t *Telemetry) content(text string) string {
	text = strings.ToValidUTF8(t.opts.Redact(text), "\uFFFD") // redact first: a cut secret would not be found
	left := t.opts.ContentCharacters
	for i := range text {
		if left == 0 {
			return text[:i] + "…"
		}
		left--
	}
	return text
}

// modelContent returns the content of a request: the messages since the last response, and
// the response. Earlier messages are in the spans of earlier requests.
func (t *Telemetry) modelContent(s *belay.Span) []attribute.KeyValue {
	var all []attribute.KeyValue
	if s.Request != nil {
		from := len(s.Request.Messages)
		for from > 0 && s.Request.Messages[from-1].Role != belay.RoleAssistant {
			from--
		}
		var texts []string
		for _, m := range s.Request.Messages[from:] {
			texts = append(texts, textOf(m.Parts))
		}
		all = append(all, semconv.GenAIInputMessagesKey.String(t.content(strings.Join(texts, "\n"))))
	}
	if s.Response != nil {
		all = append(all, semconv.GenAIOutputMessagesKey.String(t.content(textOf(s.Response.Parts))))
	}
	return all
}

// textOf returns the texts, calls and results of a message. Images and files are left out.
func textOf(parts []belay.Part) string {
	var lines []string
	for i := range parts {
		switch p := &parts[i]; {
		case p.Call != nil:
			lines = append(lines, p.Call.Tool+" "+withoutSecrets(p.Call.Input))
		case p.Result != nil:
			lines = append(lines, p.Result.Text)
		case p.Type == belay.PartText:
			lines = append(lines, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// withoutSecrets returns the input of a call without the secrets that the names of its fields show.
// Options.Redact gets a text, so it does not find those in a list or an object.
func withoutSecrets(input json.RawMessage) string { return string(redact.JSON(input)) }
