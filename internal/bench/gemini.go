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

// geminiPromises are the promises about the provider of Gemini models. The floor is the
// bare call of the official SDK on the same server.
func geminiPromises() []promise {
	return []promise{
		{"gemini-overhead-us", 200, geminiOverhead},
		{"gemini-overhead", 1.1, geminiRatio},
		{"gemini-first-token-us", 1000, geminiFirstToken},
		{"gemini-thousand-turns", 1.2, geminiThousandTurns},
	}
}

// cannedGemini is a response in the form in which the Gemini API streams it.
var cannedGemini = strings.ReplaceAll(`data: {"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"bench","responseId":"r"}

data: {"candidates":[{"content":{"parts":[{"text":", world."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"bench","responseId":"r"}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":105},"modelVersion":"bench","responseId":"r"}

`, "\n", "\r\n")

// withGemini measures with a local server that reads the whole request and answers at once
// with cannedGemini.
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

// bareGemini returns the call of a program that uses the SDK directly. If leave is true,
// the call stops at the first event. Otherwise it reads all events.
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

// hear sends a request to a model. If leave is true, it stops at the first chunk. Otherwise
// it reads the whole response.
func hear(model belay.Model, req *belay.Request, leave bool) {
	for _, err := range model.Stream(ctx, req) {
		must(err)
		if leave {
			return
		}
	}
}

// alternating returns the median times of two functions, in microseconds. It runs them
// alternately, so that both have the same load on the machine.
func alternating(samples int, ours, theirs func(i int)) (our, their float64) {
	var a, b []float64
	for i := range samples {
		b = append(b, microseconds(func() { theirs(i) }))
		a = append(a, microseconds(func() { ours(i) }))
	}
	return median(a), median(b)
}

const geminiSamples = 400

// geminiOverhead returns how many microseconds longer a turn with ten hooks takes than the
// bare call (median).
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
			func(i int) { takeTurn(agent.Session(fmt.Sprint(i))) }, // a first turn in a new session, because the bare call has no history either
			func(int) { bare(false) })
		return ours - theirs, nil
	})
}

// geminiRatio returns the time of the provider's call divided by the time of the bare call.
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

// geminiFirstToken returns how many microseconds later the first text arrives than with the
// bare call.
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

// geminiThousandTurns returns the relative cost of the request in turn 1,000, see
// longRequests.
func geminiThousandTurns() (float64, error) {
	return withGemini(func(url string) (float64, error) { return longRequests(url, benchGemini(url)), nil })
}

// longRequests compares the request of turn 1,000 with the request of turn 100. It returns
// the time of the first divided by the time of the second plus the time to send the
// additional bytes. These bytes are in separate pieces of memory, as the messages are.
func longRequests(url string, model belay.Model) float64 {
	const early, late = 2*100 - 1, 2*1000 - 1 // numbers of messages
	measure := func(messages int) func() (ours, bytesAlone float64) {
		req, beside := request(messages), request(messages)
		pieces := make([][]byte, 0, messages)
		for i := range messages { // allocate other data between the pieces, as in a real conversation
			pieces = append(pieces, bytes.Repeat([]byte("x"), 1000))
			beside.Messages[i] = kilobyte(i)
		}
		return func() (ours, bytesAlone float64) {
			defer runtime.KeepAlive(beside)
			return alternating(25, func(int) {
				req.Messages[messages-1] = kilobyte(messages - 1) // the last message is new in each step, so it must be encoded each time
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

// request returns a conversation of messages of a kilobyte each.
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

// send sends these pieces as one body, and reads the answer.
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

// filling fills the whole buffer in each read. Otherwise small pieces would also be sent in
// small pieces.
type filling struct{ r io.Reader }

func (f filling) Read(p []byte) (int, error) {
	n, err := io.ReadFull(f.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
