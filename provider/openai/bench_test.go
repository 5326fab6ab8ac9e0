package openai_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
)

// answering returns a client that gets a text in the given number of pieces.
func answering(api openai.API, pieces int) *http.Client {
	var b bytes.Buffer
	if api == openai.Responses {
		b.WriteString(event("response.created", `{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`))
		b.WriteString(event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`))
		for i := range pieces {
			b.WriteString(event("response.output_text.delta", fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"piece %d "}`, i)))
		}
		b.WriteString(event("response.completed", `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":9}}}`))
	} else {
		for i := range pieces {
			b.WriteString(data(fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"piece %d "},"finish_reason":null}]}`, i)))
		}
		b.WriteString(data(`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":9}}`, "[DONE]"))
	}
	return &http.Client{Transport: &wiretest.Canned{ContentType: streamType, Body: b.Bytes()}}
}

func BenchmarkStream(b *testing.B) {
	for _, api := range []openai.API{openai.Responses, openai.Chat} {
		b.Run(string(api), func(b *testing.B) {
			client := answering(api, 50)
			wiretest.BenchmarkStream(b, client, openai.New("m", &openai.Options{Key: "k", HTTPClient: client, API: api, URL: "http://localhost/v1"}))
		})
	}
}
