package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
)

// Stream yields the response in chunks. The last chunk contains the whole response.
func ExampleNew() {
	service := httptest.NewServer(http.HandlerFunc(respond)) // stands for the real service
	defer service.Close()

	model := openai.New("gpt-5.2", &openai.Options{Key: "your key", URL: service.URL, API: openai.Responses, Provider: "openai"})
	stream(model)
	// Output:
	// "Good "
	// "morning."
	// end_turn 1000 100 0.00315
}

// Any server with Chat Completions works, such as Ollama, llama.cpp and vLLM. Set its
// address.
func ExampleNew_local() {
	ollama := httptest.NewServer(http.HandlerFunc(complete)) // stands for http://localhost:11434
	defer ollama.Close()

	model := openai.New("llama3.2", &openai.Options{URL: ollama.URL + "/v1", Provider: "ollama", Window: 8192})
	fmt.Println(model.Info().Name)
	stream(model)
	// Output:
	// ollama/llama3.2
	// "Good "
	// "morning."
	// end_turn 20 5 0
}

// stream sends a request to a model and prints the response.
func stream(model belay.InfoModel) {
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
}

// respond sends an answer like OpenAI.
func respond(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range [][2]string{
		{"response.output_item.added", `{"output_index":0,"item":{"type":"message"}}`},
		{"response.output_text.delta", `{"output_index":0,"delta":"Good "}`},
		{"response.output_text.delta", `{"output_index":0,"delta":"morning."}`},
		{"response.completed", `{"response":{"status":"completed","usage":{"input_tokens":1000,"output_tokens":100}}}`},
	} {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s\n\n", e[0], e[0], e[1][1:])
	}
}

// complete sends an answer like a local server.
func complete(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, chunk := range []string{
		`{"choices":[{"delta":{"content":"Good "}}]}`,
		`{"choices":[{"delta":{"content":"morning."},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5}}`,
		`[DONE]`,
	} {
		fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
}
