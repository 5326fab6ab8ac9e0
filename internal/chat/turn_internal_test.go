package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// begun returns a bench with a running turn.
func begun(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, nil)
	b.keys("go", "enter")
	if got := b.did[len(b.did)-1]; got != "run go" {
		t.Fatalf("the host was asked to %q, want the turn", got)
	}
	return b
}

// Finished blocks are printed once. Only the unfinished block is drawn again.
func TestTextIsPrintedBlockByBlock(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.says("First ", "part.\n\nSec")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "› go", "First part.")
	shows(t, "the view", b.view(), "Sec", "working 0.0s · ctrl+c to abort")
	hides(t, "the view", b.view(), "First")
	b.says("ond part.")
	b.event(belay.Event{Kind: belay.EventModelResponse, Message: &belay.Message{Model: "m-1"}})
	b.event(belay.Event{Kind: belay.EventTokenConsumption, Usage: &belay.Usage{In: 1200, Out: 30, Cost: 0.0123}})
	hides(t, "the view", b.view(), "Second")
	shows(t, "the view", b.view(), "main · m-1 · 1.2k in, 30 out · $0.0123")
	b.event(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndTurn}})
	b.send(overMsg{usage: belay.Usage{In: 1200, Out: 30, Cost: 0.0123}})
	if n := strings.Count(b.screen(), "Second part."); n != 1 {
		t.Errorf("the second part is there %d times:\n%s", n, b.screen())
	}
	shows(t, "the view", b.view(), "1.2k in, 30 out")
	hides(t, "the view", b.view(), "ctrl+c aborts")
}

func TestResponseThatWasNotStreamedIsShown(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.event(belay.Event{Kind: belay.EventModelResponse, Message: &belay.Message{Parts: []belay.Part{belay.Text("All at once.")}}})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "All at once.")
}

// When an attempt is repeated, the chat drops the text of the first attempt.
func TestRetryMakesWhatWasStreamedVoid(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.says("Half an ans")
	b.event(belay.Event{Kind: belay.EventError, Text: "overloaded", Retry: true})
	hides(t, "the screen", b.screen(), "Half", "void")
	b.says("Printed.\n\nHalf")
	b.event(belay.Event{Kind: belay.EventError, Text: "overloaded", Retry: true})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "retrying: overloaded", "Printed.", "retrying", "ignore the partial answer above")
	hides(t, "the screen", b.screen(), "Half")
}

func TestThinkingIsALine(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.event(belay.Event{Kind: belay.EventThinkingDelta, Text: "first line\nsecond"})
	b.event(belay.Event{Kind: belay.EventThinkingDelta, Text: " line"})
	shows(t, "the view", b.view(), "∴ second line", "thinking")
	hides(t, "the view", b.view(), "first line")
	b.at = b.at.Add(3 * time.Second)
	b.says("Answer.")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "∴ thought for 3.0s · ctrl+t shows it")
	hides(t, "the screen", b.screen(), "second line")
	b.keys("ctrl+t")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "∴ first line", "second line")
}

// Calls run in parallel, and are printed in the order in which they were made.
func TestCallsAreLines(t *testing.T) {
	t.Parallel()
	b := begun(t)
	one := b.calls("1", "read", `{"path":"a.txt"}`)
	two := b.calls("2", "write", `{"text":"x\ny","path":"b.txt"}`)
	b.wait(2 * time.Second)
	shows(t, "the view", b.view(), "read a.txt · 2.0s", "write b.txt, text: x y · 2.0s")
	b.answers(two, belay.Failed(belay.ClassDenied, "Denied by \"guard\": no"))
	hides(t, "the scrollback", strings.Join(b.printed, "\n"), "write")
	shows(t, "the view", b.view(), "read a.txt", "✗ write")
	b.answers(one, belay.Result{Text: "l1\nl2\nl3\nl4\nl5\n"})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"),
		"✓ read a.txt · 2.0s", "│ l1", "│ l3", "│ … 2 lines more · ctrl+o", "✗ write b.txt, text: x y · denied", `│ Denied by "guard": no`)
	hides(t, "the view", b.view(), "read", "write")
}

// A call that has not started is shown as waiting. The shown time begins when the call
// starts.
func TestSerialCallsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	alone := belay.NewTool("write", "Writes a file.", func(context.Context, struct{}) (string, error) { return "", nil }, &belay.ToolTraits{Serial: true})
	beside := belay.NewTool("read", "Reads a file.", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
	b := newBench(t, &Options{Tools: []belay.Tool{alone, beside}})
	b.keys("go", "enter")
	read := b.calls("1", "read", `{"path":"a"}`)
	first := b.calls("2", "write", `{"path":"b"}`)
	second := b.calls("3", "write", `{"path":"c"}`)
	b.calls("4", "read", `{"path":"d"}`)
	b.wait(2 * time.Second)
	shows(t, "the view", b.view(), "⠋ read a · 2.0s", "∙ write b · waiting", "∙ write c · waiting", "∙ read d · waiting")
	b.answers(read, belay.Result{Text: "ok"})
	b.wait(3 * time.Second)
	shows(t, "the view", b.view(), "⠋ write b · 3.0s", "∙ write c · waiting", "∙ read d · waiting")
	b.answers(first, belay.Result{Text: "ok"})
	b.answers(second, belay.Result{Text: "ok"})
	b.wait(time.Second)
	shows(t, "the view", b.view(), "⠋ read d · 1.0s")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "✓ read a · 2.0s", "✓ write b · 3.0s", "✓ write c · 0.0s")
}

// The calls of a subagent do not wait for the parent's call that runs the subagent.
func TestSubagentsCallsDoNotWaitForTheirParent(t *testing.T) {
	t.Parallel()
	alone := belay.NewTool("delegate", "Has a subagent do it.", func(context.Context, struct{}) (string, error) { return "", nil }, &belay.ToolTraits{Serial: true})
	b := newBench(t, &Options{Tools: []belay.Tool{alone}})
	b.keys("go", "enter")
	b.calls("1", "delegate", `{}`)
	part := &belay.CallPart{ID: "1", Tool: "read", Input: json.RawMessage(`{"path":"a"}`)}
	b.event(belay.Event{Kind: belay.EventToolUse, Call: part, Depth: 1, Run: "r1", Agent: "scout"})
	shows(t, "the view", b.view(), "⠋ delegate", "⠋ scout: read a")
}

func TestDiffIsColoured(t *testing.T) {
	t.Parallel()
	b := begun(t)
	render, err := json.Marshal(map[string]string{"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"})
	if err != nil {
		t.Fatal(err)
	}
	b.answers(b.calls("1", "edit", `{}`), belay.Result{Text: "for the model", Render: render})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "✓ edit", "│ @@ -1 +1 @@", "│ -old", "│ +new")
	hides(t, "the scrollback", strings.Join(b.printed, "\n"), "for the model")
	shows(t, "the scrollback", strings.Join(b.raw, "\n"), b.m.look.removed.Render("-old"), b.m.look.added.Render("+new"))
}

// A hook is shown if it did something.
func TestHookLines(t *testing.T) {
	t.Parallel()
	b := begun(t)
	for _, run := range []hook.Run{
		{Subscription: "silent", Phase: "tool.pre", State: hook.Completed},
		{Subscription: "guard", Phase: "tool.pre", State: hook.Completed, Contributed: []hook.Digest{{Kind: "deny"}}},
		{Subscription: "paths", Phase: "tool.pre", State: hook.Completed, Contributed: []hook.Digest{{Kind: "input"}, {Kind: "context"}}},
		{Subscription: "slow", Phase: "model.pre", State: hook.TimedOut, Class: "hook.timeout"},
		{Subscription: "try", Phase: "tool.pre", State: hook.Completed, Shadow: true, Contributed: []hook.Digest{{Kind: "ask"}}},
	} {
		b.event(belay.Event{Kind: belay.EventHookRun, Text: run.Subscription, HookRun: &run})
	}
	shows(t, "the scrollback", strings.ReplaceAll(strings.Join(b.printed, "\n"), "\n  ", " "),
		"⚑ hook guard at tool.pre: blocked it", "⚑ hook paths at tool.pre: rewrote the input, reminded the model",
		"⚑ hook slow at model.pre: timed out (hook.timeout)", "⚑ hook try at tool.pre: shadow mode, ignored: asked for approval")
	hides(t, "the screen", b.screen(), "silent")
	call := &belay.CallPart{ID: "1", Tool: "read", Input: json.RawMessage(`{"path":"x/../a"}`), Final: json.RawMessage(`{"path":"a"}`), RewrittenBy: []string{"paths"}}
	b.answers(call, belay.Result{Text: "ok"})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "✓ read x/../a", "rewritten by paths: a", "│ ok")
}

// The output of a hook is shown with the id of the hook. A hook that continues a turn is
// shown too.
func TestWhatHooksSayIsShown(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.event(belay.Event{Kind: belay.EventHookOutput, By: "project/fmt", Text: "3 files\nformatted\x1b[2J\n"})
	b.event(belay.Event{Kind: belay.EventTurnContinued, By: "project/stopper", Text: "not yet"})
	b.event(belay.Event{Kind: belay.EventHookOutput, By: "project/fmt", Text: "below", Agent: "helper", Run: "r", Depth: 1})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"),
		"⚑ hook project/fmt: 3 files\n  formatted", "⚑ continues: project/stopper: not yet", "⚑ hook helper: project/fmt: below")
	shows(t, "the scrollback", strings.Join(b.raw, "\n"), b.m.look.dim.Render("⚑ hook project/fmt: 3 files"))
	hides(t, "the scrollback", strings.Join(b.raw, "\n"), "\x1b[2J")
}

// A failed hook is shown with its output, and not again at the end of the turn. The same
// output is shown only once.
//
// SPEC C-13
func TestFailedHooksAreShown(t *testing.T) {
	t.Parallel()
	b := begun(t)
	failed := hook.Diagnostic{Code: codes.Error, Level: codes.LevelWarn, Phase: "tool.post", Subscription: "project/lint", Message: "exit code 1"}
	other := hook.Diagnostic{Code: codes.StopLimit, Level: codes.LevelWarn, Phase: "turn.stop", Message: "too often"}
	event := belay.Event{Kind: belay.EventHookFailed, By: "project/lint", Diagnostic: &failed, Text: "no config\nsee setup.md"}
	b.event(event)
	b.event(event)
	event.Agent, event.Run, event.Depth = "helper", "r", 1
	b.event(event)
	b.event(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndTurn, Diagnostics: []hook.Diagnostic{failed, failed, other}}})
	all := strings.Join(b.printed, "\n")
	shows(t, "the scrollback", all, "⚑ hook project/lint failed at tool.post: exit code 1\n  no config\n  see setup.md\n⚑ hook project/lint failed at tool.post: exit code 1\n⚑ hook helper: project/lint failed",
		"⚑ turn_stop.limit at turn.stop: too often")
	hides(t, "the scrollback", all, "hook.error")
	b.m.work("working") // in the next turn the failure was not shown, so the end of the turn shows it
	b.event(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndTurn, Diagnostics: []hook.Diagnostic{failed}}})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "⚑ hook.error project/lint at tool.post: exit code 1")
}

// The last progress message of a tool is shown beside its call until the call ends.
func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	part := b.calls("1", "tickets__search", `{"query":"open"}`)
	for _, news := range []string{"1 of 3", "2 of 3: half\nway"} {
		b.event(belay.Event{Kind: belay.EventToolProgress, Call: part, Text: news})
	}
	shows(t, "the view", b.view(), "tickets__search open", "2 of 3: half way")
	hides(t, "the view", b.view(), "1 of 3")
	b.answers(part, belay.Result{Text: "none"})
	hides(t, "the screen", b.screen(), "2 of 3")
}

func TestHowATurnEndsIsShown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		end  belay.Turn
		err  error
		want []string
	}{
		{"an end as it should be needs no word", belay.Turn{Reason: belay.EndTurn}, nil, nil},
		{"a block says by whom and why", belay.Turn{Reason: belay.EndBlocked, By: "guard", Why: "not on Friday"}, nil, []string{"∎ the turn was blocked by guard: not on Friday"}},
		{"a parked turn says what it waits for", belay.Turn{
			Reason: belay.EndParked, Waits: []belay.Question{{Approval: belay.Approval{Tool: "shell", Reason: "it removes files"}}},
		}, nil, []string{"∎ the turn is parked: /resume continues it", "? shell waits for a decision: it removes files"}},
		{"diagnostics are told", belay.Turn{Reason: belay.EndTurn, Diagnostics: []hook.Diagnostic{{Code: "hook.timeout", Subscription: "slow", Message: "no answer"}}}, nil, []string{"⚑ hook.timeout slow: no answer"}},
		{"an error that no event told of is told", belay.Turn{Reason: belay.EndError}, errors.New("the disk is full"), []string{"✗ the disk is full"}},
		{"a session held elsewhere says what to do", belay.Turn{Reason: belay.EndError}, fmt.Errorf("open: %w", belay.ErrHeld), []string{"close the other chat"}},
		{"an earlier turn that is parked offers what can be done", belay.Turn{Reason: belay.EndError}, belay.ErrParked, []string{"an earlier turn is parked: /resume"}},
		{"nothing to resume", belay.Turn{Reason: belay.EndError}, belay.ErrNoTurn, []string{"there is no turn to resume"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			b := begun(t)
			before := len(b.printed)
			b.event(belay.Event{Kind: belay.EventTurnEnd, End: &test.end})
			b.send(overMsg{err: test.err})
			got := strings.Join(b.printed[before:], "\n")
			if len(test.want) == 0 && got != "" {
				t.Errorf("it says %q", got)
			}
			shows(t, "the scrollback", strings.ReplaceAll(got, "\n  ", " "), test.want...)
			b.keys("next", "enter")
			if last := b.did[len(b.did)-1]; last != "run next" {
				t.Errorf("after it the host was asked to %q, want the next turn", last)
			}
		})
	}
}

func TestErrorsAreShownAndTheChatGoesOn(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.says("So far")
	b.event(belay.Event{Kind: belay.EventError, Text: "model: auth (HTTP 401)"})
	b.event(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndError, Why: "model: auth (HTTP 401)"}})
	b.send(overMsg{})
	if n := strings.Count(b.screen(), "401"); n != 1 {
		t.Errorf("the error is there %d times:\n%s", n, b.screen())
	}
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "So far", "✗ model: auth")
}

// A turn whose end could not be stored can be resumed. A new message would abandon the
// turn, so queued messages are not sent.
//
// SPEC L-14
func TestTurnThatIsLeftOpen(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.keys("next", "enter")
	b.event(belay.Event{Kind: belay.EventError, Text: "store: no room left"})
	b.event(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndError, Why: "store: no room left"}})
	b.send(overMsg{open: true})
	shows(t, "the scrollback", strings.ReplaceAll(strings.Join(b.printed, "\n"), "\n  ", " "), "✗ store: no room left", "/resume continues the turn, a new message ends it")
	shows(t, "the view", b.view(), "next")
	if last := b.did[len(b.did)-1]; last == "run next" {
		t.Error("what was typed is sent, and gives the turn up")
	}
}

// A message that the user types during a turn is shown as queued, and sent when the turn
// ends.
func TestInputIsQueued(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.keys("second", "enter", "third", "enter")
	shows(t, "the view", b.view(), "queued: second", "queued: third")
	b.keys("up")
	if got := b.m.editor.text(); got != "third" {
		t.Errorf("going back gives %q, want what was queued last", got)
	}
	b.keys("!", "enter")
	b.send(overMsg{})
	b.send(overMsg{})
	want := "remember go|run go|remember second|remember third|remember third!|run second|run third!"
	if got := strings.Join(b.did, "|"); got != want {
		t.Errorf("the host was asked for %q, want %q", got, want)
	}
}

func TestAbort(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.says("Half")
	b.calls("1", "shell", `{"command":"sleep 9"}`)
	b.keys("typed", "enter", "more", "ctrl+c")
	if last := b.did[len(b.did)-1]; last != "abort" {
		t.Fatalf("the host was asked to %q, want abort", last)
	}
	shows(t, "the view", b.view(), "aborting · ctrl+c again quits without waiting")
	b.event(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndAborted}})
	b.send(overMsg{err: errAborted})
	if !errors.Is(errAborted, context.Canceled) {
		t.Error("an abort does not count as a cancelled context")
	}
	shows(t, "the screen", b.screen(), "Half", "∙ shell sleep 9 · no result", "∎ aborted", "› typed")
	if got := b.m.editor.text(); got != "typed\nmore" {
		t.Errorf("the editor holds %q, want what was queued and what was typed", got)
	}
	hides(t, "the screen", b.screen(), "aborted by you")
	if last := b.did[len(b.did)-1]; last != "abort" {
		t.Errorf("after an abort the host was asked to %q: what was queued is not sent by itself", last)
	}
}

func TestAbortTwiceForces(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.m.View()
	_, cmd := b.m.Update(tea.KeyPressMsg(keyNames["ctrl+c"]))
	b.do(cmd)
	if b.left {
		t.Fatal("the first ctrl+c leaves")
	}
	b.m.interrupt()
	if !b.m.gone {
		t.Error("the second ctrl+c does not leave")
	}
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		keys []string
		left bool
	}{
		{"ctrl+d leaves", []string{"ctrl+d"}, true},
		{"ctrl+d with a text does not", []string{"x", "ctrl+d"}, false},
		{"/quit leaves", []string{"/quit", "enter"}, true},
		{"ctrl+c asks first", []string{"ctrl+c"}, false},
		{"ctrl+c twice leaves", []string{"ctrl+c", "ctrl+c"}, true},
		{"any other key takes ctrl+c back", []string{"ctrl+c", "x", "backspace", "ctrl+c"}, false},
		{"ctrl+c clears a text first", []string{"x", "ctrl+c", "ctrl+c"}, false},
	} {
		b := newBench(t, nil)
		b.keys(test.keys...)
		b.wait(slack)
		if b.left != test.left {
			t.Errorf("%s: left = %t", test.rule, b.left)
		}
	}
	b := begun(t)
	b.keys("ctrl+d")
	if b.left || b.did[len(b.did)-1] != "abort" {
		t.Errorf("leaving during a turn: left = %t, asked for %q; want the turn aborted first", b.left, b.did)
	}
	b.send(overMsg{err: errAborted})
	b.wait(slack)
	if !b.left {
		t.Error("the chat does not leave when the turn is over")
	}
}

// The input line does not move during a turn. Blank lines replace the parts of the view
// that were printed.
func TestInputDoesNotJump(t *testing.T) {
	t.Parallel()
	b := begun(t)
	height := func() int { return strings.Count(b.m.View().Content, "\n") + 1 }
	b.says("- a\n- b\n- c\n- d")
	tall, row := height(), b.m.View().Cursor.Y
	b.says("\n\nNext")
	if got := b.m.View().Cursor.Y; height() != tall || got != row {
		t.Errorf("the view went from %d to %d lines, the cursor from line %d to %d", tall, height(), row, got)
	}
	b.send(overMsg{})
	if got := height(); got != tall {
		t.Errorf("the view went from %d to %d lines before it was drawn with the cursor in its place", tall, got)
	}
	b.wait(slack)
	if got := height(); got >= tall {
		t.Errorf("after the turn the view still has %d lines", got)
	}
}

// Output waits while the terminal is printing, so that its order is kept.
func TestPrintsInOrder(t *testing.T) {
	t.Parallel()
	b := begun(t)
	var printed []string
	b.m.printer = func(pages []string) tea.Cmd {
		printed = append(printed, bare(strings.Join(pages, "\n")))
		return nil // the terminal has not finished printing
	}
	b.says("one\n\ntwo\n\nthree\n\nx")
	b.says("y\n\nz")
	if len(printed) != 1 {
		t.Errorf("while the first is printed there are %q", printed)
	}
	b.send(printedMsg{})
	if got := strings.Join(printed, "|"); got != "one\n\ntwo\n\nthree|xy" {
		t.Errorf("printed %q", got)
	}
}

// Quitting waits until the last input is stored in the history.
func TestLeavingKeepsTheHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.keys("/quit")
	b.m.Update(tea.KeyPressMsg(keyNames["enter"])) // the commands of this update are not run yet
	b.wait(slack)
	b.wait(slack)
	if b.left {
		t.Error("it leaves before the history is written")
	}
	b.send(keptMsg{})
	if !b.left {
		t.Error("it does not leave")
	}
}

// A view shrinks only after the cursor was drawn at its new position.
func TestHeightWaits(t *testing.T) {
	t.Parallel()
	var h height
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		natural int
		after   time.Duration
		frames  int64
		want    int
	}{
		{3, 0, 1, 3},
		{9, 0, 2, 9},
		{4, 0, 3, 9},
		{4, slack, 3, 9}, // no frame was drawn since the waiting began
		{3, 0, 4, 9},     // less to show: the waiting starts again
		{3, slack / 2, 5, 9},
		{3, slack / 2, 5, 3},
		{8, 0, 6, 8},
		{5, 0, 6, 8},
		{9, 0, 7, 9},
	} {
		at = at.Add(step.after)
		if got := h.fit(step.natural, 20, at, step.frames); got != step.want {
			t.Errorf("step %d: the view has %d lines, want %d", i, got, step.want)
		}
	}
	if got := h.fit(4, 6, at, 8); got != 4 {
		t.Errorf("on a lower screen the view has %d lines, want 4", got)
	}
}

// Long text, wide characters and invalid bytes fit every screen. send checks this for each
// view.
func TestAnythingFitsTheScreen(t *testing.T) {
	t.Parallel()
	b := begun(t)
	long := strings.Repeat("Lorem ipsum 語語語 👩\u200d👩\u200d👧 😀 \xff\xfe ", 120)
	for _, size := range [][2]int{{60, 24}, {20, 5}, {200, 50}, {33, 8}, {1, 1}} {
		b.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for i := 0; i < len(long); i += 499 {
			b.says(long[i:min(i+499, len(long))])
		}
		b.says("\n\n```\n" + strings.Repeat("x", 300) + "\n\tindented\n```\n\n| a | b |\n|---|---|\n| " + strings.Repeat("語", 50) + " | 2 |\n\n")
		b.answers(b.calls("c", "語"+strings.Repeat("x", 90), `{"a":"`+strings.Repeat("語", 90)+`"}`), belay.Result{Text: long})
		b.keys(strings.Repeat("語 word ", 30))
		b.send(tea.PasteMsg{Content: strings.Repeat("pasted 語\n", 9)})
		reply := make(chan belay.Decision, 1)
		b.send(askMsg{belay.Question{Approval: belay.Approval{ID: "q", Tool: "t", Reason: long, By: long}, Input: json.RawMessage(`{"a":"` + strings.Repeat("語\\n", 90) + `"}`)}, Advice{Reach: long, Run: long, Pattern: long}, reply})
		b.send(withdrawMsg{"q"})
		b.send(overMsg{})
		b.keys("ctrl+c", "/", "esc", "backspace", "go", "enter")
	}
	for _, line := range b.printed {
		if !strings.Contains(line, "\uFFFD") && strings.ToValidUTF8(line, "") != line {
			t.Fatalf("a printed line is not UTF-8: %q", line)
		}
	}
}

// Without colours the output has the same text.
func TestNoColour(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.m.look.profile, b.m.md.profile = colorprofile.NoTTY, colorprofile.NoTTY
	b.keys("go", "enter")
	b.says("Use `code` and **bold**.\n\n")
	b.answers(b.calls("1", "read", `{}`), belay.Result{Text: "ok"})
	all := strings.Join(b.raw[1:], "\n") // without the greeting
	if ansi.Strip(all) != all {
		t.Errorf("there are sequences for a terminal that knows none: %q", all)
	}
	shows(t, "the scrollback", all, "Use `code` and bold.", "✓ read")
}

// The lines of a result keep their places below each other. Spaces that all of them begin with
// are left out.
func TestExcerptKeepsColumns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, text, want string }{
		{"numbered lines", "     9\tnine\n    10\tten\n", "  │  9    nine\n  │ 10    ten"},
		{"a list below a head", "head\n  one\n  two\n", "  │ head\n  │   one\n  │   two"},
		{"a blank line between", "  one\n\n  two\n", "  │ one\n  │\n  │ two"},
		{"blank lines around", "\n\n  one\n\n", "  │ one"},
		{"more lines than are shown", "    1 a\n    2 b\n    3 c\n    4 d\n5 e", "  │ 1 a\n  │ 2 b\n  │ 3 c\n  │ … 2 lines more · ctrl+o"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			b := begun(t)
			b.answers(b.calls("1", "read", `{"path":"x"}`), belay.Result{Text: test.text})
			shows(t, "the scrollback", bare(strings.Join(b.printed, "\n")), test.want)
		})
	}
}
