package chat

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
)

// errAborted is the cause with which the user's abort cancels the context of a turn.
var errAborted = &abortError{}

type abortError struct{}

func (*abortError) Error() string { return "aborted by you" }

// Is makes errors.Is(err, context.Canceled) true.
func (*abortError) Is(target error) bool { return target == context.Canceled }

// runner runs turns for a model, and passes their events to its loop.
type runner struct {
	chat    *Chat
	session Session
	model   *model
	ctx     context.Context //nolint:containedctx // the chat's own: a runner lives as long as Run

	ready chan struct{} // closed when send is set
	send  func(tea.Msg)
	gone  chan struct{} // closed after the loop has ended

	forced atomic.Bool
	left   atomic.Bool // the turn that just failed is still open in the store
	turns  sync.WaitGroup

	mu      sync.Mutex
	number  int                     // number of the last started activity
	aborted int                     // number of the last aborted activity
	cancel  context.CancelCauseFunc // cancels the last started activity
}

func newRunner(ctx context.Context, c *Chat, s Session, o *opening) *runner {
	r := &runner{chat: c, session: s, ctx: ctx, ready: make(chan struct{}), gone: make(chan struct{})}
	r.model = newModel(r, o, &c.opts)
	c.at(r)
	return r
}

// newProgram makes the loop. It handles no signals, because Chat.Run does. The loop
// prints finished output at once, and removes it from the view with the next frame. The
// frame rate is high, so that nobody sees such output twice.
func newProgram(m tea.Model, in io.Reader, out io.Writer, environ []string, profile colorprofile.Profile) *tea.Program {
	return tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(environ),
		tea.WithColorProfile(profile), tea.WithoutSignalHandler(), tea.WithFPS(120))
}

// attach sets the function that sends messages to the loop.
func (r *runner) attach(send func(tea.Msg)) {
	r.send = send
	close(r.ready)
}

// tell passes a message to the loop. After the loop has ended it does nothing.
func (r *runner) tell(msg tea.Msg) {
	select {
	case <-r.ready:
		r.send(msg)
	case <-r.gone:
	}
}

// end stops the running activity after the loop has ended. It waits for the activity,
// unless the user forced the exit.
func (r *runner) end() error {
	r.chat.at(nil)
	close(r.gone)
	r.mu.Lock()
	if r.cancel != nil {
		r.cancel(errAborted)
	}
	r.mu.Unlock()
	if r.forced.Load() {
		return ErrForced
	}
	r.turns.Wait()
	return nil
}

// ask shows a question to the user and waits for the decision.
func (r *runner) ask(ctx context.Context, question belay.Question, advice Advice) (belay.Decision, error) {
	reply := make(chan belay.Decision, 1)
	r.tell(askMsg{question, advice, reply})
	put(ctx)
	select {
	case d := <-reply:
		return d, nil
	case <-ctx.Done():
		r.tell(withdrawMsg{question.ID})
		return belay.Decision{}, context.Cause(ctx)
	case <-r.gone:
		return belay.Decision{}, errors.New("the user quit without deciding")
	}
}

// note shows a warning to the user.
func (r *runner) note(text string) { r.tell(noteMsg(text)) }

// start runs an activity in its own goroutine. It sends an overMsg when the activity has
// ended.
func (r *runner) start(n int, do func(ctx context.Context) (said string, err error)) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	r.mu.Lock()
	r.number, r.cancel = n, cancel
	if r.aborted == n {
		cancel(errAborted) // the abort arrived first
	}
	r.mu.Unlock()
	r.turns.Go(func() {
		defer cancel(nil)
		said, err := do(ctx)
		if failed := r.chat.recall(r.ctx, r.session); failed != nil {
			r.note("the mode below may be wrong: " + failed.Error())
		}
		r.tell(overMsg{err: err, usage: r.session.Usage(), said: said, open: r.left.Swap(false)})
	})
}

func (r *runner) run(n int, text string, parts ...belay.Part) {
	r.start(n, func(ctx context.Context) (string, error) { return "", r.follow(r.session.Run(ctx, text, parts...)) })
}

// open opens another session. No turn runs meanwhile, so nobody else uses r.session.
func (r *runner) open(_ int, id string) {
	r.turns.Go(func() {
		next, err := r.chat.opts.Controls.Open(r.ctx, id)
		if err != nil {
			r.tell(openedMsg{err: err})
			return
		}
		o := r.chat.open(r.ctx, next)
		r.session = next
		r.tell(openedMsg{opening: o})
	})
}

// preview returns the beginning and the end of a session, in a few lines.
func (r *runner) preview(id string) []string {
	if r.chat.opts.Store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	var lines []string
	for message, err := range r.chat.opts.Store.Read(ctx, id, 0) {
		if err != nil || len(lines) == 50 {
			break
		}
		text := visible.OneLine(message.Text())
		switch {
		case text == "":
		case message.Kind == belay.KindUser:
			lines = append(lines, "› "+asTyped(text))
		case message.Kind == belay.KindAssistant:
			lines = append(lines, "  "+text)
		}
	}
	return lines[:min(len(lines), previewLines)]
}

func (r *runner) resume(n int) {
	r.start(n, func(ctx context.Context) (string, error) { return "", r.follow(r.session.Resume(ctx)) })
}

func (r *runner) abandon(n int) {
	r.start(n, func(ctx context.Context) (string, error) {
		_, err := r.session.Abandon(ctx)
		return "the turn was abandoned", err
	})
}

func (r *runner) compact(n int) {
	r.start(n, func(ctx context.Context) (string, error) {
		return "the conversation was summarized; the session keeps everything", r.session.Compact(ctx)
	})
}

func (r *runner) abort(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aborted = n
	if r.number == n {
		r.cancel(errAborted)
	}
}

func (r *runner) force() { r.forced.Store(true) }

func (r *runner) remember(text string) error { return appendHistory(r.chat.opts.History, text) }

// follow passes the events of a turn to the loop. It returns nil for errors that an event
// has already reported.
func (r *runner) follow(stream iter.Seq2[belay.Event, error]) error {
	b := newBatch()
	var sender sync.WaitGroup
	sender.Go(func() {
		for events := b.take(); events != nil; events = b.take() {
			r.tell(eventsMsg(events))
		}
	})
	var failure error
	told := false
	for event, err := range stream {
		if err != nil {
			failure = err
			break // an error ends the stream
		}
		r.chat.order.Hear(&event)
		told = told || event.Kind == belay.EventError && !event.Retry && event.Depth == 0
		b.put(event)
	}
	b.close()
	sender.Wait()
	r.left.Store(failure != nil && r.isOpen())
	if told && !errors.Is(failure, belay.ErrParked) && !errors.Is(failure, belay.ErrNoTurn) {
		return nil
	}
	return failure
}

// isOpen reports whether the store still has an open turn in this session that is not
// parked. This happens when the last commit of the turn failed.
func (r *runner) isOpen() bool {
	if r.chat.opts.Store == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 5*time.Second)
	defer cancel()
	for info, err := range r.chat.opts.Store.Sessions(ctx, belay.SessionFilter{Prefix: r.session.ID()}) {
		if err != nil {
			return false
		}
		if info.ID == r.session.ID() {
			return info.State.Turn != nil && !info.State.Turn.Parked
		}
	}
	return false
}
