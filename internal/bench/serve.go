package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// servePromises are the promises about belay serve.
func servePromises() []promise {
	return []promise{
		{"serve-stream-p99", 2, serveStreamP99},
		{"serve-stream-memory", 2, serveStreamMemory},
		{"serve-watched-turn", 1.2, pairRatio(watchedTurns)},
		{"serve-list-100k", 3, serveList},
	}
}

// words is a model that answers with a few deltas.
type words struct{}

func (words) Info() belay.ModelInfo { return belay.ModelInfo{Name: "bench/words"} }

// Stream implements belay.Model.
func (words) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for range 5 {
			if !yield(belay.Chunk{Text: "some words "}, nil) {
				return
			}
		}
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("some words")}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1, Out: 1}}}, nil)
	}
}

// servedHost is a running server with its project.
type servedHost struct {
	*host.Host
	dir, addr, secret string
	stop              context.CancelFunc
	ended             chan error
}

func newServedHost() (s *servedHost, err error) {
	s = &servedHost{ended: make(chan error, 1)}
	if s.dir, err = os.MkdirTemp("", "belay-bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	user := filepath.Join(s.dir, "user")
	if s.Host, err = host.Open(ctx, &host.Options{Dir: s.dir, UserDir: user, Environ: []string{}, Model: words{}, NoJobs: true}); err != nil {
		return nil, err
	}
	tokens := serve.OpenTokens(filepath.Join(user, "tokens"))
	if s.secret, err = tokens.Local(); err != nil {
		return nil, errors.Join(err, s.Host.Close())
	}
	server, err := serve.New(s.Host, &serve.Options{Tokens: tokens, Workers: 8, Rate: 1e6, Streams: 10_000})
	if err != nil {
		return nil, errors.Join(err, s.Host.Close())
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Host.Close())
	}
	s.addr = listener.Addr().String()
	serving, stop := context.WithCancel(ctx)
	s.stop = stop
	go func() { s.ended <- server.Serve(serving, listener) }() // ends with close
	return s, nil
}

func (s *servedHost) close() error {
	s.stop()
	return errors.Join(<-s.ended, s.Host.Close(), os.RemoveAll(s.dir))
}

// store returns the queue of turns.
func (s *servedHost) store() serve.Store { return s.Store().(serve.Store) } //nolint:ireturn // the host says which

// makeSessions makes sessions with the ids that benchSession returns.
func (s *servedHost) makeSessions(count int) error {
	var making sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range count {
		making.Go(func() {
			title := "a session"
			if err := s.store().Describe(ctx, benchSession(i), belay.SessionUpdate{Title: &title}); err != nil {
				failed.Store(&err)
			}
		})
	}
	making.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func benchSession(i int) string { return fmt.Sprintf("s-%d", i) }

// bareEvents is the least that a server of events needs: a loop that writes the events of a
// channel to its client.
type bareEvents struct {
	server *http.Server
	addr   string
	queues []chan belay.Event
}

func newBareEvents(streams int) (*bareEvents, error) {
	b := &bareEvents{queues: make([]chan belay.Event, streams)}
	mux := http.NewServeMux()
	for i := range b.queues {
		b.queues[i] = make(chan belay.Event, 256)
		mux.HandleFunc("/v1/sessions/"+benchSession(i)+"/events", func(w http.ResponseWriter, r *http.Request) { b.serve(w, r, b.queues[i]) })
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b.addr, b.server = listener.Addr().String(), &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = b.server.Serve(listener) }() // ends with close
	return b, nil
}

func (b *bareEvents) serve(w http.ResponseWriter, r *http.Request, queue chan belay.Event) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(text string) bool {
		_, err := io.WriteString(w, text)
		return err == nil && control.Flush() == nil
	}
	if !send(": connected\n\n") {
		return
	}
	ping := time.NewTicker(15 * time.Second)
	defer ping.Stop()
	for {
		select {
		case e := <-queue:
			data, err := json.Marshal(e)
			if err != nil || !send("event: "+string(e.Kind)+"\ndata: "+string(data)+"\n\n") {
				return
			}
		case <-ping.C:
			if !send(": ping\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// feed gives the events of the host's turns to the streams, until done ends.
func (b *bareEvents) feed(done context.Context, h *host.Host) {
	for e, err := range h.Watch(done, &belay.WatchOptions{Buffer: 1 << 16}) {
		var i int
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(e.Session, "s-%d", &i); err == nil && i < len(b.queues) {
			select {
			case b.queues[i] <- e:
			default:
			}
		}
	}
}

func (b *bareEvents) close() error { return b.server.Close() }

// benchClient reads one stream. It notes when each event arrives.
type benchClient struct {
	conn net.Conn
	read *bufio.Reader

	arrived []arrival
}

type arrival struct {
	line string // the data of the event
	at   time.Time
}

// connect opens a stream, and returns when the server has sent the first comment. It uses
// HTTP/1.0, which does not split the stream into chunks, so a line is whole.
func connect(addr, session, secret string) (*benchClient, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET /v1/sessions/%s/events HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", session, secret); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &benchClient{conn: conn, read: bufio.NewReaderSize(conn, 512)}
	for line := ""; !strings.HasPrefix(line, ": connected"); {
		if line, err = c.read.ReadString('\n'); err != nil || strings.HasPrefix(line, "HTTP/") && !strings.Contains(line, " 200 ") {
			return nil, errors.Join(err, fmt.Errorf("the stream begins with %q", line), conn.Close())
		}
	}
	return c, nil
}

// connectAll opens the streams of many sessions.
func connectAll(addr, secret string, streams int) (all []*benchClient, err error) {
	all = make([]*benchClient, streams)
	for i := range all {
		if all[i], err = connect(addr, benchSession(i), secret); err != nil {
			closeAll(all[:i])
			return nil, err
		}
	}
	return all, nil
}

func closeAll(all []*benchClient) {
	for _, c := range all {
		_ = c.conn.Close()
	}
}

// liveKinds are the events whose delay is measured. They are not stored, so their time is when
// they happened.
var liveKinds = []string{"event: text_delta", "event: turn_end"}

// collect reads events until the connection is closed. It counts the ends of turns.
func (c *benchClient) collect(ends *atomic.Int64) {
	kind := ""
	for {
		line, err := c.read.ReadString('\n')
		if err != nil {
			return
		}
		switch {
		case strings.HasPrefix(line, "event: "):
			kind = strings.TrimSpace(line)
		case strings.HasPrefix(line, "data: ") && slices.Contains(liveKinds, kind):
			c.arrived = append(c.arrived, arrival{strings.TrimPrefix(line, "data: "), time.Now()})
			if kind == "event: turn_end" {
				ends.Add(1)
			}
		}
	}
}

const (
	benchStreams = 1000
	benchTurns   = 160 // in each measurement; every session has at most one turn
	benchRounds  = 3
)

// delays runs turns, 100 in a second, while clients follow all sessions. It returns the delay
// of each event from its time until it arrives at its client. The turns are in the sessions
// from the number first on.
func (s *servedHost) delays(addr string, first int) ([]float64, error) {
	clients, err := connectAll(addr, s.secret, benchStreams)
	if err != nil {
		return nil, err
	}
	var ends, earlier atomic.Int64
	var reading sync.WaitGroup
	for i, c := range clients {
		count := &earlier
		if i >= first && i < first+benchTurns {
			count = &ends
		}
		reading.Go(func() { c.collect(count) })
	}
	begin := time.Now()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for i := range benchTurns {
		<-every.C
		turn, err := belay.NewQueuedTurn(benchSession(first+i), host.Main, "go")
		if err == nil {
			err = s.store().Submit(ctx, turn)
		}
		if err != nil {
			return nil, err
		}
	}
	for ends.Load() < benchTurns && time.Since(begin) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	closeAll(clients)
	reading.Wait()
	if ends.Load() != benchTurns {
		return nil, fmt.Errorf("%d turns ended, want %d", ends.Load(), benchTurns)
	}
	var all []float64
	for _, c := range clients[first : first+benchTurns] {
		for _, a := range c.arrived {
			var e belay.Event
			if err := json.Unmarshal([]byte(a.line), &e); err != nil {
				return nil, err
			}
			all = append(all, float64(a.at.Sub(e.Time)))
		}
	}
	return all, nil
}

// percentile returns the value below which a share of the values is.
func percentile(values []float64, share float64) float64 {
	slices.Sort(values)
	return values[min(int(share*float64(len(values))), len(values)-1)]
}

// serveStreamP99 returns the 99th percentile of the time from an event to its client, with
// 1,000 open streams and 100 turns in a second, divided by that of a bare loop which writes
// the events of the same turns.
func serveStreamP99() (figure float64, err error) {
	s, err := newServedHost()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.makeSessions(benchStreams); err != nil {
		return 0, err
	}
	bare, err := newBareEvents(benchStreams)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	ours, below := math.Inf(1), math.Inf(1)
	var ratios []float64
	for round := range benchRounds {
		feeding, stop := context.WithCancel(ctx)
		fed := make(chan struct{})
		go func() { // ends with stop
			defer close(fed)
			bare.feed(feeding, s.Host)
		}()
		under, err := s.delays(bare.addr, 2*round*benchTurns)
		stop()
		<-fed
		if err != nil {
			return 0, fmt.Errorf("the bare loop: %w", err)
		}
		over, err := s.delays(s.addr, (2*round+1)*benchTurns)
		if err != nil {
			return 0, err
		}
		floor, one := percentile(under, 0.99), percentile(over, 0.99)
		below, ours = min(below, floor), min(ours, one)
		ratios = append(ratios, one/floor)
	}
	compared = notes{median: median(ratios)}
	return ours / below, nil
}

// memoryOf returns the memory of one idle stream of a server, in bytes. The clients are plain
// connections, which need nearly none.
func (s *servedHost) memoryOf(addr string) (float64, error) {
	used := func() float64 {
		for range 5 { // each collection halves the stacks that are too large
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	before := used()
	clients, err := connectAll(addr, s.secret, benchStreams)
	if err != nil {
		return 0, err
	}
	defer closeAll(clients)
	return (used() - before) / benchStreams, nil
}

// serveStreamMemory returns the memory of an idle stream divided by that of a bare loop on
// net/http.
func serveStreamMemory() (figure float64, err error) {
	s, err := newServedHost()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.makeSessions(benchStreams); err != nil {
		return 0, err
	}
	ours, below := math.Inf(1), math.Inf(1)
	var ratios []float64
	for range benchRounds {
		bare, err := newBareEvents(benchStreams)
		if err != nil {
			return 0, err
		}
		under, err := s.memoryOf(bare.addr)
		if err := errors.Join(err, bare.close()); err != nil {
			return 0, err
		}
		over, err := s.memoryOf(s.addr)
		if err != nil {
			return 0, err
		}
		below, ours = min(below, under), min(ours, over)
		ratios = append(ratios, over/under)
	}
	compared = notes{median: median(ratios)}
	return ours / below, nil
}

// watchedTurns returns turns that ten clients follow over HTTP. The floor is turns that
// nobody follows.
func watchedTurns() (_ *pair, err error) {
	s, err := newServedHost()
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	var clients []*benchClient
	end := func() error {
		closeAll(clients)
		reading.Wait()
		return s.close()
	}
	if err := s.makeSessions(2); err != nil {
		return nil, errors.Join(err, end())
	}
	agent, err := s.Agent(ctx, host.Main)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	for range 10 {
		c, err := connect(s.addr, benchSession(0), s.secret)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		clients = append(clients, c)
		reading.Go(func() { _, _ = io.Copy(io.Discard, c.read) }) // ends when the connection is closed
	}
	return &pair{ours: turnsOf(agent.Session(benchSession(0))), floor: turnsOf(agent.Session(benchSession(1))), close: end}, nil
}

// fillSessions stores many sessions with one statement.
func (s *servedHost) fillSessions(count int) (err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, ".belay", "belay.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
		INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state, title)
		SELECT 's-' || n, 0, '', n, 1700000000000000000 + n * 7919 % 1000003, 2, 2, 0, 0, '', '{"turns":1,"last":"end_turn"}', 'session ' || n FROM numbers`, count)
	return err
}

// serveList returns the time to list 50 of 100,000 sessions divided by the time to list 50 of
// 1,000.
func serveList() (figure float64, err error) {
	var servers []*servedHost
	transport := &http.Transport{}
	defer func() {
		transport.CloseIdleConnections()
		for _, s := range servers {
			err = errors.Join(err, s.close())
		}
	}()
	var lists []func(n int)
	for _, count := range []int{100_000, 1000} {
		s, err := newServedHost()
		if err != nil {
			return 0, err
		}
		servers = append(servers, s)
		if err := s.fillSessions(count); err != nil {
			return 0, err
		}
		lists = append(lists, func(n int) {
			for range n {
				must(s.list(&http.Client{Transport: transport}))
			}
		})
	}
	return ratio(lists[0], lists[1]), nil
}

// list lists 50 sessions.
func (s *servedHost) list(client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/v1/sessions?limit=50", http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.secret)
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var page struct {
		Sessions []json.RawMessage `json:"sessions"`
		Next     string            `json:"next"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return err
	}
	if len(page.Sessions) != 50 || page.Next == "" {
		return fmt.Errorf("the page has %d sessions and the cursor %q", len(page.Sessions), page.Next)
	}
	return nil
}
