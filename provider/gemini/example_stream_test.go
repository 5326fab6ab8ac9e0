package gemini_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
)

// Stream yields the response in chunks. The last chunk contains the whole response.
func ExampleNew() {
	service := httptest.NewServer(http.HandlerFunc(greet)) // stands for the real service
	defer service.Close()

	model := gemini.New("gemini-2.5-flash", &gemini.Options{Key: "your key", URL: service.URL})
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
			fmt.Println(r.StopReason, r.Usage.In, r.Usage.CacheRead, r.Usage.Out)
			fmt.Printf("$%.6f\n", model.Info().Price.Of(r.Usage))
		}
	}
	// Output:
	// "Good "
	// "morning."
	// end_turn 400 600 100
	// $0.000388
}

// greet sends an answer like the real service.
func greet(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"Good "}],"role":"model"}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"morning."}],"role":"model"}}]}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":600,"candidatesTokenCount":30,"thoughtsTokenCount":70}}`,
	} {
		fmt.Fprintf(w, "data: %s\r\n\r\n", data)
	}
}
