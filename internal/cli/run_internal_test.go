package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

const listsOnce = "steps:\n  - calls: [{tool: list, input: {}}]\n  - text: Done.\n"

func halting(opts *hook.Options) hook.Subscription {
	return belay.ToolPre.On("no-lists", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Halt("lists are off limits"), nil
	}, opts)
}

// SPEC L-05
func TestBlockedTurn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": listsOnce})
	d.hooks = []hook.Subscription{halting(nil)}
	if code := d.run("run", d.model(), "a task"); code != exitRefused {
		t.Errorf("exit code %d, want %d", code, exitRefused)
	}
	contains(t, d.err.String(), "the turn was blocked by no-lists: lists are off limits\n")
}

// Each end reason has an exit code. Only a successful turn has 0.
//
// SPEC L-05
func TestEndReasonsHaveExitCodes(t *testing.T) {
	t.Parallel()
	for end, want := range map[belay.EndReason]int{
		belay.EndTurn: 0, belay.EndError: 1, belay.EndBlocked: 3, belay.EndRefused: 3, belay.EndParked: 4,
		belay.EndMaxSteps: 5, belay.EndBudget: 5, belay.EndStuck: 6, belay.EndAborted: 130, "unheard of": 1,
	} {
		if got := endCode(end); got != want {
			t.Errorf("%s ends with exit code %d, want %d", end, got, want)
		}
	}
}

func TestVisibleHooksAreLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": listsOnce})
	d.hooks = []hook.Subscription{halting(&hook.Options{Visibility: hook.VisibleToUser})}
	d.run("run", d.model(), "a task")
	contains(t, d.err.String(), "  hook no-lists at tool.pre  completed halt  ")
}

// The output shows the input that the call ran with, and the hook that changed it.
//
// SPEC T-07
func TestARewrittenCallIsToldAsItRan(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "steps:\n  - calls: [{tool: write, input: {path: ok.txt, content: x}}]\n  - text: Done.\n"})
	d.hooks = []hook.Subscription{belay.ToolPre.On("elsewhere", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.ToolVerdict{Input: json.RawMessage(`{"path":"rewritten.txt","content":"x"}`)}, nil
	}, &hook.Options{Capabilities: hook.CanRewriteInput})}
	if code := d.run("run", d.model(), "a task"); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, d.err.String())
	}
	contains(t, d.err.String(), "  write rewritten.txt (rewritten by elsewhere)")
}

// A failure of a hook is shown once, when it happens. With --json it is an event, and a
// warning at the end.
//
// SPEC C-13
func TestFailuresOfHooksAreShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": listsOnce})
	d.hooks = []hook.Subscription{
		belay.ToolPost.On("clumsy", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) { panic("it is broken") }, nil),
		belay.SessionEnd.On("last", func(context.Context, belay.SessionClosed) (belay.Note, error) {
			return belay.Note{}, errors.New("too late")
		}, nil),
		belay.TurnPostTurn.On("aside", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			return belay.Note{}, errors.New("nobody waits")
		}, &hook.Options{Execution: hook.FireAndRecord}),
	}
	d.must("run", d.model(), "a task")
	contains(t, d.err.String(), "\n  warning: hook clumsy failed at tool.post: the handler panicked: it is broken\n",
		"warning: hook aside failed at turn.post_turn: nobody waits\n", "warning: hook last failed at session.end: too late\n")
	for _, name := range []string{"clumsy", "aside", "last"} {
		if n := strings.Count(d.err.String(), name); n != 1 {
			t.Errorf("%s is named %d times:\n%s", name, n, &d.err)
		}
	}
	d.must("run", "--json", d.model(), "a task")
	contains(t, d.out.String(), `"type":"hook_failed"`, `"text":"the handler panicked: it is broken"`)
	contains(t, d.err.String(), "\nwarning: hook.panic clumsy at tool.post")
	d.hooks = nil
	d.must("run", d.model(), "a task")
	if strings.Contains(d.err.String(), "warning: ") {
		t.Errorf("there is a warning where nothing went wrong:\n%s", &d.err)
	}
}

func TestRetriesLeaveNothingBehindInAPipe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "steps:\n  - text: void words here\n    fault: {kind: overloaded, after: 2, retry_after: 1ms}\n  - text: The answer.\n"})
	d.must("run", d.model(), "a task")
	if d.out.String() != "The answer.\n" {
		t.Errorf("standard output is %q, want the answer alone", d.out.String())
	}
	contains(t, d.err.String(), "retrying: ")
}

// SPEC L-08
func TestEventsAreJSONLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "steps:\n  - thinking: hm\n    text: Let me see.\n    calls: [{tool: list, input: {}}, {tool: shell, input: {command: \"git push\"}}]\n"})
	d.hooks = []hook.Subscription{belay.ModelPost.On("seen", func(context.Context, belay.ModelResponse) (belay.Note, error) {
		return belay.Note{}, nil
	}, &hook.Options{Visibility: hook.VisibleToUser})}
	if code := d.run("run", "--json", d.model(), "a task"); code != exitParked {
		t.Fatalf("exit code %d: %s", code, &d.err)
	}
	seen := map[belay.EventKind]bool{}
	last := uint64(0)
	for line := range strings.Lines(d.out.String()) {
		var e belay.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Seq != last+1 {
			t.Errorf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
		seen[e.Kind] = true
	}
	for _, kind := range []belay.EventKind{
		belay.EventTurnStart, belay.EventThinkingDelta, belay.EventTextDelta, belay.EventModelResponse, belay.EventTokenConsumption,
		belay.EventToolUse, belay.EventToolUseResult, belay.EventApprovalRequested, belay.EventHookRun, belay.EventTurnEnd,
	} {
		if !seen[kind] {
			t.Errorf("there is no %s in:\n%s", kind, &d.out)
		}
	}
}

// Background jobs run during a command, or during the next command.
//
// SPEC J-08
func TestRunsAreFilteredAndBackgroundWorkIsDone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": listsOnce})
	worked := make(chan struct{}, 8)
	d.hooks = []hook.Subscription{
		belay.TurnPostTurn.On("later", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			worked <- struct{}{}
			return belay.Note{}, nil
		}, &hook.Options{Execution: hook.Background, Idempotent: true}),
		belay.ToolPre.On("fails", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			panic("it is broken")
		}, nil),
		belay.ModelPost.On("quiet", func(context.Context, belay.ModelResponse) (belay.Note, error) {
			return belay.Note{}, nil
		}, &hook.Options{Visibility: hook.VisibleInternally}),
	}
	began := time.Now()
	d.must("run", d.model(), "--as", "first", "a task")
	for len(worked) == 0 { // if a command ends before its job begins, the next command runs the job
		d.must("run", d.model(), "a task")
	}
	for _, test := range []struct {
		rule string
		args []string
		want []string
		not  []string
	}{
		{"a session's", []string{"--session", "first"}, []string{"fails", "later", "first/1-"}, []string{"quiet"}},
		{"those for the journal alone too", []string{"--session", "first", "--all"}, []string{"quiet"}, nil},
		{"at a phase", []string{"--phase", "tool.pre"}, []string{"fails"}, []string{"later"}},
		{"of a subscription", []string{"--subscription", "later"}, []string{"backgrounded", "later #1"}, []string{"fails"}},
		{"in a state", []string{"--state", "failed"}, []string{"fails", "hook.panic", "deny"}, []string{"completed"}},
		{"in one of two states", []string{"--state", "failed", "--state", "backgrounded"}, []string{"fails", "later"}, []string{"environment"}},
		{"since a time", []string{"--since", began.Format(time.RFC3339)}, []string{"fails"}, nil},
		{"since a time to come", []string{"--since", "2999-01-01"}, nil, []string{"fails"}},
	} {
		d.must(append([]string{"runs"}, test.args...)...)
		contains(t, d.out.String(), test.want...)
		for _, not := range test.not {
			if strings.Contains(d.out.String(), not) {
				t.Errorf("%s: there is %q in:\n%s", test.rule, not, &d.out)
			}
		}
	}
	d.must("runs", "--all", "--limit", "2", "--json")
	if n := strings.Count(d.out.String(), "\n"); n != 2 {
		t.Errorf("there are %d records, want the last 2", n)
	}
}
