package mcptool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
)

// openCall is a running call. Belay asks the user of that call the server's questions.
//
// If the user is there (the agent has an Asker), the call stays open at the server while the
// user thinks. Otherwise Belay cancels the question, ends the call and parks the turn with the
// question. When somebody has answered, Belay makes the call again. The server asks again,
// and gets the stored answer.
type openCall struct {
	ctx  context.Context //nolint:containedctx // it is the call's
	call *belay.Invocation
	end  context.CancelCauseFunc // ends the call at the server

	mu       sync.Mutex
	used     int         // how many of the stored answers the server has got
	sampled  int         // how many requests to the model the server has made
	question string      // the question with which the call parks
	late     *time.Timer // ends a call that does not end after its question was cancelled
}

// parkGrace is how long a call may continue after Belay has cancelled its question.
const parkGrace = 5 * time.Second

// errAsked says that a question is not answered yet, and that the call parks with it.
var errAsked = errors.New("the question waits for an answer")

// newOpenCall returns nil for a call that does not belong to a turn.
func newOpenCall(ctx context.Context, call *belay.Invocation, end context.CancelCauseFunc) *openCall {
	if call.Controls() == nil {
		return nil
	}
	return &openCall{ctx: ctx, call: call, end: end}
}

// put asks the user a question.
func (c *openCall) put(ctx context.Context, s *spec, question string) (string, error) {
	said, err := c.call.Controls().Ask(ctx, s.known.Replace(question))
	if !errors.Is(err, belay.ErrNobody) {
		return said, err //nolint:wrapcheck // it only goes to the log
	}
	question = forStore(s.hide(question))
	c.mu.Lock()
	defer c.mu.Unlock()
	answers := c.call.Answers
	if i := slices.IndexFunc(answers[min(c.used, len(answers)):], func(a belay.ToolAnswer) bool { return a.Question == question }); i >= 0 {
		c.used += i + 1
		return answers[c.used-1].Text, nil
	}
	if c.question == "" {
		c.question = question
		c.late = time.AfterFunc(parkGrace, func() { c.end(errAsked) })
	}
	return "", errAsked
}

// asked returns the question with which the call must park, or "".
func (c *openCall) asked() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != nil {
		c.late.Stop()
	}
	return c.question
}

// forStore cuts the middle of a question that is longer than stores keep. The end has the
// options.
func forStore(question string) string {
	const most, head, mark = 500, 290, " … "
	runes := []rune(question)
	if len(runes) <= most {
		return question
	}
	return string(runes[:head]) + mark + string(runes[len(runes)-(most-head-len([]rune(mark))):])
}

// openCallKey is the context key under which a request carries its openCall.
type openCallKey struct{}

// opens registers a running call. The returned function removes the call.
func (l *link) opens(c *openCall) (closes func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = slices.DeleteFunc(l.open, func(other *openCall) bool { return other == c })
	}
}

// asker returns the call that a question of the server belongs to. In older versions of
// the protocol the question does not name the call. Then asker returns the newest call,
// or an error if calls of several sessions are running.
func (l *link) asker(ctx context.Context) (*openCall, error) {
	if c, ok := ctx.Value(openCallKey{}).(*openCall); ok {
		return c, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return nil, errors.New("no call is running")
	}
	last := l.open[len(l.open)-1]
	for _, c := range l.open {
		if c.call.Session != last.call.Session {
			return nil, errors.New("calls of several sessions are running")
		}
	}
	return last, nil
}
