//go:build unix

package main

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	agents "github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/otlptest"
	"github.com/belay-run/belay/serve/api"
)

// served is "belay serve" with one worker and a collector.
type served struct {
	t *testing.T
	*client.Client

	dir, url, secret string
	env              []string
	http             *http.Client
}

func serveCollected(t *testing.T, collector *otlptest.Receiver, files map[string]string) *served {
	t.Helper()
	s := &served{t: t, dir: project(t, files), env: append(collected(collector.URL), "BELAY_SERVE_URL=https://belay.example")}
	cmd := command(t, s.dir, "serve", "--listen", "127.0.0.1:0", "--workers", "1", "--model", "scripted/answers.yaml")
	cmd.Env = append(cmd.Env, s.env...)
	c := &child{Cmd: cmd, t: t}
	c.run()
	_, rest, _ := strings.Cut(c.await(c.stderr, "http://"), "http://")
	s.url = "http://" + strings.TrimSpace(rest)
	secret, err := os.ReadFile(filepath.Join(s.dir, "belay", "tokens", "local.secret"))
	if err != nil {
		t.Fatal(err)
	}
	s.secret = strings.TrimSpace(string(secret))
	if s.Client, err = client.New(s.url, s.secret, nil); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.http = &http.Client{Jar: jar}
	return s
}

// do sends a request, and returns the answer.
func (s *served) do(method, path string, form url.Values) (text string, status int) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if path == "/metrics" {
		r.Header.Set("Authorization", "Bearer "+s.secret)
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data), resp.StatusCode
}

// measured waits until the page of metrics has these lines. A worker may still be giving up its turn.
func (s *served) measured(when string, lines ...string) {
	s.t.Helper()
	for late := time.Now().Add(30 * time.Second); ; {
		page, status := s.do("GET", "/metrics", nil)
		missing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return regexp.MustCompile("(?m)^" + line + "$").MatchString(page) })
		switch {
		case len(missing) == 0:
			return
		case status >= http.StatusInternalServerError || time.Now().After(late):
			s.t.Fatalf("%s, the page (%d) has no lines %q:\n%s", when, status, missing, page)
		}
	}
}

// follow begins a stream of a session, and returns a function that waits for an event of a kind.
func (s *served) follow(session string) (await func(agents.EventKind) agents.Event) {
	ctx, cancel := context.WithCancel(s.t.Context())
	events := make(chan agents.Event)
	go func() { // ends with ctx
		defer close(events)
		for e, err := range s.Events(ctx, session, "") {
			if err != nil && ctx.Err() == nil {
				s.t.Errorf("the stream of %s: %v", session, err)
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		for range events { // until it is closed
		}
	})
	return func(kind agents.EventKind) agents.Event {
		s.t.Helper()
		for e := range events {
			if e.Kind == kind {
				return e
			}
		}
		s.t.Fatalf("the stream of %s ended before %s", session, kind)
		return agents.Event{}
	}
}

// start starts a turn in a new session.
func (s *served) start(session, wait string) {
	s.t.Helper()
	if _, err := s.CreateSession(s.t.Context(), api.CreateSession{ID: session}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.StartTurn(s.t.Context(), api.StartTurn{Session: session, Text: "a task", Wait: wait}); err != nil {
		s.t.Fatal(err)
	}
}

// The metrics of a server have its queue, and how late its streams are. From a trace of a served
// turn, the ids lead to the page in the console, the API and the command line, and back.
//
// SPEC O-01, O-04
func TestServedTurnIsMeasuredAndLinked(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t, nil)
	s := serveCollected(t, collector, map[string]string{
		"belay.yaml":   "permit:\n  rules: [ask write(**)]\n",
		"answers.yaml": "steps:\n  - calls: [{tool: write, input: {path: notes.md, content: hello}}]\n  - text: Written.\n  - fault: {hang: true}\n",
	})
	s.start("first", "end") // it parks
	s.measured("with a parked turn", `belay_queue_depth\{belay_state="parked"\} 1`, `belay_queue_depth\{belay_state="waiting"\} 0`)
	await := s.follow("first")
	if end := await(agents.EventTurnEnd); end.End == nil || end.End.Reason != agents.EndParked || end.Seq != 0 {
		t.Fatalf("the stored end of the turn is %+v, want that it is parked", end)
	}
	if page, _ := s.do("GET", "/metrics", nil); strings.Contains(page, "belay_stream_lag") {
		t.Errorf("stored events have a lag:\n%s", page)
	}
	list, err := s.ListApprovals(t.Context(), api.ListApprovals{Limit: 10})
	if err != nil || len(list.Approvals) != 1 {
		t.Fatalf("the approvals are %+v, %v", list, err)
	}
	approval := list.Approvals[0]
	if _, err := s.DecideApproval(t.Context(), api.DecideApproval{Approval: approval.ID, Hash: approval.Hash, Allow: true, Scope: "once"}); err != nil {
		t.Fatal(err)
	}
	end := await(agents.EventTurnEnd)
	if end.End == nil || end.End.Reason != agents.EndTurn {
		t.Fatalf("the end of the turn is %+v", end)
	}
	turn := end.Turn
	s.measured("after a turn with a stream", `belay_stream_lag_seconds_count [1-9][0-9]*`, `belay_stream_lag_seconds_sum .*`)

	s.start("second", "none") // its model hangs
	s.follow("second")(agents.EventTurnStart)
	s.start("third", "none") // it waits for the only worker
	s.measured("with a busy worker", `belay_queue_depth\{belay_state="running"\} 1`, `belay_queue_depth\{belay_state="waiting"\} 1`, `belay_queue_depth\{belay_state="parked"\} 0`, `belay_queue_age_seconds [0-9.e+-]+`)

	collector.Await(func() bool {
		return collector.Named("invoke_agent main") != nil && collector.Named("hook belay.turn") != nil && collector.Named("approval write") != nil
	})
	collector.Lock()
	root, run := collector.Named("invoke_agent main"), collector.Named("hook belay.turn")
	if got := otlptest.Attribute(collector.Named("approval write").GetAttributes(), "belay.approval"); got != approval.ID {
		t.Errorf("the approval of the trace is %q, want %q", got, approval.ID)
	}
	collector.Unlock()
	trace := hex.EncodeToString(root.GetTraceId())
	if got := otlptest.Attribute(root.GetAttributes(), "belay.turn"); got != turn {
		t.Errorf("the turn of the trace is %q, want %q", got, turn)
	}
	if times, err := s.ReadTimeline(t.Context(), api.ReadTimeline{Session: "first", Turn: turn}); err != nil || times.Turn.Trace != trace {
		t.Errorf("the API has the trace %q (%v), want %q", times.Turn.Trace, err, trace)
	}
	id := otlptest.Attribute(run.GetAttributes(), "belay.run")
	out, errs, code := with(t, s.env, s.dir, "runs", "--run", id)
	page := regexp.MustCompile(`(?m)^console +https://belay\.example(/.*)$`).FindStringSubmatch(out)
	if code != 0 || page == nil || !regexp.MustCompile(`(?m)^trace +`+trace+`$`).MatchString(out) {
		t.Fatalf("belay runs --run %s: exit code %d, without the trace %s: %s%s", id, code, trace, out, errs)
	}
	link, ok := strings.CutPrefix(otlptest.Attribute(root.GetAttributes(), "belay.url"), "https://belay.example")
	if !ok {
		t.Fatal("the turn has no link to the console")
	}
	if text, status := s.do("POST", "/login", url.Values{"token": {s.secret}}); status != http.StatusOK {
		t.Fatalf("login: %d %s", status, text)
	}
	for path, want := range map[string]string{link: turn, page[1]: id} {
		if text, status := s.do("GET", path, nil); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the page %s answers %d, without %q", path, status, want)
		}
	}
}
