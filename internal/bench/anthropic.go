package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/store/memstore"
)

// cannedStream is a response in the form in which the Messages API streams it.
const cannedStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"bench","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":", world."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

`

// serveCanned starts a local server that answers every request with cannedStream.
func serveCanned() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the measurement
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, cannedStream)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() {
		must(server.Close())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			must(err)
		}
	}, nil
}

func anthropicPromises() []promise {
	return []promise{
		{"anthropic-overhead-us", 200, sdkOverhead},
		{"anthropic-overhead", 1.1, anthropicRatio},
		{"anthropic-first-token-us", 1000, anthropicFirstToken},
		{"anthropic-thousand-turns", 1.2, anthropicThousandTurns},
	}
}

// withAnthropic measures with one server for both the provider and a bare call of the
// official SDK. If leave is true, a call stops at the first text. Otherwise it reads the
// whole response.
func withAnthropic(measure func(url string, model belay.Model, bare func(leave bool)) float64) (float64, error) {
	url, stop, err := serveCanned()
	if err != nil {
		return 0, err
	}
	defer stop()
	client := sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("bench"), option.WithMaxRetries(0))
	bare := func(leave bool) {
		stream := client.Messages.NewStreaming(ctx, sdk.MessageNewParams{
			Model: "bench", MaxTokens: 1024,
			Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("say hello"))},
		})
		var message sdk.Message
		for stream.Next() {
			must(message.Accumulate(stream.Current()))
			if leave && stream.Current().Type == "content_block_delta" {
				break
			}
		}
		must(stream.Err())
		must(stream.Close())
	}
	return measure(url, anthropic.New("bench", &anthropic.Options{URL: url, Key: "bench", MaxTokens: 1024}), bare), nil
}

// anthropicRatio returns the time of the provider's call divided by the time of the bare
// call.
func anthropicRatio() (float64, error) {
	return withAnthropic(func(_ string, model belay.Model, bare func(leave bool)) float64 {
		ours, theirs := alternating(geminiSamples, func(int) { hear(model, request(1), false) }, func(int) { bare(false) })
		return ours / theirs
	})
}

// anthropicFirstToken returns how many microseconds later the first text arrives than with
// the bare call.
func anthropicFirstToken() (float64, error) {
	return withAnthropic(func(_ string, model belay.Model, bare func(leave bool)) float64 {
		ours, theirs := alternating(geminiSamples, func(int) { hear(model, request(1), true) }, func(int) { bare(true) })
		return ours - theirs
	})
}

// anthropicThousandTurns returns the relative cost of the request in turn 1,000, see
// longRequests.
func anthropicThousandTurns() (float64, error) {
	return withAnthropic(func(url string, model belay.Model, _ func(leave bool)) float64 { return longRequests(url, model) })
}

// sdkOverhead returns how many microseconds longer a turn with ten hooks takes than the
// bare call of the official SDK. It is the median, on a server that answers at once.
func sdkOverhead() (float64, error) {
	return withAnthropic(func(_ string, model belay.Model, bare func(leave bool)) float64 {
		agent, err := belay.New(model, &belay.Options{Hooks: tenHooks(), Store: memstore.New(nil)})
		must(err)
		ours, theirs := alternating(geminiSamples,
			func(i int) { takeTurn(agent.Session(fmt.Sprint(i))) }, // a first turn in a new session, because the bare call has no history either
			func(int) { bare(false) })
		return ours - theirs
	})
}

func microseconds(f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start)) / float64(time.Microsecond)
}
