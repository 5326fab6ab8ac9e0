package belay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/toolbox"
)

// openFile opens a store in a file, as another process would.
func openFile(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return store
}

// scriptedAgent makes an agent that is closed when the test ends.
func scriptedAgent(t *testing.T, opts belay.Options, steps ...scripted.Step) *belay.Agent {
	t.Helper()
	agent, err := belay.New(scripted.New(steps, nil), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Errorf("close the agent: %v", err)
		}
	})
	return agent
}

// wantTurn runs a turn and fails the test if the turn does not end with the given reason.
func wantTurn(t *testing.T, session *belay.Session, reason belay.EndReason) *belay.Turn {
	t.Helper()
	turn, err := session.Turn(t.Context(), "go")
	if err != nil || turn.Reason != reason {
		t.Fatalf("the turn is %+v, %v, want it to end %s", turn, err, reason)
	}
	return turn
}

// A session is created with labels, found by its labels, and renamed while it is in use. A
// fork has the labels of the original session.
//
// SPEC L-13
func TestDescribe(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	agent := scriptedAgent(t, belay.Options{Store: store}, scripted.Step{Text: "hello"})
	session, title := agent.Session("a"), "The refund"
	if err := session.Describe(t.Context(), belay.SessionUpdate{Labels: map[string]string{"user": "ann"}}); err != nil {
		t.Fatal(err)
	}
	wantTurn(t, session, belay.EndTurn)
	if err := session.Describe(t.Context(), belay.SessionUpdate{Title: &title}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Fork(t.Context(), "b", 1); err != nil {
		t.Fatal(err)
	}
	var found []string
	for info, err := range store.Sessions(t.Context(), belay.SessionFilter{Labels: map[string]string{"user": "ann"}}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, info.ID+" "+info.Title)
	}
	if !slices.Equal(found, []string{"b ", "a The refund"}) {
		t.Errorf("the sessions of ann are %q", found)
	}
	if err := agent.Session("").Describe(t.Context(), belay.SessionUpdate{}); err == nil {
		t.Error("a session without an id was described")
	}
	plain := scriptedAgent(t, belay.Options{}, scripted.Step{Text: "hello"})
	if err := plain.Session("a").Describe(t.Context(), belay.SessionUpdate{}); err == nil || !strings.Contains(err.Error(), "store/memstore") {
		t.Errorf("without a store that can: %v, want the stores that can", err)
	}
}

// A deleted session leaves no rows and no files. DeleteSession fails and changes nothing
// if the session is running a turn or another agent holds it.
//
// SPEC L-13
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spill := filepath.Join(dir, "spill")
	store := openFile(t, filepath.Join(dir, "belay.db"))
	running, end := make(chan struct{}), make(chan struct{})
	dump := belay.NewTool("dump", "Dumps.", func(context.Context, struct{}) (string, error) {
		running <- struct{}{}
		<-end
		return strings.Repeat("long ", 50_000), nil
	}, nil)
	agent := scriptedAgent(t, belay.Options{Store: store, SpillDir: spill, Tools: []belay.Tool{dump}},
		scripted.Step{Calls: []scripted.Call{{Tool: "dump"}}}, scripted.Step{Text: "done"})
	session := agent.Session("a")
	done := make(chan error, 1)
	go func() {
		_, err := session.Turn(context.Background(), "go")
		done <- err
	}()
	<-running
	if err := agent.DeleteSession(t.Context(), "a"); !errors.Is(err, belay.ErrBusy) {
		t.Errorf("while a turn runs: %v, want %v", err, belay.ErrBusy)
	}
	other := scriptedAgent(t, belay.Options{Store: openFile(t, store.Path()), SpillDir: spill}, scripted.Step{Text: "done"})
	if err := other.DeleteSession(t.Context(), "a"); !errors.Is(err, belay.ErrHeld) {
		t.Errorf("while another process holds it: %v, want %v", err, belay.ErrHeld)
	}
	close(end)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := countFiles(t, spill); n != 1 {
		t.Fatalf("%d long results are in files, want 1", n)
	}
	if err := agent.DeleteSession(t.Context(), "a"); err != nil { // the session is open and idle
		t.Fatal(err)
	}
	if n := countFiles(t, spill); n != 0 {
		t.Errorf("%d long results are left in files", n)
	}
	for info, err := range store.Sessions(t.Context(), belay.SessionFilter{}) {
		t.Errorf("session %q is left, %v", info.ID, err)
	}
	if err := agent.DeleteSession(t.Context(), "a"); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("once more: %v, want %v", err, belay.ErrNotFound)
	}
}

// countFiles counts the files below a directory.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// With ReleaseIdle, two processes use a session alternately, and each sees the other's
// messages. Without it, the second process gets an error.
//
// SPEC L-13
func TestReleaseIdle(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "belay.db")
	one := scriptedAgent(t, belay.Options{Store: openFile(t, path), ReleaseIdle: true}, scripted.Step{Text: "one"}, scripted.Step{Text: "three"})
	two := scriptedAgent(t, belay.Options{Store: openFile(t, path)}, scripted.Step{Text: "two"})
	wantTurn(t, one.Session("a"), belay.EndTurn)
	wantTurn(t, two.Session("a"), belay.EndTurn)
	if _, err := one.Session("a").Turn(t.Context(), "go"); !errors.Is(err, belay.ErrHeld) {
		t.Errorf("a session that another process has open: %v, want %v", err, belay.ErrHeld)
	}
	if err := two.Session("a").Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTurn(t, one.Session("a"), belay.EndTurn)
	var said []string
	for m, err := range one.Session("a").Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == belay.KindAssistant {
			said = append(said, m.Text())
		}
	}
	if !slices.Equal(said, []string{"one", "two", "three"}) {
		t.Errorf("the answers are %q", said)
	}
}

// With ReleaseIdle, and after a turn has parked, a session keeps no messages in memory.
func TestReleasedSessionFreesItsMessages(t *testing.T) {
	t.Parallel()
	for rule, opts := range map[string]belay.Options{
		"idle":   {ReleaseIdle: true},
		"parked": {OnAsk: belay.AskPark, Extensions: []belay.Extension{toolbox.AskUser()}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var sent weak.Pointer[belay.Message]
			model := scripted.New([]scripted.Step{{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
				sent = weak.Make(req.Messages[0])
				if rule == "idle" {
					return scripted.Step{Text: "done"}, nil
				}
				return scripted.Step{Calls: []scripted.Call{{Tool: toolbox.AskUserTool, Input: `{"question": "Why?"}`}}}, nil
			}}}, &scripted.Options{Keep: -1})
			opts.Store = openFile(t, filepath.Join(t.TempDir(), "belay.db"))
			agent, err := belay.New(model, &opts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := agent.Session("a").Turn(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				if runtime.GC(); sent.Value() == nil {
					break
				}
			}
			if sent.Value() != nil {
				t.Error("the message is still in memory")
			}
			if err := agent.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that has only the store can list everything that parked turns wait for, with
// the inputs of the calls: an approval, a question of ask_user, and a call that its tool
// parked.
//
// SPEC L-13
func TestQuestions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "belay.db")
	ask := belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Ask("it costs money"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"refund"}}, Capabilities: hook.CanAsk})
	refund := belay.NewTool("refund", "Refunds.", func(context.Context, struct {
		Cents int `json:"cents"`
	},
	) (string, error) {
		return "refunded", nil
	}, nil)
	wait := belay.NewRawTool(belay.ToolDeclaration{Name: "wait", Description: "Waits."}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{}, belay.Park("ticket-7")
	}, nil)
	store := openFile(t, path)
	agent := scriptedAgent(t, belay.Options{
		Name: "support", Store: store, OnAsk: belay.AskPark, Tools: []belay.Tool{refund, wait}, Hooks: []hook.Subscription{ask}, Extensions: []belay.Extension{toolbox.AskUser()},
	}, scripted.Step{Calls: []scripted.Call{
		{ID: "c1", Tool: "refund", Input: `{"cents": 1200}`},
		{ID: "c2", Tool: toolbox.AskUserTool, Input: `{"question": "Which order?", "options": ["first", "second"]}`},
		{ID: "c3", Tool: "wait", Input: `{"for": "them"}`},
	}}, scripted.Step{Text: "done"})
	turn := wantTurn(t, agent.Session("a"), belay.EndParked)
	want := map[string]string{"refund": `{"cents":1200}`, toolbox.AskUserTool: `{"question":"Which order?","options":["first","second"]}`, "wait": `{"for":"them"}`}
	check := func(who string, questions []belay.Question) {
		t.Helper()
		got := make(map[string]string)
		for _, q := range questions {
			got[q.Tool] = compacted(t, q.Input)
			if isWait := q.Tool == "wait"; q.Session != "a" || q.Agent != "support" || isWait != (q.Wait == "ticket-7") || isWait != (q.ID == "") {
				t.Errorf("%s: the question is %+v", who, q)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: the questions are about %q, want %q", who, got, want)
		}
	}
	check("Turn.Waits", turn.Waits)

	elsewhere := openFile(t, path)
	open := questions(t, elsewhere, belay.ApprovalFilter{})
	check("Questions", open)
	check("Questions of the session", questions(t, elsewhere, belay.ApprovalFilter{Session: "a"}))
	if n := len(questions(t, elsewhere, belay.ApprovalFilter{Limit: 2})); n != 2 {
		t.Errorf("with a limit of 2 there are %d questions", n)
	}
	if n := len(questions(t, elsewhere, belay.ApprovalFilter{Session: "b"})); n != 0 {
		t.Errorf("another session has %d questions", n)
	}
	for _, q := range open {
		if q.Wait != "" {
			continue
		}
		d := belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}
		if q.Tool == toolbox.AskUserTool {
			var err error
			if d, err = toolbox.Answer(q, "ann", "2"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := elsewhere.Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	delete(want, "refund")
	delete(want, toolbox.AskUserTool)
	check("what is still open", questions(t, elsewhere, belay.ApprovalFilter{}))
	if _, err := agent.Session("a").Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := questions(t, elsewhere, belay.ApprovalFilter{}); len(left) > 0 {
		t.Errorf("after the end of the turn %+v is open", left)
	}
}

// deleting deletes a session before its messages are read.
type deleting struct {
	*memstore.Store

	session string
}

func (d deleting) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	if session == d.session {
		if err := d.Forget(session); err != nil && !errors.Is(err, belay.ErrNotFound) {
			return func(yield func(*belay.Message, error) bool) { yield(nil, err) }
		}
	}
	return d.Store.Read(ctx, session, after)
}

// A session that somebody deletes while the questions are listed has none.
//
// SPEC L-13
func TestQuestionsOfADeletedSession(t *testing.T) {
	t.Parallel()
	wait := belay.NewRawTool(belay.ToolDeclaration{Name: "wait", Description: "Waits."}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{}, belay.Park("ticket-7")
	}, nil)
	store := memstore.New(nil)
	calls := scripted.Step{Calls: []scripted.Call{{Tool: "wait", Input: `{}`}}}
	agent := scriptedAgent(t, belay.Options{Store: store, Tools: []belay.Tool{wait}}, calls, calls)
	for _, session := range []string{"goes", "stays"} {
		wantTurn(t, agent.Session(session), belay.EndParked)
		if err := agent.Session(session).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left := questions(t, deleting{store, "goes"}, belay.ApprovalFilter{})
	if len(left) != 1 || left[0].Session != "stays" {
		t.Errorf("the questions are %+v, want that of the session that stays", left)
	}
}

// questions lists the questions of a store.
func questions(t *testing.T, store belay.ListStore, filter belay.ApprovalFilter) (all []belay.Question) {
	t.Helper()
	for q, err := range belay.Questions(t.Context(), store, filter) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// compacted returns JSON without spaces.
func compacted(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var v json.RawMessage
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%q: %v", text, err)
		return ""
	}
	return strings.NewReplacer(`": `, `":`, `, "`, `,"`).Replace(string(v))
}

// A watcher leaves a stream after any event. In another process it continues without a gap
// and without a repetition, and then gets new events.
//
// SPEC L-13
func TestWatchAfter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "belay.db")
	watched := make(chan struct{}) // closed when the progress event was seen
	echo := belay.NewRawTool(belay.ToolDeclaration{Name: "echo", Description: "Echoes."}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		call.Progress("half way")
		select {
		case <-watched:
		case <-ctx.Done():
		}
		return belay.Result{Text: "echo " + call.ID}, nil
	}, nil)
	script := []scripted.Step{
		{Text: "I look.", Calls: []scripted.Call{{ID: "c1", Tool: "echo", Input: `{"text": "a"}`}, {ID: "c2", Tool: "echo", Input: `{"text": "b"}`}}}, {Text: "It is done."},
	}
	first := openFile(t, path)
	agent := scriptedAgent(t, belay.Options{Store: first, Tools: []belay.Tool{echo}}, script...)
	saw := sync.OnceFunc(func() { close(watched) })
	live := watchTurns(t, agent, "0", saw, func() { wantTurn(t, agent.Session("s"), belay.EndTurn) })
	durable := []string{
		"turn_start go", "model_response I look.", "tool_use c1", "tool_use c2", "tool_use_result c1 echo c1", "tool_use_result c2 echo c2",
		"model_response It is done.", "turn_end end_turn",
	}
	if got := durableOf(live); !slices.Equal(got, durable) {
		t.Fatalf("the events are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(durable, "\n  "))
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	again := scriptedAgent(t, belay.Options{Store: openFile(t, path), Tools: []belay.Tool{echo}}, script...)
	seen := 0
	for i, e := range live {
		if e.Position == "" {
			t.Fatalf("event %d, %s, has no position", i, e.Kind)
		}
		if describe(e) != "" {
			seen++
		}
		if seen == len(durable) {
			break // the turn has no more events
		}
		rest := watchTurns(t, again, e.Position, saw, func() {})
		if got := durableOf(rest); !slices.Equal(got, durable[seen:]) {
			t.Errorf("after %s at %s come\n  %s\nwant\n  %s", e.Kind, e.Position, strings.Join(got, "\n  "), strings.Join(durable[seen:], "\n  "))
		}
	}
	// After the position of turn_end, only the next turn follows.
	next := watchTurns(t, again, live[len(live)-1].Position, saw, func() { wantTurn(t, again.Session("s"), belay.EndTurn) })
	second := slices.Clone(durable) // the second turn has the same events with new call ids
	for i := range second {
		second[i] = strings.NewReplacer("c1", "c1_2", "c2", "c2_2").Replace(second[i])
	}
	if got := durableOf(next); !slices.Equal(got, second) {
		t.Errorf("the next turn is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(second, "\n  "))
	}
	// After a position in the middle of the first turn, the other events of this turn and
	// all events of the next turn follow.
	middle := slices.IndexFunc(live, func(e belay.Event) bool { return describe(e) == "tool_use c1" })
	both := watchTurns(t, again, live[middle].Position, saw, func() {})
	if got, want := durableOf(both), append(slices.Clone(durable[3:len(durable)-1]), second...); !slices.Equal(got, want) {
		t.Errorf("both turns are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	for _, opts := range []belay.WatchOptions{{Session: "s", After: "x"}, {Session: "s", After: "1-x"}, {Session: "s", After: "-1"}, {Session: "s", After: "99"}, {After: "0"}} {
		var last error
		for _, err := range again.Watch(t.Context(), &opts) {
			last = err
		}
		if last == nil || opts.Session != "" && !errors.Is(last, belay.ErrCursor) {
			t.Errorf("watching with %+v gives %v", opts, last)
		}
	}
}

// The turn_end of a parked turn lists what the turn waits for, even if the watcher starts
// after the turn has parked.
//
// SPEC L-13
func TestWatchAfterParked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "belay.db")
	opts := func() belay.Options {
		return belay.Options{
			Store: openFile(t, path), OnAsk: belay.AskPark, Tools: []belay.Tool{deployTool()}, Hooks: []hook.Subscription{AskFirst},
		}
	}
	one := scriptedAgent(t, opts(), scripted.Step{Calls: []scripted.Call{{Tool: "deploy", Input: `{"env": "staging"}`}}})
	wantTurn(t, one.Session("s"), belay.EndParked)
	two := scriptedAgent(t, opts(), scripted.Step{Text: "It is out."})
	parked := watchTurns(t, two, "0", func() {}, func() {})
	end := parked[len(parked)-1]
	if end.End == nil || end.End.Reason != belay.EndParked || len(end.End.Waits) != 1 || compacted(t, end.End.Waits[0].Input) != `{"env":"staging"}` {
		t.Fatalf("the last event is %+v, want the end of the parked turn with its question", end)
	}
	asked := end.End.Waits[0]
	rest := watchTurns(t, two, end.Position, func() {}, func() {
		if _, err := two.Decide(t.Context(), belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if turn, err := belay.Await(two.Session("s").Resume(t.Context())); err != nil || turn.Reason != belay.EndTurn {
			t.Fatalf("the turn is %+v, %v", turn, err)
		}
	})
	got := durableOf(rest)
	if len(got) != 4 || !strings.HasPrefix(got[0], "turn_start") || !strings.HasPrefix(got[1], "tool_use_result") || got[2] != "model_response It is out." || got[3] != "turn_end end_turn" {
		t.Errorf("after the turn was parked come %q", got)
	}
}

// watchTurns watches a session after a position until a turn has ended. It calls do when
// watching has begun, and saw when an event reports the progress of a call.
func watchTurns(t *testing.T, agent *belay.Agent, after string, saw, do func()) (events []belay.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watching := agent.Watch(ctx, &belay.WatchOptions{Session: "s", After: after, Buffer: 10_000})
	collected := make(chan error, 1)
	go func() { // runs until the turn has ended
		for e, err := range watching {
			if err != nil {
				collected <- err
				return
			}
			events = append(events, e)
			switch e.Kind {
			case belay.EventToolProgress:
				saw()
			case belay.EventTurnEnd:
				collected <- nil
				return
			default:
			}
		}
		collected <- fmt.Errorf("watching after %q ended with %q: %w", after, durableOf(events), context.Cause(ctx))
	}()
	do()
	if err := <-collected; err != nil {
		t.Fatal(err)
	}
	return events
}

// durableOf describes the events that come from the store.
func durableOf(events []belay.Event) (all []string) {
	for _, e := range events {
		if text := describe(e); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// describe describes an event that comes from the store. It returns "" for other events.
func describe(e belay.Event) string {
	switch e.Kind {
	case belay.EventTurnStart:
		if e.Message == nil {
			return string(e.Kind) + " again"
		}
		return string(e.Kind) + " " + e.Message.Text()
	case belay.EventModelResponse:
		return string(e.Kind) + " " + e.Message.Text()
	case belay.EventToolUse:
		return string(e.Kind) + " " + e.Call.ID
	case belay.EventToolUseResult:
		return string(e.Kind) + " " + e.Call.ID + " " + e.Result.Text
	case belay.EventTurnEnd:
		return string(e.Kind) + " " + string(e.End.Reason)
	default:
		return ""
	}
}
