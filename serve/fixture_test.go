package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/store/sqlite"
)

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this test program again to confine commands
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	if err := os.Setenv(secretVariable, secretInEnvironment); err != nil { // here, because tests that set variables cannot run in parallel
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// The tests have a secret in a variable that is not for agents.
const secretVariable = "CI_SERVER_ACCESS"

var secretInEnvironment = "belay_" + strings.Repeat("E", 52)

// patience is how long a test waits for something that must happen. It is long, because the
// machine may be busy.
const patience = 3 * time.Minute

// model is a model whose answer depends only on the transcript, so that every process gives
// the same answer. The last user message says what to do, in lines:
//
//	call TOOL INPUT    calls a tool, one in each step
//	talk N             sends N deltas
//	block              waits until the test closes gate
//	fail TEXT          fails with this error
//	chatter            sends a delta every 10 ms until the test closes gate
//	anything else      is repeated
type model struct {
	gate  chan struct{} // closed: "block" no longer waits
	open  chan struct{} // each value lets one "block" go on
	asked chan string   // gets the task of each blocked request, if it is not nil
}

func (m *model) Info() belay.ModelInfo { return belay.ModelInfo{Name: "test/model"} }

// Stream implements belay.Model.
func (m *model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		task, steps := "", 0
		for _, said := range req.Messages {
			switch {
			case said.Kind == belay.KindUser:
				task, steps = said.Text(), 0
			case said.Role == belay.RoleAssistant:
				steps++
			}
		}
		answer := belay.Response{Parts: []belay.Part{belay.Text("done: " + task)}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 10, Out: 1}}
		n := 0
		for line := range strings.Lines(task) {
			line = strings.TrimSpace(line)
			tool, isCall := strings.CutPrefix(line, "call ")
			if why, ok := strings.CutPrefix(line, "fail "); ok {
				yield(belay.Chunk{}, errors.New(why))
				return
			}
			if talk, ok := strings.CutPrefix(line, "talk "); ok {
				count, err := strconv.Atoi(talk)
				if err != nil {
					yield(belay.Chunk{}, err)
					return
				}
				for range count {
					if !yield(belay.Chunk{Text: strings.Repeat("x", 1000)}, nil) {
						return
					}
				}
			}
			for line == "chatter" {
				select {
				case <-m.gate:
					line = ""
				case <-ctx.Done():
					yield(belay.Chunk{}, context.Cause(ctx))
					return
				case <-time.After(10 * time.Millisecond): // a model needs time for a word
					if !yield(belay.Chunk{Text: "word "}, nil) {
						return
					}
				}
			}
			if line == "block" {
				if m.asked != nil {
					m.asked <- task
				}
				select {
				case <-m.gate:
				case <-m.open:
				case <-ctx.Done():
					yield(belay.Chunk{}, context.Cause(ctx))
					return
				}
			}
			if !isCall {
				continue
			}
			if n == steps {
				name, input, _ := strings.Cut(tool, " ")
				answer.StopReason = belay.StopToolUse
				answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: fmt.Sprintf("c%d", steps), Tool: name, Input: json.RawMessage(input)}}}
			}
			n++
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// world is a running server with its project.
type world struct {
	t      *testing.T
	dir    string
	url    string
	model  *model
	host   *host.Host
	server *serve.Server
	tokens *serve.Tokens
	secret map[string]string // by the name of the token
	stop   context.CancelFunc
	ended  chan error
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

// newWorld starts a server. change may change its options.
func newWorld(t *testing.T, files map[string]string, change func(*host.Options, *serve.Options)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), model: &model{gate: make(chan struct{}), open: make(chan struct{})}, secret: make(map[string]string), ended: make(chan error, 1)}
	for name, text := range files {
		path := filepath.Join(w.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A project has a store already, because making one takes as long as most tests.
	if err := errors.Join(os.MkdirAll(filepath.Join(w.dir, ".belay"), 0o700), os.Rename(newFile(t), filepath.Join(w.dir, ".belay", "belay.db"))); err != nil {
		t.Fatal(err)
	}
	user := t.TempDir()
	opts := &host.Options{Dir: w.dir, UserDir: user, Environ: []string{}, Model: w.model, NoJobs: true}
	w.tokens = serve.OpenTokens(filepath.Join(user, "belay", "tokens"))
	served := &serve.Options{Tokens: w.tokens, Workers: 4, Ping: 50 * time.Millisecond}
	if change != nil {
		change(opts, served)
	}
	var err error
	if w.host, err = host.Open(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if _, err := w.host.Agent(t.Context(), host.Main); err != nil {
		t.Fatal(err)
	}
	if w.server, err = serve.New(w.host, served); err != nil {
		t.Fatal(err)
	}
	w.server.SetQueueLook(100 * time.Millisecond)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() { w.ended <- w.server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-w.ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the server does not stop")
		}
		if err := w.host.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	w.token("admin", nil, serve.RoleAdmin)
	return w
}

// token makes a token.
func (w *world) token(name string, labels map[string]string, roles ...serve.Role) {
	w.t.Helper()
	secret, err := w.tokens.Create(name, roles, labels)
	if err != nil {
		w.t.Fatal(err)
	}
	w.secret[name] = secret
}

// reply is a response that was read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
	openAI bool // errors have the form of OpenAI
}

// problem returns the problem document of a reply.
func (r *reply) problem(t *testing.T) serve.Problem {
	t.Helper()
	var p serve.Problem
	if r.status == http.StatusUnauthorized && r.header.Get("WWW-Authenticate") == "" {
		t.Error("a response with the status 401 has no header WWW-Authenticate")
	}
	if r.openAI {
		var e openAIError
		if err := json.Unmarshal(r.body, &e); err != nil || e.Error == nil || e.Error.Message == "" {
			t.Errorf("the error is %s, %v", r.body, err)
			return p
		}
		return serve.Problem{Problem: api.Problem{Status: r.status, Code: codes.Code(e.Error.Code), Detail: e.Error.Message}}
	}
	if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("the status is %d with %s, want a problem document: %s", r.status, kind, r.body)
	}
	if err := json.Unmarshal(r.body, &p); err != nil || p.Status != r.status || p.Code == "" || p.Detail == "" || p.Title == "" || !strings.HasPrefix(p.Type, "/v1/docs#") {
		t.Errorf("the problem is %+v, %v", p, err)
	}
	return p
}

// send sends a request as the token with a name. A body is sent as JSON.
func (w *world) send(as, method, path string, body any, header map[string]string) *reply {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var from io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		from = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, from)
	if err != nil {
		w.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if as != "" {
		r.Header.Set("Authorization", "Bearer "+w.secret[as])
	}
	for name, value := range header {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	return w.do(r)
}

func (w *world) do(r *http.Request) *reply {
	w.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return &reply{resp.StatusCode, resp.Header, data, slices.Contains([]string{"chat", "responses"}, strings.Split(r.URL.Path+"//", "/")[2])}
}

// call sends a request that must succeed, checks the response against the schema of its
// operation, and decodes it.
func (w *world) call(as, method, path string, body, into any) {
	w.t.Helper()
	r := w.send(as, method, path, body, nil)
	if r.status >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
	}
	if err := operationFor(w.t, method, path).CheckResponse(r.body); err != nil {
		w.t.Errorf("%s %s: the response does not match its schema: %v\n%s", method, path, err, r.body)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			w.t.Fatal(err)
		}
	}
}

// operationFor finds the operation of a path.
func operationFor(t *testing.T, method, path string) serve.OperationInfo {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for _, literal := range []bool{true, false} { // a literal path wins over one with variables
		for _, op := range serve.Operations() {
			pattern := strings.Split(op.Path, "/")
			if op.Method != method || len(pattern) != len(parts) {
				continue
			}
			fits := true
			for i := range parts {
				variable := strings.HasPrefix(pattern[i], "{")
				fits = fits && (parts[i] == pattern[i] || variable && !literal)
			}
			if fits {
				return op
			}
		}
	}
	t.Fatalf("no operation has %s %s", method, path)
	return serve.OperationInfo{}
}

// session is what the tests read of a session.
type session struct {
	ID     string            `json:"id"`
	State  string            `json:"state"`
	Title  string            `json:"title"`
	Labels map[string]string `json:"labels"`
	Last   int64             `json:"messages"`
	Cursor string            `json:"cursor"`
}

// newSession creates a session.
func (w *world) newSession() string {
	w.t.Helper()
	var s session
	w.call("admin", "POST", "/v1/sessions", map[string]any{}, &s)
	return s.ID
}

// started is the response of startTurn.
type started struct {
	ID     string `json:"id"`
	After  string `json:"after"`
	Result *struct {
		Turn      string          `json:"turn"`
		Reason    belay.EndReason `json:"reason"`
		Text      string          `json:"text"`
		Why       string          `json:"why"`
		Usage     belay.Usage     `json:"usage"`
		Approvals []string        `json:"approvals"`
	} `json:"result"`
}

// turn runs a turn to its end.
func (w *world) turn(as, session, text string) started {
	w.t.Helper()
	var s started
	w.call(as, "POST", "/v1/sessions/"+session+"/turns", map[string]any{"text": text, "wait": "end"}, &s)
	if s.Result == nil {
		w.t.Fatal("the turn has no result")
	}
	return s
}

// event is a server-sent event.
type event struct {
	id, kind, data string
	retry          string
}

// stored returns the key of an event that comes from the store, or "".
func (e *event) stored() string {
	var data belay.Event
	if json.Unmarshal([]byte(e.data), &data) != nil {
		return ""
	}
	switch belay.EventKind(e.kind) {
	case belay.EventTurnStart:
		if data.Message == nil { // a turn continues
			return ""
		}
	case belay.EventModelResponse, belay.EventToolUse, belay.EventToolUseResult:
	default:
		return ""
	}
	return e.id + " " + e.kind
}

// errStop ends a stream.
var errStop = errors.New("stop")

// follow reads a stream until f returns an error, the stream ends or ctx ends.
func (w *world) follow(ctx context.Context, as, path, last string, f func(event) error) error {
	return follow(ctx, w.url+path, w.secret[as], last, f)
}

func follow(ctx context.Context, url, secret, last string, f func(event) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		data, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("status %d: %s", resp.StatusCode, data)
	}
	var e event
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "retry":
			e.retry = value
		}
		if line != "" {
			continue
		}
		if e != (event{}) {
			if err := f(e); err != nil {
				if errors.Is(err, errStop) {
					return nil
				}
				return err
			}
		}
		e = event{}
	}
}

// everything reads the stored events of a session after the one with the id last, until the end of
// its last turn. The header Last-Event-ID wins over the address.
func (w *world) everything(as, session, last string) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []string
	err := w.follow(ctx, as, "/v1/sessions/"+session+"/events?after=0", last, func(e event) error {
		if key := e.stored(); key != "" {
			all = append(all, key)
		}
		if e.kind == string(belay.EventTurnEnd) {
			return errStop
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// eventually polls until f reports true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		<-tick.C
	}
}

// newRecorder records the response of a handler.
func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

// another is what another process has: its own store and agent.
type another struct {
	store *sqlite.Store
	agent *belay.Agent
}

// openOther opens the store of the world as another process would, with an agent.
func openOther(t *testing.T, w *world, m *model) another {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(w.dir, ".belay", "belay.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := belay.New(m, &belay.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(agent.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return another{store, agent}
}

// again serves the same project with another server.
func (w *world) again(server *serve.Server) *world {
	w.t.Helper()
	next := *w
	listener, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	next.url, next.server = "http://"+listener.Addr().String(), server
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	return &next
}
