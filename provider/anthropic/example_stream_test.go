package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
)

// Stream yields the response in chunks. The last chunk contains the whole response.
func ExampleNew() {
	service := httptest.NewServer(http.HandlerFunc(greet)) // stands for the real service
	defer service.Close()

	model := anthropic.New("claude-sonnet-4-5", &anthropic.Options{Key: "your key", URL: service.URL})
	request := &belay.Request{
		System:   "You are brief.",
		Messages: []*belay.Message{{Role: belay.RoleUser, Parts: []belay.Part{belay.Text("hello")}}},
	}
	for chunk, err := range model.Stream(context.Background(), request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if chunk.Text != "" {
			fmt.Printf("%q\n", chunk.Text)
		}
		if r := chunk.Response; r != nil {
			fmt.Println(r.StopReason, r.Usage.In, r.Usage.Out, model.Info().Price.Of(r.Usage))
		}
	}
	// Output:
	// "Good "
	// "morning."
	// end_turn 1000 100 0.0045
}

// greet sends an answer like the real service.
func greet(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range [][2]string{
		{"message_start", `{"message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":1000,"output_tokens":1}}}`},
		{"content_block_start", `{"index":0,"content_block":{"type":"text","text":""}}`},
		{"content_block_delta", `{"index":0,"delta":{"type":"text_delta","text":"Good "}}`},
		{"content_block_delta", `{"index":0,"delta":{"type":"text_delta","text":"morning."}}`},
		{"content_block_stop", `{"index":0}`},
		{"message_delta", `{"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":100}}`},
		{"message_stop", `{}`},
	} {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e[0], e[1])
	}
}
