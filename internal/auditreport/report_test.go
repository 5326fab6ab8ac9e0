package auditreport_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/auditreport"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// source are the records of a store in memory.
type source struct{ *memstore.Store }

func (s source) Runs(ctx context.Context, since time.Time, states []hook.State) iter.Seq2[hook.Run, error] {
	return s.Journal().(hook.ListJournal).List(ctx, hook.Filter{Since: since, States: states})
}

func (source) Usage(context.Context, map[string]string, time.Time, string) ([]belay.UsageSum, error) {
	return nil, errors.New("no usage")
}

// ann approves everything, for the whole session.
type ann struct{}

func (ann) Approve(_ context.Context, q belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: true, By: "ann", Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: q.Tool}}, nil
}

// record runs a turn with these calls.
func record(t *testing.T, hooks []hook.Subscription, calls ...scripted.Call) source {
	t.Helper()
	store := memstore.New(nil)
	opts := &belay.Options{Store: store, Hooks: hooks, Approver: ann{}}
	for _, name := range []string{"shell", "write"} {
		opts.Tools = append(opts.Tools, belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "for tests", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"number"}}}`)},
			func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Text: "done"}, nil }, nil))
	}
	var steps []scripted.Step
	for _, c := range calls {
		steps = append(steps, scripted.Step{Calls: []scripted.Call{c}})
	}
	agent, err := belay.New(scripted.New(append(steps, scripted.Step{Text: "done"}), nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "a task"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return source{store}
}

// ask returns the rows of a report with these columns.
func ask(t *testing.T, from auditreport.Source, question string, columns ...string) []string {
	t.Helper()
	return askFor(t, from, auditreport.Filter{}, question, columns...)
}

func askFor(t *testing.T, from auditreport.Source, filter auditreport.Filter, question string, columns ...string) (rows []string) {
	t.Helper()
	report, err := auditreport.Find(question).Ask(t.Context(), from, filter)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		var cells []string
		for _, name := range columns {
			for i, c := range report.Columns {
				if c.Name == name {
					cells = append(cells, auditreport.Plain(row[i]))
				}
			}
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	return rows
}

// Only what ran was touched. A host has no password.
//
// SPEC O-03
func TestTouched(t *testing.T) {
	t.Parallel()
	deny := belay.ToolPre.On("deny", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		if strings.Contains(string(c.Input()), "denied") {
			return belay.Deny("no"), nil
		}
		return belay.Pass, nil
	}, nil)
	from := record(t, []hook.Subscription{deny},
		scripted.Call{Tool: "write", Input: `{"path":"real.txt"}`},
		scripted.Call{Tool: "write", Input: `{"path":"denied.txt"}`},
		scripted.Call{Tool: "write", Input: `{"path":"invalid.txt","n":"no number"}`},
		scripted.Call{Tool: "erase", Input: `{"path":"unknown.txt"}`},
		scripted.Call{Tool: "shell", Input: `{"url":"https://ann:pass@example.com/x"}`},
	)
	if diff := cmp.Diff([]string{"file real.txt", "host example.com"}, ask(t, from, "touched", "kind", "what")); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
}

// counted counts how often the journal is read.
type counted struct {
	source

	reads *int
}

func (c counted) Runs(ctx context.Context, since time.Time, states []hook.State) iter.Seq2[hook.Run, error] {
	*c.reads++
	return c.source.Runs(ctx, since, states)
}

// Denials read the journal once if no session ended with a blocked message.
func TestDenialsReadTheJournalOnce(t *testing.T) {
	t.Parallel()
	from := counted{record(t, nil, scripted.Call{Tool: "shell", Input: `{}`}), new(int)}
	if _, err := auditreport.Find("denials").Ask(t.Context(), from, auditreport.Filter{}); err != nil || *from.reads != 1 {
		t.Errorf("the journal was read %d times (%v), want once", *from.reads, err)
	}
}

// Reports show no passwords: neither of a URL that is not complete or invalid, nor in a command, in
// a reason, or in the pattern of a grant. What differs only in a secret is one row.
//
// SPEC O-03
func TestReportsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	deny := belay.ToolPre.On("deny", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		if strings.Contains(string(c.Input()), "denied") {
			return belay.Deny("not " + string(c.Input())), nil
		}
		return belay.Pass, nil
	}, nil)
	var calls []scripted.Call
	for _, url := range []string{
		"ann:hunter2@one.example/x", "https://ann:hunter2#@two.example/x", "https://ann:hunter2 %@three.example?x", "ann:hunter2 2@four.example",
		"//ann:hunter2@five.example:80/x", "https://ann:hunter2@", "six.example/x?token=hunter2", "/x?token=hunter2", "file:///seven", "https://ann:hunter2/2 2@eight.example//x",
	} {
		calls = append(calls, scripted.Call{Tool: "shell", Input: fmt.Sprintf(`{"url":%q}`, url)})
	}
	calls = append(calls,
		scripted.Call{Tool: "shell", Input: `{"command":"TOKEN=hunter2 make"}`}, scripted.Call{Tool: "shell", Input: `{"command":"TOKEN=hunter22 make"}`},
		scripted.Call{Tool: "shell", Input: `{"command":"denied --password hunter2"}`}, scripted.Call{Tool: "shell", Input: `{"command":"denied --password hunter22"}`},
	)
	from := record(t, []hook.Subscription{deny}, calls...)
	want := []string{
		"command TOKEN=[REDACTED] make 2",
		"host one.example 1", "host two.example 1", "host three.example 1", "host four.example 1", "host five.example:80 1", "host  1", "host six.example 1", "host /x?token=[REDACTED] 1", "host /seven 1", "host eight.example 1",
	}
	if diff := cmp.Diff(want, ask(t, from, "touched", "kind", "what", "calls")); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`not {"command":"denied --password [REDACTED]"} 2`}, ask(t, from, "denials", "reason", "count")); diff != "" {
		t.Errorf("the denials (-want +got):\n%s", diff)
	}
}

// A blocked message has the reason of the hook that blocked it.
//
// SPEC O-03
func TestABlockedMessageHasItsReason(t *testing.T) {
	t.Parallel()
	blocks := belay.UserPromptSubmit.On("blocks", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
		return belay.DenyPrompt("no keys in prompts"), nil
	}, &hook.Options{Capabilities: hook.CanBlock})
	from := record(t, []hook.Subscription{blocks})
	if diff := cmp.Diff([]string{"blocks user.prompt.submit no keys in prompts 1"}, ask(t, from, "denials", "denied_by", "phase", "reason", "count")); diff != "" {
		t.Errorf("the denials (-want +got):\n%s", diff)
	}
}

// A call that a hook of approval.request denied is one denial. A call that an earlier approval
// covered is no decision of the person.
//
// SPEC O-03
func TestEachDecisionCountsOnce(t *testing.T) {
	t.Parallel()
	asks := belay.ToolPre.On("asks", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("look first"), nil }, nil)
	refuses := belay.ApprovalRequest.On("refuses", func(_ context.Context, a belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
		if a.Tool() == "write" {
			return belay.DenyApproval("not today"), nil
		}
		return belay.ApprovalVerdict{}, nil
	}, &hook.Options{Capabilities: hook.CanApprove})
	from := record(t, []hook.Subscription{asks, refuses},
		scripted.Call{Tool: "write", Input: `{"path":"a"}`},
		scripted.Call{Tool: "shell", Input: `{"command":"a"}`}, scripted.Call{Tool: "shell", Input: `{"command":"b"}`}, scripted.Call{Tool: "shell", Input: `{"command":"c"}`})
	if diff := cmp.Diff([]string{"refuses write not today 1"}, ask(t, from, "denials", "denied_by", "tool", "reason", "count")); diff != "" {
		t.Errorf("the denials (-want +got):\n%s", diff)
	}
	granted, decided := 0, 0
	for a, err := range from.Approvals(t.Context(), belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(a.Decided.Reason, "allowed before"):
			granted++
		case a.Decided.By == "ann":
			decided++
		}
	}
	if granted == 0 || decided == 0 {
		t.Fatalf("%d calls were covered, and %d decided: want both", granted, decided)
	}
	got := ask(t, from, "approvals", "by", "approvals", "allowed", "denied")
	want := map[string]bool{fmt.Sprintf("ann %d %d 0", decided, decided): true, "refuses 1 0 1": true}
	if len(got) != 2 || !want[got[0]] || !want[got[1]] {
		t.Errorf("the approvals are %q, want %v", got, want)
	}
}

// The percentiles are values that occurred.
//
// SPEC O-03
func TestSlow(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var runs []hook.Run
	for i := range 20 {
		at := time.Now()
		runs = append(runs, hook.Run{ID: fmt.Sprint("r", i), Subscription: "h", Phase: "tool.pre", State: hook.Completed, Started: at, Ended: at, Latency: hook.Latency(time.Duration(i+1) * time.Second)})
	}
	if err := store.Journal().Append(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"20 10 19 20 210"}, ask(t, source{store}, "slow", "runs", "median", "p95", "max", "total")); diff != "" {
		t.Errorf("slow (-want +got):\n%s", diff)
	}
}

// A cell survives the way through the API.
func TestCells(t *testing.T) {
	t.Parallel()
	for kind, cell := range map[auditreport.Kind]any{
		auditreport.Text: "=1+1 ", auditreport.Count: 12, auditreport.Dollars: 0.1, auditreport.Seconds: 1234567 * time.Nanosecond,
		auditreport.Time: time.Date(2026, 11, 19, 5, 0, 0, 0, time.UTC),
	} {
		if got, err := auditreport.Cell(kind, auditreport.Plain(cell)); err != nil || got != cell {
			t.Errorf("%s: %v becomes %v, %v", kind, cell, got, err)
		}
	}
	if _, err := auditreport.Cell(auditreport.Count, "many"); err == nil {
		t.Error("a wrong cell is accepted")
	}
}

// A call that a fork has copied happened once.
//
// SPEC O-03
func TestForksCountOnce(t *testing.T) {
	t.Parallel()
	from := record(t, nil, scripted.Call{Tool: "write", Input: `{"path":"a.txt"}`}, scripted.Call{Tool: "write", Input: `{"path":"b.txt","n":"no number"}`})
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "other", Input: `{}`}}}, {Text: "done"}}, nil), &belay.Options{Store: from.Store})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := agent.Session("s").Fork(t.Context(), "fork", 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Turn(t.Context(), "another task"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"write 2 1 1", "other 1 1 1"}, ask(t, from, "tools", "tool", "calls", "failed", "sessions")); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"file a.txt write 1 1"}, ask(t, from, "touched", "kind", "what", "tool", "calls", "sessions")); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
}

// deleting deletes a session after it has listed it.
type deleting struct {
	source

	session string
}

func (d deleting) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for s, err := range d.source.Sessions(ctx, filter) {
			if err == nil && s.ID == d.session {
				err = d.Forget(s.ID)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// A session that somebody deletes meanwhile is no error.
//
// SPEC O-03
func TestSessionsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	from := deleting{record(t, nil, scripted.Call{Tool: "write", Input: `{"path":"a.txt"}`}), "s"}
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "other", Input: `{}`}}}, {Text: "done"}}, nil), &belay.Options{Store: from.Store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("stays").Turn(t.Context(), "a task"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := auditreport.Find("tools").Ask(t.Context(), from, auditreport.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 1 || auditreport.Plain(report.Rows[0][0]) != "other" {
		t.Errorf("the rows are %v, want those of the session that stays", report.Rows)
	}
}

// cancels ends the turn instead of an answer.
type cancels struct{ cancel context.CancelFunc }

func (c cancels) Approve(ctx context.Context, _ belay.Question) (belay.Decision, error) {
	c.cancel()
	<-ctx.Done()
	return belay.Decision{}, context.Cause(ctx)
}

// A call that an abort ended before it started has touched nothing. One that was stopped, or
// that its tool has parked, has.
//
// SPEC O-03
func TestTouchedLeavesOutWhatNeverStarted(t *testing.T) {
	t.Parallel()
	asks := belay.ToolPre.On("asks", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		switch {
		case strings.Contains(string(c.Input()), "asked"):
			return belay.Ask("look first"), nil
		case strings.Contains(string(c.Input()), "halts"):
			return belay.Halt("enough"), nil
		}
		return belay.Pass, nil
	}, nil)
	call := func(tool, path string) scripted.Call {
		return scripted.Call{Tool: tool, Input: fmt.Sprintf(`{"path":%q}`, path)}
	}
	for name, c := range map[string]struct {
		calls []scripted.Call
		stop  belay.StopReason
		want  []string
	}{
		"the person was asked":     {calls: []scripted.Call{call("write", "asked.txt")}},
		"another call halted":      {calls: []scripted.Call{call("write", "other.txt"), call("write", "halts.txt")}},
		"the model refused":        {calls: []scripted.Call{call("write", "refused.txt")}, stop: belay.StopRefusal},
		"the call was running":     {calls: []scripted.Call{call("hang", "hung.txt")}, want: []string{"file hung.txt"}},
		"a turn that was given up": {calls: []scripted.Call{call("write", "asked.txt"), call("park", "parked.txt")}, stop: "given up", want: []string{"file parked.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			store := memstore.New(nil)
			tool := func(name string, run func(context.Context, *belay.Invocation) (belay.Result, error)) belay.Tool {
				return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "for tests"}, run, nil)
			}
			opts := &belay.Options{Store: store, Hooks: []hook.Subscription{asks}, Approver: cancels{cancel}, Tools: []belay.Tool{
				tool("write", func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Text: "done"}, nil }),
				tool("park", func(context.Context, *belay.Invocation) (belay.Result, error) {
					return belay.Result{}, belay.Park("later")
				}),
				tool("hang", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
					cancel()
					<-ctx.Done()
					return belay.Result{}, ctx.Err()
				}),
			}}
			step := scripted.Step{Calls: c.calls, Stop: c.stop}
			if c.stop == "given up" {
				step.Stop, opts.Approver = "", nil
			}
			agent, err := belay.New(scripted.New([]scripted.Step{step, {Text: "done"}}, nil), opts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := agent.Session("s").Turn(ctx, "a task"); err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
			if c.stop == "given up" {
				if _, err := agent.Session("s").Abandon(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := agent.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, ask(t, source{store}, "touched", "kind", "what")); diff != "" {
				t.Errorf("touched (-want +got):\n%s", diff)
			}
		})
	}
}
