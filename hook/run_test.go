package hook_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// SPEC J-01
func TestEveryFieldOfARecord(t *testing.T) {
	t.Parallel()
	origin := hook.Origin{Kind: hook.OriginSpace, Name: "demo", File: "hooks/a.yaml", Line: 4}
	for _, w := range append(ways, struct {
		name  string
		alone bool
		opts  hook.Options
	}{"plain", false, hook.Options{}}) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				o := w.opts
				o.Version, o.Origin, o.Visibility = "v7", origin, hook.VisibleToUser
				if o.Timeout > 0 {
					o.Timeout = time.Hour
				}
				began := time.Now()
				rt := newRuntime(t, nil, gatePhase.On("a", func(context.Context, call) (verdict, error) {
					time.Sleep(1500 * time.Millisecond)
					return verdict{
						Severity: hook.SeverityDeny, Reason: "off limits", Context: []string{"größer"},
						Audit: []hook.Audit{{Code: "seen", Message: "all fine"}},
					}, nil
				}, &o))
				time.Sleep(time.Minute)
				s := snapshot(t, rt)
				dispatch(t, gatePhase, s, write)
				got := runOf(t, s.Take(), "a")
				if got.ID == "" {
					t.Error("it has no id")
				}
				if got.Dispatch == "" {
					t.Error("it does not say which dispatch it was part of")
				}
				want := hook.Run{
					ID: got.ID, Subscription: "a", Version: "v7", Phase: "test.gate", Dispatch: got.Dispatch, Origin: origin,
					Scope:     hook.Scope{Session: "s1", Turn: "t1", Step: 2, Agent: "main"},
					Execution: o.Execution, State: hook.Completed, Visibility: hook.VisibleToUser,
					Started: began.Add(time.Minute), Ended: began.Add(time.Minute + 1500*time.Millisecond), Latency: hook.Latency(1500 * time.Millisecond),
					Severity:    hook.SeverityDeny,
					Contributed: []hook.Digest{{Kind: "deny", Hash: sha("off limits"), Size: 10}, {Kind: "context", Hash: sha("größer"), Size: 8}},
					Audit:       []hook.Audit{{Code: "seen", Message: "all fine"}},
				}
				if !got.Started.Equal(want.Started) || !got.Ended.Equal(want.Ended) {
					t.Errorf("times: got %v to %v, want %v to %v", got.Started, got.Ended, want.Started, want.Ended)
				}
				got.Started, got.Ended = want.Started, want.Ended
				if !reflect.DeepEqual(got, want) { //nolint:govet // records hold no errors
					t.Errorf("got\n%+v\nwant\n%+v", got, want)
				}
			})
		})
	}
}

// SPEC J-01
func TestRecordOfAFailure(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt := newRuntime(t, nil, gatePhase.On("a", does[verdict](func(ctx context.Context, _ call) { <-ctx.Done() }),
			&hook.Options{Execution: hook.Deadline, Timeout: time.Second}))
		s := snapshot(t, rt)
		dispatch(t, gatePhase, s, write)
		run := runOf(t, s.Take(), "a")
		equal(t, "state", run.State, hook.TimedOut)
		equal(t, "error class", run.Class, codes.Timeout)
		equal(t, "severity", run.Severity, hook.SeverityDeny)
		equal(t, "latency", time.Duration(run.Latency), time.Second)
		want := []hook.Diagnostic{{Code: codes.Timeout, Level: codes.LevelWarn, Message: "no answer within 1s"}}
		if !reflect.DeepEqual(run.Diagnostics, want) { //nolint:govet // records hold no errors
			t.Errorf("diagnostics: got %+v, want %+v", run.Diagnostics, want)
		}
	})
}

// SPEC J-01
func TestRecordMarshals(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)
	run := hook.Run{
		ID: "r1", Subscription: "a", Version: "2", Phase: "tool.pre", Origin: hook.Origin{Kind: hook.OriginProject, File: "a.yaml", Line: 2},
		Scope: hook.Scope{Session: "s", Turn: "t", Step: 3, Agent: "main"}, Execution: hook.Deadline, State: hook.TimedOut, Shadow: true,
		Visibility: hook.VisibleInDebug, Job: "j", Attempt: 2, Key: "k", Started: at, Ended: at.Add(time.Second), Latency: hook.Latency(time.Second),
		Class: codes.Timeout, Severity: hook.SeverityDeny, Contributed: []hook.Digest{{Kind: "deny", Hash: "sha256:00", Size: 3}},
		Audit:       []hook.Audit{{Code: "c", Message: "m"}},
		Diagnostics: []hook.Diagnostic{{Code: codes.Timeout, Level: codes.LevelWarn, Message: "late"}},
	}
	const want = `{"id":"r1","subscription":"a","version":"2","phase":"tool.pre","origin":{"kind":"project","file":"a.yaml","line":2},` +
		`"scope":{"session":"s","turn":"t","step":3,"agent":"main"},"execution":"deadline","state":"timed_out","shadow":true,"visibility":"debug",` +
		`"job":"j","attempt":2,"idempotency_key":"k","started":"2026-03-01T12:00:00.000005Z","ended":"2026-03-01T12:00:01.000005Z","latency":"1s",` +
		`"error_class":"hook.timeout","severity":"deny","contributed":[{"kind":"deny","hash":"sha256:00","size":3}],"audit":[{"code":"c","message":"m"}],` +
		`"diagnostics":[{"code":"hook.timeout","level":"warn","message":"late"}]}`
	data, err := json.Marshal(run)
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v\nwant %s", data, err, want)
	}
	var back hook.Run
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, run) { //nolint:govet // records hold no errors
		t.Errorf("came back as %+v, %v", back, err)
	}
	line := run.String()
	for _, part := range []string{"timed_out", "tool.pre", "a", "1s", "shadow", "+deny", "hook.timeout"} {
		if !strings.Contains(line, part) {
			t.Errorf("the line %q does not show %s", line, part)
		}
	}
}

// SPEC J-01
func TestStatesAreFinalButForStarted(t *testing.T) {
	t.Parallel()
	for _, s := range []hook.State{hook.Completed, hook.Skipped, hook.Failed, hook.TimedOut, hook.Backgrounded, hook.Interrupted} {
		equal(t, s.String()+" is final", s.Final(), true)
	}
	equal(t, "started is final", hook.Started.Final(), false)
	equal(t, "nothing is final", hook.State(0).Final(), false)
}

// Records contain nothing of the conversation: no inputs, outputs, errors or panics. Only
// the process's log has these details.
//
// SPEC J-02
func TestRecordsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const secret = "hunter2"
		var log strings.Builder
		journal := hook.NewMemoryJournal(64)
		rt := newRuntime(t, &hook.RuntimeOptions{
			Journal: journal, Queue: hook.NewMemoryQueue(journal, nil), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		bad := []hook.Handler[call, findings]{
			says(note(secret)), says(findings{Title: secret, Audit: []hook.Audit{{Code: "seen"}}}),
			fails[findings](errors.New(secret)), fails[findings](&hook.SafeError{Message: "no config", Err: errors.New(secret)}),
			does[findings](func(context.Context, call) { panic(secret) }), does[findings](func(context.Context, call) { panic(errors.New(secret)) }),
			func(ctx context.Context, _ call) (findings, error) {
				<-ctx.Done()
				return note(secret), errors.New(secret)
			},
		}
		for i, handler := range bad {
			for j, o := range []hook.Options{
				{Timeout: time.Second},
				{Concurrent: true, Timeout: time.Second},
				{Execution: hook.Deadline, Timeout: time.Second},
				{Execution: hook.FireAndRecord, Timeout: time.Second},
				{Execution: hook.Background, Timeout: time.Second},
				{Shadow: true, Timeout: time.Second},
			} {
				o.Match.When = hook.When("fine", func(call) bool { return true })
				if i == 6 && j == 5 {
					o.Match.When = hook.When("breaks", func(c call) bool { panic(c.text) })
				}
				install(t, rt, collectPhase.On(string(rune('a'+i))+string(rune('a'+j)), handler, &o))
			}
		}
		in := write
		in.text = secret
		s := rt.Snapshot()
		dispatch(t, collectPhase, s, in)
		time.Sleep(time.Minute)
		work(t, rt)
		time.Sleep(time.Minute)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs := list(t, journal, hook.Filter{})
		if len(runs) < 41 {
			t.Fatalf("only %d runs: the test proves little", len(runs))
		}
		for _, r := range runs {
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), secret) || strings.Contains(r.String(), secret) {
				t.Errorf("a secret is on record: %s", data)
			}
			for _, d := range r.Diagnostics {
				if d.Err != nil {
					t.Errorf("the error itself is on record with %s", r.Subscription)
				}
			}
		}
		if !strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "stack=") {
			t.Error("the process's log does not have the error and the stack")
		}
		for _, field := range []string{"phase=test.collect", "session=s1", "turn=t1", "code=hook.panic", "subscription="} {
			if !strings.Contains(log.String(), field) {
				t.Errorf("the log does not have %s", field)
			}
		}
	})
}

// SPEC J-02
func TestAuditNotesAreCut(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, observePhase.On("a", says(remark{Audit: []hook.Audit{{Code: "long", Message: strings.Repeat("ü", 600)}}}), nil))
	s := snapshot(t, rt)
	dispatch(t, observePhase, s, write)
	equal(t, "message on record", runOf(t, s.Take(), "a").Audit[0].Message, strings.Repeat("ü", 512))
}
