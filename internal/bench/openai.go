package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/store/memstore"
)

// openaiPromises are the promises about the provider of OpenAI models and compatible
// servers. The floor is the bare call of the official SDK on the same server.
func openaiPromises() []promise {
	return []promise{
		{"openai-overhead-us", 200, func() (float64, error) { return openaiOverhead(openai.Responses) }},
		{"openai-chat-overhead-us", 200, func() (float64, error) { return openaiOverhead(openai.Chat) }},
		{"openai-overhead", 1.1, func() (float64, error) { return openaiRatio(openai.Responses) }},
		{"openai-chat-overhead", 1.1, func() (float64, error) { return openaiRatio(openai.Chat) }},
		{"openai-first-token-us", 1000, openaiFirstToken},
		{"openai-thousand-turns", 1.2, openaiThousandTurns},
	}
}

// cannedResponses is a response in the form in which the Responses API streams it.
const cannedResponses = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"bench","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":", world."}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello, world.","annotations":[]}]}}

event: response.completed
data: {"type":"response.completed","sequence_number":5,"response":{"id":"resp_1","object":"response","status":"completed","model":"bench","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello, world.","annotations":[]}]}],"usage":{"input_tokens":100,"output_tokens":5,"total_tokens":105}}}

`

// cannedChat is a response in the form in which Chat Completions streams it.
const cannedChat = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":", world."},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105}}

data: [DONE]

`

// withOpenAI measures with a local server that reads the whole request and answers at once
// with a canned response of this API.
func withOpenAI(api openai.API, measure func(url string) (float64, error)) (float64, error) {
	canned := cannedResponses
	if api == openai.Chat {
		canned = cannedChat
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the measurement
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, canned)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() {
		must(server.Close())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			must(err)
		}
	}()
	return measure("http://" + listener.Addr().String() + "/v1")
}

// bareOpenAI returns the call of a program that uses the SDK directly. If leave is true,
// the call stops at the first text. Otherwise it reads the whole response.
func bareOpenAI(api openai.API, url string) func(leave bool) {
	client := sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("bench"), option.WithMaxRetries(0))
	if api == openai.Chat {
		return func(leave bool) {
			stream := client.Chat.Completions.NewStreaming(ctx, sdk.ChatCompletionNewParams{Model: "bench", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("say hello")}})
			defer stream.Close()
			var whole sdk.ChatCompletionAccumulator
			for stream.Next() {
				whole.AddChunk(stream.Current())
				if leave {
					return
				}
			}
			must(stream.Err())
		}
	}
	return func(leave bool) {
		stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{
			Model: "bench", Store: param.NewOpt(false), Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("say hello")},
		})
		defer stream.Close()
		for stream.Next() {
			if leave && stream.Current().Delta != "" {
				return
			}
		}
		must(stream.Err())
	}
}

func benchOpenAI(api openai.API, url string) *openai.Model {
	return openai.New("bench", &openai.Options{URL: url, Key: "bench", API: api})
}

const openaiSamples = 400

// openaiOverhead returns how many microseconds longer a turn with ten hooks takes than the
// bare call (median).
func openaiOverhead(api openai.API) (float64, error) {
	return withOpenAI(api, func(url string) (float64, error) {
		agent, err := belay.New(benchOpenAI(api, url), &belay.Options{Hooks: tenHooks(), Store: memstore.New(nil)})
		if err != nil {
			return 0, err
		}
		bare := bareOpenAI(api, url)
		ours, theirs := alternating(openaiSamples,
			func(i int) { takeTurn(agent.Session(fmt.Sprint(i))) }, // a first turn in a new session, because the bare call has no history either
			func(int) { bare(false) })
		return ours - theirs, nil
	})
}

// openaiRatio returns the time of the provider's call divided by the time of the bare call.
func openaiRatio(api openai.API) (float64, error) {
	return withOpenAI(api, func(url string) (float64, error) {
		bare, model := bareOpenAI(api, url), benchOpenAI(api, url)
		ours, theirs := alternating(openaiSamples, func(int) { hear(model, request(1), false) }, func(int) { bare(false) })
		return ours / theirs, nil
	})
}

// openaiFirstToken returns how many microseconds later the first text arrives than with the
// bare call.
func openaiFirstToken() (float64, error) {
	return withOpenAI(openai.Responses, func(url string) (float64, error) {
		bare, model := bareOpenAI(openai.Responses, url), benchOpenAI(openai.Responses, url)
		ours, theirs := alternating(openaiSamples, func(int) { hear(model, request(1), true) }, func(int) { bare(true) })
		return ours - theirs, nil
	})
}

// openaiThousandTurns returns the relative cost of the request in turn 1,000, see
// longRequests.
func openaiThousandTurns() (float64, error) {
	return withOpenAI(openai.Responses, func(url string) (float64, error) {
		return longRequests(url, benchOpenAI(openai.Responses, url)), nil
	})
}
