package anthropic_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/internal/wiretest"
)

// answering returns a client that gets a text in the given number of pieces.
func answering(pieces int) *http.Client {
	var b bytes.Buffer
	b.WriteString(event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`))
	b.WriteString(event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	for i := range pieces {
		b.WriteString(event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"piece %d "}}`, i)))
	}
	b.WriteString(event("content_block_stop", `{"type":"content_block_stop","index":0}`))
	b.WriteString(event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`))
	b.WriteString(event("message_stop", `{"type":"message_stop"}`))
	return &http.Client{Transport: &wiretest.Canned{ContentType: "text/event-stream", Body: b.Bytes()}}
}

func BenchmarkStream(b *testing.B) {
	client := answering(50)
	wiretest.BenchmarkStream(b, client, anthropic.New("m", &anthropic.Options{Key: "k", HTTPClient: client}))
}
