package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/store/memstore"
)

// geminiPromises are the promises about the provider of Gemini models,
// compared with the bare call of the official SDK on the same server.
func geminiPromises() []promise {
	return []promise{
		{"gemini-overhead-us", 200, geminiOverhead},
		{"gemini-overhead", 1.1, geminiRatio},
		{"gemini-first-token-us", 1000, geminiFirstToken},
		{"gemini-thousand-turns", 1.2, geminiThousandTurns},
	}
}

// cannedGemini is a response as the Gemini API streams it.
var cannedGemini = strings.ReplaceAll(`data: {"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"bench","responseId":"r"}

data: {"candidates":[{"content":{"parts":[{"text":", world."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"bench","responseId":"r"}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":105},"modelVersion":"bench","responseId":"r"}

`, "\n", "\r\n")

// withGemini measures on a server that reads a request to its end and answers
// with the canned response at once.
func withGemini(measure func(url string) (float64, error)) (float64, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the measurement
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, cannedGemini)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() {
		must(server.Close())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			must(err)
		}
	}()
	return measure("http://" + listener.Addr().String())
}

// bareGemini is the call of a program that uses the SDK directly. It stops at
// the first event, or reads all of them.
func bareGemini(url string) (call func(leave bool), err error) {
	client, err := sdk.NewClient(ctx, &sdk.ClientConfig{APIKey: "bench", Backend: sdk.BackendGeminiAPI, HTTPOptions: sdk.HTTPOptions{BaseURL: url}})
	return func(leave bool) {
		for _, err := range client.Models.GenerateContentStream(ctx, "bench", sdk.Text("say hello"), nil) {
			must(err)
			if leave {
				return
			}
		}
	}, err
}

func benchGemini(url string) *gemini.Model {
	return gemini.New("bench", &gemini.Options{URL: url, Key: "bench"})
}

// hear sends a request to a model, and stops at the first chunk or reads the
// whole response.
func hear(model belay.Model, req *belay.Request, leave bool) {
	for _, err := range model.Stream(ctx, req) {
		must(err)
		if leave {
			return
		}
	}
}

// alternating returns the medians of two functions in microseconds. They run
// alternately, so that both run under the same load.
func alternating(samples int, ours, theirs func(i int)) (our, their float64) {
	var a, b []float64
	for i := range samples {
		b = append(b, microseconds(func() { theirs(i) }))
		a = append(a, microseconds(func() { ours(i) }))
	}
	return median(a), median(b)
}

const geminiSamples = 400

// geminiOverhead is the median time, in microseconds, that a turn with ten hooks
// takes beyond the bare call.
func geminiOverhead() (float64, error) {
	return withGemini(func(url string) (float64, error) {
		bare, err := bareGemini(url)
		if err != nil {
			return 0, err
		}
		agent, err := belay.New(benchGemini(url), &belay.Options{Hooks: tenHooks(), Store: memstore.New(nil)})
		if err != nil {
			return 0, err
		}
		ours, theirs := alternating(geminiSamples,
			func(i int) { takeTurn(agent.Session(fmt.Sprint(i))) }, // a first turn, like the bare call
			func(int) { bare(false) })
		return ours - theirs, nil
	})
}

// geminiRatio is the time of the provider's call divided by that of the bare
// call.
func geminiRatio() (float64, error) {
	return withGemini(func(url string) (float64, error) {
		bare, err := bareGemini(url)
		if err != nil {
			return 0, err
		}
		model := benchGemini(url)
		ours, theirs := alternating(geminiSamples, func(int) { hear(model, request(1), false) }, func(int) { bare(false) })
		return ours / theirs, nil
	})
}

// geminiFirstToken is how many microseconds the first text arrives later than
// with the bare call.
func geminiFirstToken() (float64, error) {
	return withGemini(func(url string) (float64, error) {
		bare, err := bareGemini(url)
		if err != nil {
			return 0, err
		}
		model := benchGemini(url)
		ours, theirs := alternating(geminiSamples, func(int) { hear(model, request(1), true) }, func(int) { bare(true) })
		return ours - theirs, nil
	})
}

// geminiThousandTurns is the cost of the request of turn 1,000, see
// longRequests.
func geminiThousandTurns() (float64, error) {
	return withGemini(func(url string) (float64, error) { return longRequests(url, benchGemini(url)), nil })
}

// longRequests is the time of the request of turn 1,000 divided by that of turn 100
// plus the time to send the additional bytes. These bytes are in separate pieces of
// memory, like the messages.
func longRequests(url string, model belay.Model) float64 {
	const early, late = 2*100 - 1, 2*1000 - 1 // messages
	measure := func(messages int) func() (ours, bytesAlone float64) {
		req, beside := request(messages), request(messages)
		pieces := make([][]byte, 0, messages)
		for i := range messages { // in memory that also holds other data
			pieces = append(pieces, bytes.Repeat([]byte("x"), 1000))
			beside.Messages[i] = kilobyte(i)
		}
		return func() (ours, bytesAlone float64) {
			defer runtime.KeepAlive(beside)
			return alternating(25, func(int) {
				req.Messages[messages-1] = kilobyte(messages - 1) // the new part of a step is encoded each time
				hear(model, req, false)
			}, func(int) { send(url, pieces) })
		}
	}
	first, last := measure(early), measure(late)
	ratios := make([]float64, rounds)
	for i := range ratios {
		earlyOurs, earlyBytes := first()
		lateOurs, lateBytes := last()
		ratios[i] = lateOurs / (earlyOurs + lateBytes - earlyBytes)
	}
	return median(ratios)
}

// request returns a conversation of n messages of a kilobyte each.
func request(messages int) *belay.Request {
	req := &belay.Request{}
	for i := range messages {
		req.Messages = append(req.Messages, kilobyte(i))
	}
	return req
}

func kilobyte(i int) *belay.Message {
	m := &belay.Message{Seq: int64(i + 1), Role: belay.RoleUser, Parts: []belay.Part{belay.Text(strings.Repeat("say hello ", 96))}}
	if i%2 == 1 {
		m.Role = belay.RoleAssistant
	}
	return m
}

// send sends a body of n pieces of a kilobyte each, and reads the answer.
func send(url string, pieces [][]byte) {
	readers := make([]io.Reader, 0, len(pieces))
	for _, piece := range pieces {
		readers = append(readers, bytes.NewReader(piece))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, filling{io.MultiReader(readers...)})
	must(err)
	r.ContentLength = int64(len(pieces) * 1000)
	answer, err := http.DefaultClient.Do(r)
	must(err)
	_, err = io.Copy(io.Discard, answer.Body)
	must(err)
	must(answer.Body.Close())
}

// filling fills the whole buffer: data that is read in small pieces is also
// sent in small pieces.
type filling struct{ r io.Reader }

func (f filling) Read(p []byte) (int, error) {
	n, err := io.ReadFull(f.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
