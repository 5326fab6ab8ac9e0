package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/store/memstore"
)

// provider is a provider whose client is compared with a bare HTTP request to the same
// server.
type provider struct {
	name, path, body, canned string
	open                     func(url string) belay.Model
}

var providers = []provider{
	{
		"anthropic", "/v1/messages", `{"model":"bench","max_tokens":1024,"messages":[{"role":"user","content":[{"type":"text","text":"say hello"}]}],"stream":true}`, cannedAnthropic,
		func(url string) belay.Model {
			return anthropic.New("bench", &anthropic.Options{URL: url, Key: "bench", MaxTokens: 1024})
		},
	},
	{
		"gemini", "/v1beta/models/bench:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"say hello"}],"role":"user"}]}`, cannedGemini,
		func(url string) belay.Model { return gemini.New("bench", &gemini.Options{URL: url, Key: "bench"}) },
	},
	{
		"openai", "/v1/responses", `{"model":"bench","store":false,"input":"say hello","stream":true}`, cannedResponses,
		func(url string) belay.Model {
			return openai.New("bench", &openai.Options{URL: url, Key: "bench", API: openai.Responses})
		},
	},
	{
		"openai-chat", "/v1/chat/completions", `{"model":"bench","messages":[{"role":"user","content":"say hello"}],"stream":true}`, cannedChat,
		func(url string) belay.Model {
			return openai.New("bench", &openai.Options{URL: url, Key: "bench", API: openai.Chat})
		},
	},
}

// providerPromises are the promises about the clients of the providers.
func providerPromises() []promise {
	var all []promise
	for i := range providers {
		p := &providers[i]
		all = append(all,
			promise{p.name + "-overhead-us", 200, p.turnOverhead},
			promise{p.name + "-overhead", 1.5, p.ratio},
			promise{p.name + "-first-token-us", 1000, p.firstToken},
			promise{p.name + "-thousand-turns", 1.2, p.thousandTurns},
		)
	}
	return all
}

// serve calls measure with the URL of a test server. The server reads each request to its
// end and answers at once with the canned response.
func (p *provider) serve(measure func(url string) (float64, error)) (float64, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the measurement
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, p.canned)
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

// bare is the floor: one POST with net/http, and each event decoded once with
// encoding/json. If leave is true, it stops at the first event. Otherwise it reads all
// events.
func (p *provider) bare(url string, leave bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+p.path, strings.NewReader(p.body))
	must(err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	must(err)
	defer func() { must(answer.Body.Close()) }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var event map[string]any
		must(json.Unmarshal(data, &event))
		if leave {
			return
		}
	}
}

const providerSamples = 400

// turnOverhead returns the median time of a turn with ten hooks minus the median time of
// the bare request, in microseconds.
func (p *provider) turnOverhead() (float64, error) {
	return p.serve(func(url string) (float64, error) {
		agent, err := belay.New(p.open(url), &belay.Options{Hooks: tenHooks(), Store: memstore.New(nil)})
		if err != nil {
			return 0, err
		}
		ours, theirs := alternating(providerSamples,
			func(i int) { takeTurn(agent.Session(fmt.Sprint(i))) }, // the first turn of a session, which sends the same request as bare
			func(int) { p.bare(url, false) })
		return ours - theirs, nil
	})
}

// ratio returns the median time of a request with the provider's client divided by the
// median time of the bare request.
func (p *provider) ratio() (float64, error) {
	return p.serve(func(url string) (float64, error) {
		model := p.open(url)
		ours, theirs := alternating(providerSamples, func(int) { hear(model, request(1), false) }, func(int) { p.bare(url, false) })
		return ours / theirs, nil
	})
}

// firstToken returns the extra delay of the provider's client before the first chunk, in
// microseconds: the median time to the client's first chunk minus the median time to the
// first event of the bare request.
func (p *provider) firstToken() (float64, error) {
	return p.serve(func(url string) (float64, error) {
		model := p.open(url)
		ours, theirs := alternating(providerSamples, func(int) { hear(model, request(1), true) }, func(int) { p.bare(url, true) })
		return ours - theirs, nil
	})
}

// thousandTurns returns the result of longRequests for this provider.
func (p *provider) thousandTurns() (float64, error) {
	return p.serve(func(url string) (float64, error) { return longRequests(url, p.open(url)), nil })
}

// hear sends a request to a model. If leave is true, it stops at the first chunk.
// Otherwise it reads the whole response.
func hear(model belay.Model, req *belay.Request, leave bool) {
	for _, err := range model.Stream(ctx, req) {
		must(err)
		if leave {
			return
		}
	}
}

// alternating returns the median times of two functions, in microseconds. The functions run
// alternately, so that both run under the same load.
func alternating(samples int, ours, theirs func(i int)) (our, their float64) {
	var a, b []float64
	for i := range samples {
		b = append(b, microseconds(func() { theirs(i) }))
		a = append(a, microseconds(func() { ours(i) }))
	}
	return median(a), median(b)
}

func microseconds(f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start)) / float64(time.Microsecond)
}

// longRequests returns how the time of a request grows with the conversation. It divides
// the time of the request of turn 1,000 by a sum: the time of the request of turn 100, plus
// the time to send the additional bytes alone. The bytes are in separate pieces of memory,
// like the messages.
func longRequests(url string, model belay.Model) float64 {
	const early, late = 2*100 - 1, 2*1000 - 1 // messages
	measure := func(messages int) func() (ours, bytesAlone float64) {
		req, beside := request(messages), request(messages)
		pieces := make([][]byte, 0, messages)
		for i := range messages { // allocate other data between the pieces, as in a real process
			pieces = append(pieces, bytes.Repeat([]byte("x"), 1000))
			beside.Messages[i] = kilobyte(i)
		}
		return func() (ours, bytesAlone float64) {
			defer runtime.KeepAlive(beside)
			return alternating(25, func(int) {
				req.Messages[messages-1] = kilobyte(messages - 1) // the last message is new, so the client must encode it
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

// request returns a request with this many messages of a kilobyte each.
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

// send sends a body made of pieces of a kilobyte each, and reads the answer.
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

// filling is a reader that always fills the whole buffer. Otherwise net/http would send
// the small pieces one by one.
type filling struct{ r io.Reader }

func (f filling) Read(p []byte) (int, error) {
	n, err := io.ReadFull(f.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
