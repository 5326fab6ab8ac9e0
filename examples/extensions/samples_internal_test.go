package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// taking runs a turn of an agent whose model makes these calls. It returns the turn and
// the texts of the results.
func taking(t *testing.T, opts *belay.Options, session string, calls ...scripted.Call) (*belay.Turn, []string) {
	t.Helper()
	var steps []scripted.Step
	for _, call := range calls {
		steps = append(steps, scripted.Step{Calls: []scripted.Call{call}, Usage: belay.Usage{Cost: 1}})
	}
	agent, err := belay.New(scripted.New(append(steps, scripted.Step{Text: "Done."}), nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session(session).Turn(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for m, err := range agent.Session(session).Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range m.Parts {
			if part.Result != nil {
				first, _, _ := strings.Cut(part.Result.Text, "\n")
				told = append(told, first)
			}
		}
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return turn, told
}

// echo returns its input.
var echo = belay.NewRawTool(belay.ToolDeclaration{Name: "echo", Description: "Says it again."},
	func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		if strings.Contains(string(call.Input), "fail") {
			return belay.Result{}, errors.New("it failed")
		}
		return belay.Result{Text: string(call.Input)}, nil
	}, nil)

func TestAudit(t *testing.T) {
	t.Parallel()
	var file closable
	gate := belay.ToolPre.On("gate", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		switch {
		case strings.Contains(string(c.Input()), "deny"):
			return belay.Deny("no"), nil
		case strings.Contains(string(c.Input()), "ask"):
			return belay.Ask("may it?"), nil
		}
		return belay.Pass, nil
	}, nil)
	turn, _ := taking(t, &belay.Options{
		Tools: []belay.Tool{echo}, Extensions: []belay.Extension{&Audit{To: &file, Now: evening}}, Hooks: []hook.Subscription{gate},
	}, "s",
		scripted.Call{Tool: "echo", Input: `{"secret": "x"}`}, scripted.Call{Tool: "echo", Input: `{"fail": 1}`},
		scripted.Call{Tool: "echo", Input: `{"deny": 1}`}, scripted.Call{Tool: "echo", Input: `{"ask": 1}`})
	var got []Entry
	for line := range strings.Lines(file.String()) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, e)
	}
	entry := func(what, tool, outcome, by string) Entry {
		return Entry{Time: evening(), Session: "s", Turn: turn.ID, What: what, Tool: tool, Outcome: outcome, By: by}
	}
	want := []Entry{
		entry("call", "echo", "ok", ""), entry("call", "echo", "failed", ""), entry("call", "echo", "denied", "gate"),
		entry("decision", "echo", "deny", "belay"), entry("call", "echo", "denied", "belay"), entry("turn", "", "end_turn", ""),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
	if strings.Contains(file.String(), "secret") {
		t.Errorf("the audit quotes an input:\n%s", file.String())
	}
	if !file.closed {
		t.Error("the file was not closed with the agent")
	}
}

type closable struct {
	bytes.Buffer

	closed bool
	fault  error
}

func (c *closable) Close() error {
	c.closed = true
	return c.fault
}

// If the audit's writer cannot be closed, Close of the agent returns the error.
func TestAuditThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	torn := errors.New("the disk is gone")
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Extensions: []belay.Extension{&Audit{To: &closable{fault: torn}, Now: evening}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); !errors.Is(err, torn) {
		t.Errorf("closing the agent: %v", err)
	}
}

// If the audit cannot be written, the turn has a diagnostic and continues.
func TestAuditThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	turn, told := taking(t, &belay.Options{Tools: []belay.Tool{echo}, Extensions: []belay.Extension{&Audit{To: full{}, Now: evening}}}, "s", scripted.Call{Tool: "echo"})
	if turn.Reason != belay.EndTurn || len(told) != 1 || told[0] != "{}" {
		t.Errorf("the turn ended %s, and the model got %q", turn.Reason, told)
	}
	if len(turn.Diagnostics) == 0 {
		t.Error("nobody is told")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestRedact(t *testing.T) {
	t.Parallel()
	redact := Redact{Patterns: []*regexp.Regexp{regexp.MustCompile(`key-[a-z0-9]+`), regexp.MustCompile(`\b\d{4}\b`)}}
	_, told := taking(t, &belay.Options{Tools: []belay.Tool{echo}, Extensions: []belay.Extension{redact}}, "s",
		scripted.Call{Tool: "echo", Input: `{"a":"key-4f1a key-9","pin":1234}`}, scripted.Call{Tool: "echo", Input: `{"a":"nothing"}`})
	want := []string{`{"a":"[REDACTED] [REDACTED]","pin":[REDACTED]}`, `{"a":"nothing"}`}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what the model got (-want +got):\n%s", diff)
	}
}

func TestTenant(t *testing.T) {
	t.Parallel()
	of := func(session string) (string, error) {
		if session == "s" {
			return "acme", nil
		}
		return "", errors.New("it is nobody's")
	}
	for _, test := range []struct{ rule, session, input, want string }{
		{"it is added", "s", `{"of":"ann"}`, `{"of":"ann","tenant":"acme"}`},
		{"what the model wrote is replaced", "s", `{"of":"ann","tenant":"globex"}`, `{"of":"ann","tenant":"acme"}`},
		{"a session of nobody's is refused", "other", `{"of":"ann"}`, `Denied by "tenant": the interceptor failed: it is nobody's`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, told := taking(t, &belay.Options{Tools: []belay.Tool{echo}, Interceptors: []belay.Interceptor{Tenant("echo", of)}}, test.session,
				scripted.Call{Tool: "echo", Input: test.input})
			if diff := cmp.Diff([]string{test.want}, told); diff != "" {
				t.Errorf("what the model got (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCostCap(t *testing.T) {
	t.Parallel()
	costs := &CostCap{Dollars: 2} // each step with a call costs 1
	call := scripted.Call{Tool: "echo"}
	turn, told := taking(t, &belay.Options{Tools: []belay.Tool{echo}, Extensions: []belay.Extension{costs}}, "one", call, call, call)
	if turn.Reason != belay.EndBlocked || turn.Why != "the agent has cost $2.00 of $2.00" || len(told) != 3 || told[1] != "{}" || !strings.HasPrefix(told[2], `Denied by "cost-cap.call"`) {
		t.Errorf("the turn ended %s (%s), and the model got %q", turn.Reason, turn.Why, told)
	}
	turn, told = taking(t, &belay.Options{Tools: []belay.Tool{echo}, Extensions: []belay.Extension{costs}}, "another", call)
	if turn.Reason != belay.EndBlocked || turn.Steps != 0 || len(told) != 0 {
		t.Errorf("the next turn ended %s after %d steps", turn.Reason, turn.Steps)
	}
}

func TestHours(t *testing.T) {
	t.Parallel()
	day, night := Hours{From: 9 * time.Hour, To: 17 * time.Hour}, Hours{From: 22 * time.Hour, To: 6*time.Hour + 30*time.Minute}
	for _, test := range []struct {
		rule  string
		hours Hours
		at    string
		zone  *time.Location
		want  string
	}{
		{"it begins with the first minute", day, "09:00:00", time.UTC, "{}"},
		{"and not before", day, "08:59:59", time.UTC, `Denied by "hours": echo can be called from 09:00 to 17:00, and it is 08:59`},
		{"it ends before the last", day, "17:00:00", time.UTC, `Denied by "hours": echo can be called from 09:00 to 17:00, and it is 17:00`},
		{"it counts where people are", day, "08:59:59", time.FixedZone("one east", 3600), "{}"},
		{"a night begins in the evening", night, "23:00:00", time.UTC, "{}"},
		{"a night ends in the morning", night, "06:29:59", time.UTC, "{}"},
		{"a night is not by day", night, "06:30:00", time.UTC, `Denied by "hours": echo can be called from 22:00 to 06:30, and it is 06:30`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			at, err := time.Parse(time.DateTime, "2026-03-02 "+test.at)
			if err != nil {
				t.Fatal(err)
			}
			test.hours.Tools, test.hours.In, test.hours.Now = []string{"echo"}, test.zone, func() time.Time { return at }
			_, told := taking(t, &belay.Options{Tools: []belay.Tool{echo}, Extensions: []belay.Extension{test.hours}}, "s", scripted.Call{Tool: "echo"})
			if diff := cmp.Diff([]string{test.want}, told); diff != "" {
				t.Errorf("what the model got (-want +got):\n%s", diff)
			}
		})
	}
}
