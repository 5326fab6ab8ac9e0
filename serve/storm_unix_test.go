//go:build unix

package serve_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/serve"
)

// storm defines how many sessions there are, and how often something goes wrong.
type storm struct {
	sessions int
	lasts    time.Duration // how long processes are killed and stopped
	pause    time.Duration // the time between two of these
}

// part is one process of the storm: a server or a worker.
type part struct {
	addr string // empty for a worker
	cmd  *exec.Cmd
}

// weather is a running storm.
type weather struct {
	storm
	t      *testing.T
	dir    string
	dsn    string
	secret string
	parts  []*part
	client *http.Client

	mu       sync.Mutex
	sent     map[string]map[string]bool // by session: the texts that were sent, and whether the server confirmed them
	decided  map[string]int             // by approval: how often a decision succeeded
	received []*receiver
}

// receiver is a client that follows a session.
type receiver struct {
	session string
	got     []string
	last    string
}

// Two servers and three workers share a PostgreSQL database. Processes are killed and stopped,
// and clients vanish in the middle of streams. Nothing is lost, nothing is decided twice, and
// a process that ends leaves no goroutine and no connection.
//
// SPEC V-01, V-03, V-07
func TestStorm(t *testing.T) {
	t.Parallel()
	blow(t, storm{sessions: 4, lasts: 4 * time.Second, pause: 700 * time.Millisecond})
}

func blow(t *testing.T, st storm) {
	t.Helper()
	server, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	dsn, err := server.Create(t.Context(), "storm", "template1")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	w := &weather{
		storm: st, t: t, dir: t.TempDir(), dsn: dsn, client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
		sent: make(map[string]map[string]bool), decided: make(map[string]int),
	}
	if w.secret, err = serve.OpenTokens(filepath.Join(w.dir, "user", "belay", "tokens")).Create("test", []serve.Role{serve.RoleAdmin}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		p := &part{}
		if i < 2 {
			p.addr = freeAddr(t)
		}
		w.parts = append(w.parts, p)
		w.begin(p)
	}
	w.waitReady(w.parts[0])
	w.waitReady(w.parts[1])
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var sending, deciding, following sync.WaitGroup
	submitting, enough := context.WithTimeout(ctx, st.lasts)
	defer enough()
	for i := range st.sessions {
		id := fmt.Sprintf("s%d", i)
		w.mu.Lock()
		w.sent[id] = make(map[string]bool)
		w.mu.Unlock()
		w.must("POST", "/v1/sessions", map[string]any{"id": id}, nil)
		for range 2 {
			r := &receiver{session: id}
			w.received = append(w.received, r)
			following.Go(func() { w.follow(ctx, r) })
		}
		sending.Go(func() { w.send(submitting, id) })
	}
	for i := range 2 { // both servers get every decision
		deciding.Go(func() { w.decide(ctx, w.parts[i]) })
	}
	w.trouble(submitting)
	sending.Wait()
	for _, p := range w.parts {
		if p.addr != "" {
			w.waitReady(p)
		}
	}
	w.settle()
	w.check()
	stop()
	deciding.Wait()
	following.Wait()
	for _, p := range w.parts {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a process that was told to end: %v", err)
		}
	}
	w.noConnections()
}

func (w *weather) begin(p *part) { p.cmd = beginChild(w.t, w.dir, p.addr, w.dsn) }

func (w *weather) waitReady(p *part) {
	eventually(w.t, "the server is ready", func() bool {
		resp, err := w.client.Get("http://" + p.addr + "/readyz") //nolint:noctx // the client has a timeout
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// trouble kills and stops processes until ctx ends.
func (w *weather) trouble(ctx context.Context) {
	every := time.NewTicker(w.pause)
	defer every.Stop()
	kills, stops := 0, 0
	for n := 0; ; n++ {
		select {
		case <-every.C:
		case <-ctx.Done():
			w.t.Logf("%d processes were killed, %d were stopped", kills, stops)
			return
		}
		p := w.parts[rand.IntN(len(w.parts))]
		if n%2 == 0 {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			w.begin(p)
			kills++
			continue
		}
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			w.t.Error(err)
			return
		}
		select { // long enough for others to take over its turns, sometimes
		case <-time.After(time.Duration(rand.Int64N(int64(2 * takeover)))):
		case <-ctx.Done():
		}
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			w.t.Error(err)
		}
		stops++
	}
}

// do sends a request to a server. It returns 0 if no answer came.
func (w *weather) do(addr, method, path string, body, into any) int {
	var from io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			w.t.Error(err)
			return 0
		}
		from = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+addr+path, from)
	if err != nil {
		w.t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+w.secret)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	if into != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(data, into); err != nil {
			w.t.Error(err)
		}
	}
	return resp.StatusCode
}

// must sends a request until a server answers.
func (w *weather) must(method, path string, body, into any) {
	eventually(w.t, method+" "+path, func() bool {
		status := w.do(w.parts[rand.IntN(2)].addr, method, path, body, into)
		return status >= 200 && status < 300 || status == http.StatusConflict
	})
}

// mostQueued is how many turns of a session wait at once, so that the storm also ends on a machine
// that is slow.
const mostQueued = 10

// send submits turns to a session until ctx ends. Some of them need an approval.
func (w *weather) send(ctx context.Context, session string) {
	for n := 0; ctx.Err() == nil; n++ {
		for ctx.Err() == nil && w.queued(session) >= mostQueued {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		text := fmt.Sprintf("task %s-%d", session, n)
		if n%3 == 2 {
			text += "\ncall write {\"path\": \"" + session + ".md\", \"content\": \"x\"}"
		} else {
			text += "\ncall list {}\ntalk 3"
		}
		status := w.do(w.parts[rand.IntN(2)].addr, "POST", "/v1/sessions/"+session+"/turns", map[string]any{"text": text}, nil)
		w.mu.Lock()
		if status == 0 || status == http.StatusAccepted { // without an answer, it may be stored or not
			w.sent[session][text] = status == http.StatusAccepted
		}
		w.mu.Unlock()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// decide approves everything, at one of the servers.
func (w *weather) decide(ctx context.Context, p *part) {
	for ctx.Err() == nil {
		var list struct {
			Approvals []struct{ ID, Hash string }
		}
		w.do(p.addr, "GET", "/v1/approvals", nil, &list)
		for _, a := range list.Approvals {
			if a.ID == "" {
				continue
			}
			status := w.do(p.addr, "POST", "/v1/approvals/"+a.ID+"/decision", map[string]any{"hash": a.Hash, "allow": true}, nil)
			w.mu.Lock()
			if status == http.StatusOK {
				w.decided[a.ID]++
			}
			w.mu.Unlock()
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// follow reads the events of a session from either server. It vanishes now and then, and
// continues with the last id that it has.
func (w *weather) follow(ctx context.Context, r *receiver) {
	for ctx.Err() == nil {
		one, vanish := context.WithTimeout(ctx, time.Duration(200+rand.IntN(3000))*time.Millisecond)
		w.mu.Lock()
		last := r.last
		w.mu.Unlock()
		_ = follow(one, "http://"+w.parts[rand.IntN(2)].addr+"/v1/sessions/"+r.session+"/events", w.secret, last, func(e event) error { // connections break in a storm
			w.mu.Lock()
			defer w.mu.Unlock()
			if e.id != "" {
				r.last = e.id
			}
			if key := e.stored(); key != "" {
				r.got = append(r.got, key)
			}
			return nil
		})
		vanish()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// settle waits until all turns have ended. It fails if a session makes no progress: how many
// turns a machine runs in a second is not the question.
func (w *weather) settle() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for id := range w.sent {
		seen, since := "", time.Now()
		for ; ; <-tick.C {
			var s struct {
				State string
				Turns int
				Last  int64 `json:"messages"`
			}
			w.must("GET", "/v1/sessions/"+id, nil, &s)
			queued := w.queued(id)
			if s.State == "done" && queued == 0 { // no server is killed any more, so both are known
				break
			}
			if now := fmt.Sprint(s, queued); now != seen {
				seen, since = now, time.Now()
			}
			if time.Since(since) > patience {
				w.t.Fatalf("the session %s makes no progress: it is %+v, and %d turns wait", id, s, queued)
			}
		}
	}
}

// queued returns how many turns of a session have not begun, or -1 if no server answers.
func (w *weather) queued(session string) int {
	var q struct{ Turns []any }
	if w.do(w.parts[rand.IntN(2)].addr, "GET", "/v1/sessions/"+session+"/queue", nil, &q) != http.StatusOK {
		return -1
	}
	return len(q.Turns)
}

// check compares what was sent, stored and received.
func (w *weather) check() {
	t := w.t
	for id, sent := range w.sent {
		var page struct{ Messages []belay.Message }
		stored := make(map[string]int)
		results := make(map[string]int)
		for after := int64(0); ; {
			page.Messages = nil
			w.must("GET", fmt.Sprintf("/v1/sessions/%s/messages?limit=500&after=%d", id, after), nil, &page)
			if len(page.Messages) == 0 {
				break
			}
			for i := range page.Messages {
				m := &page.Messages[i]
				if after = m.Seq; m.Kind == belay.KindUser {
					stored[m.Text()]++
				}
				for _, p := range m.Parts {
					if p.Result != nil {
						results[m.Turn+" "+p.Result.Call]++
					}
				}
			}
		}
		w.mu.Lock()
		for text, confirmed := range sent {
			if n := stored[text]; n > 1 || confirmed && n == 0 {
				t.Errorf("%s: the message %q is stored %d times, confirmed: %t", id, text, n, confirmed)
			}
		}
		w.mu.Unlock()
		for call, n := range results {
			if n != 1 {
				t.Errorf("%s: the call %s has %d results", id, call, n)
			}
		}
		want := w.events(id)
		for _, r := range w.received {
			if r.session != id {
				continue
			}
			eventually(t, "a client of "+id+" has the last event", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return len(r.got) >= len(want)
			})
			w.mu.Lock()
			if diff := cmp.Diff(want, r.got); diff != "" {
				t.Errorf("%s: the events of a client differ from the stored ones:\n%s", id, diff)
			}
			w.mu.Unlock()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, n := range w.decided {
		if n > 1 {
			t.Errorf("the approval %s was decided %d times", id, n)
		}
	}
	t.Logf("%d approvals were decided", len(w.decided))
}

// events reads the stored events of a session.
func (w *weather) events(session string) []string {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var all []string
	var info struct {
		Last int64 `json:"messages"`
	}
	w.must("GET", "/v1/sessions/"+session, nil, &info)
	end := fmt.Sprintf("%d-end-", info.Last)
	if err := follow(ctx, "http://"+w.parts[0].addr+"/v1/sessions/"+session+"/events", w.secret, "", func(e event) error {
		if key := e.stored(); key != "" {
			all = append(all, key)
		}
		if e.kind == string(belay.EventTurnEnd) && strings.HasPrefix(e.id, end) {
			return errStop
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// noConnections asserts that no process is connected to the database any more.
func (w *weather) noConnections() {
	conn, err := sql.Open("pgx", w.dsn) // store/postgres registers the driver
	if err != nil {
		w.t.Fatal(err)
	}
	conn.SetMaxOpenConns(1)
	defer func() { _ = conn.Close() }()
	eventually(w.t, "all connections are closed", func() bool {
		var n int
		if err := conn.QueryRowContext(w.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		return n == 0
	})
}
