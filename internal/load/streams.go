package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// followed is how many sessions the streams follow, and how many turns run in a second.
const followed = 10

// words is a model that says ten words, one every 20 milliseconds.
type words struct{}

func (words) Info() belay.ModelInfo { return belay.ModelInfo{Name: "load/words"} }

// Stream implements belay.Model.
func (words) Stream(ctx context.Context, _ *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for range 10 {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				yield(belay.Chunk{}, context.Cause(ctx))
				return
			}
			if !yield(belay.Chunk{Text: "some words "}, nil) {
				return
			}
		}
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("some words")}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1, Out: 10}}}, nil)
	}
}

// manyStreams measures streams of a server that follow sessions with running turns. The clients are in this process.
func manyStreams(ctx context.Context, out io.Writer, s *size) error {
	heading(out, "streams", "events a second to all", "delay, median", "delay, 99 %", "CPU cores, server and clients", "heap per stream, both ends")
	for _, count := range s.streams {
		if err := inDirectory(func(dir string) error { return streams(ctx, out, dir, count, s.lasts) }); err != nil {
			return err
		}
	}
	return nil
}

func streams(ctx context.Context, out io.Writer, dir string, count int, lasts time.Duration) (err error) {
	user := filepath.Join(dir, "user")
	h, err := host.Open(ctx, &host.Options{Dir: dir, UserDir: user, Environ: []string{}, Model: words{}, NoJobs: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	tokens := serve.OpenTokens(filepath.Join(user, "tokens"))
	secret, err := tokens.Local()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var lags []time.Duration
	server, err := serve.New(h, &serve.Options{Tokens: tokens, Workers: followed, Rate: 1e6, Streams: 10_000, Lag: func(lag time.Duration) {
		mu.Lock()
		lags = append(lags, lag)
		mu.Unlock()
	}})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving, listener) }() // ends with stop
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	agent, err := h.Agent(ctx, host.Main)
	if err != nil {
		return err
	}
	sessions := make([]*belay.Session, followed)
	for i := range sessions {
		sessions[i] = agent.Session(fmt.Sprintf("s-%d", i))
		if _, err := sessions[i].Turn(ctx, "go"); err != nil {
			return err
		}
	}
	var events, open atomic.Int64
	heap := liveHeap()
	reading, leave := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer func() { leave(); clients.Wait() }()
	transport := &http.Transport{MaxIdleConns: 1, DisableKeepAlives: true}
	connected := make(chan error, count)
	for i := range count {
		clients.Go(func() { // ends with leave
			connected <- follow(reading, transport, fmt.Sprintf("http://%s/v1/sessions/s-%d/events", listener.Addr(), i%followed), secret, &open, &events)
		})
	}
	for open.Load() < int64(count) {
		select {
		case err := <-connected:
			return fmt.Errorf("a stream ended: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	each := float64(liveHeap()-heap) / float64(count) / 1024
	mu.Lock()
	lags = nil
	mu.Unlock()
	start, cpu, before := time.Now(), cpuTime(), events.Load()
	if err := rounds(ctx, followed, followed, func(ctx context.Context, i int) error { // a turn each second
		for next := start; time.Since(start) < lasts; {
			if _, err := sessions[i].Turn(ctx, "go"); err != nil {
				return err
			}
			next = next.Add(time.Second)
			select {
			case <-time.After(time.Until(next)):
			case <-ctx.Done():
			}
		}
		return nil
	}); err != nil {
		return err
	}
	lasted := time.Since(start)
	used := cpuTime() - cpu
	if open.Load() != int64(count) {
		return fmt.Errorf("%d of %d streams are open at the end: %w", open.Load(), count, <-connected)
	}
	mu.Lock()
	defer mu.Unlock()
	row(out, count, float64(events.Load()-before)/lasted.Seconds(), quantile(lags, 0.5), quantile(lags, 0.99), used.Seconds()/lasted.Seconds(), fmt.Sprintf("%.0f KB", each))
	return nil
}

// follow reads a stream until ctx ends, and counts its events.
func follow(ctx context.Context, transport *http.Transport, url, secret string, open, events *atomic.Int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var problem struct {
			Detail string `json:"detail"`
		}
		return errors.Join(fmt.Errorf("the status is %d", resp.StatusCode), json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&problem), errors.New(problem.Detail))
	}
	open.Add(1)
	defer open.Add(-1)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			events.Add(1)
		}
	}
	return errors.Join(errors.New("the stream ended"), lines.Err())
}
