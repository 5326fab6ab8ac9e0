package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/store/memstore"
)

// cannedStream is a response as the Messages API streams it.
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

// serveCanned answers every request on loopback with the canned stream.
func serveCanned() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the measurement
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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

// sdkOverhead is how many microseconds a turn with ten hooks takes beyond the
// bare call of the official SDK, at the median, on a server that answers at
// once.
func sdkOverhead() (float64, error) {
	url, stop, err := serveCanned()
	if err != nil {
		return 0, err
	}
	defer stop()
	client := sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("bench"), option.WithMaxRetries(0))
	bare := func() {
		stream := client.Messages.NewStreaming(ctx, sdk.MessageNewParams{
			Model: "bench", MaxTokens: 1024,
			Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("say hello"))},
		})
		var message sdk.Message
		for stream.Next() {
			must(message.Accumulate(stream.Current()))
		}
		must(stream.Err())
	}
	agent, err := belay.New(anthropic.New("bench", &anthropic.Options{URL: url, Key: "bench", MaxTokens: 1024}),
		&belay.Options{Hooks: tenHooks(), Store: memstore.New(nil)})
	if err != nil {
		return 0, err
	}
	const samples = 400
	var ours, theirs []float64
	for i := range samples {
		session := agent.Session(fmt.Sprint(i)) // a first turn, as the bare call is
		theirs = append(theirs, microseconds(bare))
		ours = append(ours, microseconds(func() { takeTurn(session) }))
	}
	return median(ours) - median(theirs), nil
}

func microseconds(f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start)) / float64(time.Microsecond)
}
