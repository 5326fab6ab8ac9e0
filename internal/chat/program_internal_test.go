package chat

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// deadline is how long a test waits for something. Only a failing test waits that long.
const deadline = 20 * time.Second

// stage is a chat with a running loop and a scripted model, but without a terminal.
type stage struct {
	t      *testing.T
	chat   *Chat
	agent  *belay.Agent
	runner *runner
	tm     *teatest.TestModel
	ended  bool

	mu   sync.Mutex
	seen bytes.Buffer // all output so far
}

// play starts a chat with a script.
func play(t *testing.T, steps []scripted.Step, opts *belay.Options, chatOpts *Options) *stage {
	t.Helper()
	if opts == nil {
		opts = new(belay.Options)
	}
	s := &stage{t: t, chat: New(chatOpts)}
	if opts.OnAsk == "" {
		opts.Approver = s.chat
	}
	if opts.Store == nil {
		opts.Store = memstore.New(nil)
	}
	opts.SpillDir = t.TempDir()
	agent, err := belay.New(scripted.New(steps, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	s.agent = agent
	ctx, cancel := context.WithCancel(context.Background()) // must live longer than the context of the test
	t.Cleanup(cancel)
	s.start(ctx)
	return s
}

// start opens the session and starts the loop.
func (s *stage) start(ctx context.Context) {
	s.t.Helper()
	session := s.agent.Session("main")
	s.runner = newRunner(ctx, s.chat, session, s.chat.open(ctx, session))
	s.runner.model.look.profile, s.runner.model.md.profile = colorprofile.NoTTY, colorprofile.NoTTY
	s.ended = false
	s.tm = teatest.NewTestModel(s.t, s.runner.model, teatest.WithInitialTermSize(80, 24), teatest.WithProgramOptions(
		tea.WithColorProfile(colorprofile.NoTTY), tea.WithEnvironment([]string{"TERM=xterm"})))
	s.runner.attach(s.tm.Send)
	s.tm.Send(drawnMsg{})
	s.t.Cleanup(s.end)
}

// end quits the chat, if it still runs, and closes the agent.
func (s *stage) end() {
	if s.ended {
		return
	}
	s.ended = true
	s.tm.Send(leaveMsg{})
	s.tm.WaitFinished(s.t, teatest.WithFinalTimeout(deadline))
	if err := s.runner.end(); err != nil && !errors.Is(err, ErrForced) {
		s.t.Error(err)
	}
	if err := s.agent.Close(context.Background()); err != nil {
		s.t.Error(err)
	}
}

// sees waits until these texts were printed or drawn, in this order.
func (s *stage) sees(wants ...string) {
	s.t.Helper()
	teatest.WaitFor(s.t, s.tm.Output(), func(news []byte) bool {
		rest := ansi.Strip(s.all(news))
		for _, want := range wants {
			_, after, found := strings.Cut(rest, want)
			if !found {
				return false
			}
			rest = after
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen.Write(news)
		return true
	}, teatest.WithDuration(deadline), teatest.WithCheckInterval(5*time.Millisecond))
}

func (s *stage) all(news []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String() + string(news)
}

// forget drops the output that was seen so far.
func (s *stage) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Reset()
}

func (s *stage) key(name string) { s.tm.Send(tea.KeyPressMsg(keyNames[name])) }

func (s *stage) say(text string) {
	s.tm.Type(text)
	s.key("enter")
}

func TestProgramStreams(t *testing.T) {
	t.Parallel()
	s := play(t, []scripted.Step{
		{Thinking: "Hm.", Text: "# Title\n\nSome **bold** text.\n\n- 語\n- 😀 👩\u200d👩\u200d👧\n\n" + strings.Repeat("A very long text. ", 2000) + "\n\nThe end.", Pace: scripted.Pace{Chunk: 7}},
		{Text: "Second answer."},
	}, nil, nil)
	s.sees("session main")
	s.say("first")
	s.sees("› first", "# Title", "Some bold text.", "• 語", "• 😀", "A very long text.", "The end.")
	s.say("second")
	s.sees("› second", "Second answer.")
}

func TestProgramRunsTools(t *testing.T) {
	t.Parallel()
	s := play(t, []scripted.Step{
		{Text: "Looking.", Calls: []scripted.Call{{Tool: "read", Input: `{"path":"notes.md"}`}, {Tool: "nothing", Input: `{}`}}},
		{Text: "Done."},
	}, &belay.Options{Tools: toolsOfStory()}, nil)
	s.say("look")
	s.sees("Looking.", "✓ read notes.md", "│ # Notes", "✗ nothing", "not_found", "Done.")
}

// asks returns options with which every call of shell needs approval.
func asks() *belay.Options { return &belay.Options{Tools: toolsOfStory(), Authorizer: floor{}} }

type floor struct{}

func (floor) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	if call.Tool() == "shell" {
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "it removes files", By: "floor"}, nil
	}
	return belay.Authorization{}, nil
}

// answerable waits until the first question accepts keys.
func (s *stage) answerable() { s.t.Helper(); s.sees("Allow shell to run?", "y once") }

func TestProgramAsks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		keys func(*stage)
		want []string
	}{
		{"yes", func(s *stage) { s.tm.Type("y") }, []string{"✓ shell allowed by you", "✓ shell rm -rf build", "│ removed build"}},
		{"no", func(s *stage) { s.tm.Type("n"); s.say("keep it") }, []string{"✗ shell denied by you: keep it", "✗ shell rm -rf build", "denied"}},
		{"esc", func(s *stage) { s.key("esc") }, []string{"✗ shell denied by you", "✗ shell rm -rf build", "denied"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			s := play(t, []scripted.Step{{Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"rm -rf build"}`}}}, {Text: "Fine."}}, asks(), nil)
			s.tm.Send(tea.PasteMsg{Content: "clean"})
			s.key("enter")
			s.answerable()
			test.keys(s)
			s.sees(append(test.want, "Fine.")...)
		})
	}
}

// The chat asks about several calls of one response one after another. An abort withdraws
// the questions.
func TestProgramAsksInTurn(t *testing.T) {
	t.Parallel()
	call := scripted.Call{Tool: "shell", Input: `{"command":"rm -rf build"}`}
	s := play(t, []scripted.Step{{Calls: []scripted.Call{call, call, call}}, {Text: "Fine."}}, asks(), nil)
	s.say("clean")
	s.answerable()
	s.tm.Type("y")
	s.sees("✓ shell allowed by you")
	s.key("ctrl+c")
	s.sees("∎ aborted")
	s.end()
	if n := len(s.runner.model.desk.waiting); n != 0 {
		t.Errorf("%d questions are left", n)
	}
}

func TestProgramAborts(t *testing.T) {
	t.Parallel()
	s := play(t, []scripted.Step{
		{Text: "This takes ages and ages", Fault: &scripted.Fault{Hang: true, After: 3}},
		{Text: "Here again."},
	}, nil, nil)
	s.say("go")
	s.sees("This", "takes", "ages") // possibly drawn word by word
	s.key("ctrl+c")
	s.sees("∎ aborted")
	s.say("again")
	s.sees("Here again.")
}

// Requests can arrive in any order. An abort that arrives before its turn still aborts that
// turn. An abort that arrives after its turn does not affect the next turn.
func TestRunnerKeepsAbortsApart(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	r, over := newTestRunner(t, func(ctx context.Context) {
		close(started)
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	r.abort(1)
	r.run(1, "never")
	if o := <-over; !errors.Is(o.err, errAborted) {
		t.Errorf("the turn ended with %v, want it aborted before it began", o.err)
	}
	r.run(2, "go")
	<-started
	r.abort(1)
	close(release)
	if o := <-over; o.err != nil {
		t.Errorf("the next turn ended with %v: the abort was not for it", o.err)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// Quitting waits for the end of the running turn.
func TestRunnerWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	var ended atomic.Bool
	r, _ := newTestRunner(t, func(ctx context.Context) {
		close(started)
		<-ctx.Done()
		ended.Store(true)
	})
	r.run(1, "go")
	<-started
	if err := r.end(); err != nil || !ended.Load() {
		t.Errorf("the turn has ended: %t, error %v", ended.Load(), err)
	}
}

// newTestRunner makes a runner without a loop. Before the model answers, it calls the
// function first.
func newTestRunner(t *testing.T, first func(context.Context)) (*runner, <-chan overMsg) {
	t.Helper()
	agent, err := belay.New(scripted.New([]scripted.Step{{Compute: func(ctx context.Context, _ *belay.Request) (scripted.Step, error) {
		first(ctx)
		return scripted.Step{Text: "Here."}, ctx.Err()
	}}}, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	over := make(chan overMsg, 2)
	r := newRunner(t.Context(), New(nil), agent.Session("main"), &opening{})
	r.attach(func(msg tea.Msg) {
		if o, ok := msg.(overMsg); ok {
			over <- o
		}
	})
	return r, over
}

// The user can quit even if a turn does not end after an abort.
func TestProgramIsForced(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	stubborn := belay.NewTool("stubborn", "Heeds nothing.", func(context.Context, struct{}) (string, error) {
		close(started)
		<-release
		return "", nil
	}, &belay.ToolTraits{MustFinish: true})
	s := play(t, []scripted.Step{{Calls: []scripted.Call{{Tool: "stubborn"}}}}, &belay.Options{Tools: []belay.Tool{stubborn}}, nil)
	s.say("go")
	<-started
	s.key("ctrl+c")
	s.sees("aborting")
	s.key("ctrl+c")
	s.tm.WaitFinished(t, teatest.WithFinalTimeout(deadline))
	if err := s.runner.end(); !errors.Is(err, ErrForced) {
		t.Errorf("it ends with %v, want %v", err, ErrForced)
	}
	close(release)
	s.runner.turns.Wait()
	s.ended = true
	if err := s.agent.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestProgramGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	s := play(t, []scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth, Status: 401}}, {Text: "Better."}}, nil, nil)
	s.say("go")
	s.sees("✗", "auth (HTTP 401)")
	s.say("again")
	s.sees("Better.")
	s.end()
	if n := strings.Count(strings.Join(strings.Fields(ansi.Strip(s.all(nil))), " "), "auth (HTTP 401)"); n != 1 {
		t.Errorf("the error is told %d times", n)
	}
}

func TestProgramKeepsAHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	s := play(t, []scripted.Step{{Text: "One."}, {Text: "Two."}}, nil, &Options{History: path})
	s.say("first words")
	s.sees("One.")
	s.forget()
	s.key("up")
	s.key("enter")
	s.sees("› first words", "Two.")
	s.say("/quit")
	s.tm.WaitFinished(t, teatest.WithFinalTimeout(deadline))
	s.end()
	entries, err := readHistory(path)
	if err != nil || strings.Join(entries, "|") != "first words|/quit" {
		t.Errorf("the file holds %q, error %v", entries, err)
	}
}

func TestProgramCompletesAndResizes(t *testing.T) {
	t.Parallel()
	s := play(t, []scripted.Step{{Text: strings.Repeat("wrap me ", 30)}}, nil, &Options{Directives: []Directive{{"review", "look at it"}}})
	s.tm.Type("/rev")
	s.sees("/review", "look at it")
	s.key("tab")
	s.tm.Send(tea.WindowSizeMsg{Width: 40, Height: 10})
	s.key("enter")
	s.sees("› /review", "wrap me wrap me wrap me wrap me")
	s.end()
	for line := range strings.Lines(ansi.Strip(s.all(nil))) {
		if strings.Count(line, "wrap me") > 5 {
			t.Errorf("a line is too long for the new size: %q", line)
		}
	}
}

// The chat offers to resume a parked turn when it opens the session.
func TestProgramResumes(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	steps := []scripted.Step{{Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"rm -rf build"}`}}}, {Text: "It is gone."}}
	opts := asks()
	opts.Store, opts.OnAsk = store, belay.AskPark
	first, err := belay.New(scripted.New(steps, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := first.Session("main").Turn(t.Context(), "clean up")
	if err != nil || turn.Reason != belay.EndParked {
		t.Fatalf("the turn ended %v, error %v", turn, err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := asks()
	again.Store = store
	s := play(t, steps[1:], again, &Options{Store: store})
	s.sees("› clean up", "the last turn waits for a decision: /resume continues it")
	s.say("something new")
	s.sees("an earlier turn is parked: /resume continues it, /abandon ends it")
	s.say("/resume")
	s.answerable()
	s.tm.Type("y")
	s.sees("✓ shell rm -rf build", "It is gone.")
}

func TestProgramAbandonsAndCompacts(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	opts := asks()
	opts.OnAsk, opts.Store = belay.AskPark, store
	s := play(t, []scripted.Step{{Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"rm"}`}}}, {Text: "A summary."}}, opts, &Options{Store: store})
	s.say("clean up")
	s.sees("∎ the turn is parked", "? shell waits for a decision")
	s.say("/abandon")
	s.sees("the turn was abandoned")
	s.say("/compact")
	s.sees("the conversation was summarized")
	s.say("/resume")
	s.sees("there is no turn to resume")
}

// Without a running chat, no question is asked.
func TestApproveWithoutAConversation(t *testing.T) {
	t.Parallel()
	if _, err := New(nil).Approve(t.Context(), belay.Question{}); err == nil {
		t.Error("a question is answered while there is no conversation")
	}
}

func TestApproveHeedsItsContext(t *testing.T) {
	t.Parallel()
	s := play(t, nil, nil, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the call is gone")
	done := make(chan error, 1)
	go func() {
		_, err := s.chat.Approve(ctx, belay.Question{Approval: belay.Approval{ID: "1", Tool: "shell"}})
		done <- err
	}()
	s.sees("Allow shell to run?")
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("error = %v, want the cause", err)
	}
	go func() {
		_, err := s.chat.Approve(t.Context(), belay.Question{Approval: belay.Approval{ID: "2", Tool: "write"}})
		done <- err
	}()
	s.sees("write") // the rest of the line was already drawn
	s.end()
	if err := <-done; err == nil {
		t.Error("a question is answered though the person left")
	}
}

func TestRunNeedsATerminal(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	err = New(&Options{In: in, Out: out}).Run(t.Context(), nil)
	if !errors.Is(err, ErrNoTerminal) || !strings.Contains(err.Error(), "belay run") {
		t.Errorf("error = %v, want one that points to belay run", err)
	}
}
