package providertest

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// leaveRules check what happens if the consumer stops before the end of a response.
var leaveRules = []rule{
	{"cancelling before the answer begins ends the request", func(s *scene) {
		s.leavesNothing(func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s.user("hello")
			reached := make(chan struct{})
			s.script(Reply{Parts: []Part{Text("one")}, Hold: &Hold{Reached: reached}})
			go func() { // ends when the server has the request, or with ctx
				select {
				case <-reached:
				case <-ctx.Done():
				}
				cancel()
			}()
			s.wantCancelled(ctx, func(belay.Chunk) {})
		})
	}},
	{"a context that is done from the start sends nothing", func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		s.user("hello")
		if o := s.ask(ctx); !errors.Is(o.err, context.Canceled) {
			s.Errorf("want the error of the context, got %v", o.err)
		}
		s.wantEqual("the number of requests", len(s.server.Requests()), 0)
	}},
	{"an exceeded deadline returns the context's error", func(s *scene) {
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Millisecond)
		defer cancel()
		s.user("hello")
		s.script(Reply{Hold: &Hold{}})
		if o := s.ask(ctx); !errors.Is(o.err, context.DeadlineExceeded) {
			s.Errorf("want the error of the context, got %v", o.err)
		}
	}},
	{"a response that was read to its end leaves no goroutine", func(s *scene) {
		s.leavesNothing(func(ctx context.Context) {
			s.user("hello")
			s.script(Reply{Parts: []Part{Text("one ", "two")}})
			if o := s.ask(ctx); o.err != nil {
				s.Errorf("the request failed: %v", o.err)
			}
			s.wantDone()
		})
	}},
	{"a sequence without a loop over it sends nothing", func(s *scene) {
		s.user("hello")
		_ = s.model.Stream(s.Context(), &s.talk)
		s.wantEqual("the number of requests", len(s.server.Requests()), 0)
	}},
}

// wantCancelled sends the conversation and checks that cancelling the context ends the
// request.
func (s *scene) wantCancelled(ctx context.Context, see func(belay.Chunk)) {
	s.Helper()
	var last error
	for chunk, err := range s.model.Stream(ctx, &s.talk) {
		if last = err; err == nil {
			see(chunk)
		}
	}
	if !errors.Is(last, context.Canceled) {
		s.Errorf("want the sequence to end with the error of its context, got %v", last)
	}
	s.wantDone()
}

// wantDone waits until the server has finished the last request.
func (s *scene) wantDone() {
	s.Helper()
	r := s.last()
	select {
	case <-r.Done:
	case <-time.After(s.patience):
		s.Errorf("the request is still open: the provider must close the connection")
	}
}

// leavesNothing runs f, closes the server and waits until all goroutines that f started have
// ended. It finds them by a pprof label that goroutines inherit. So other tests can run at
// the same time.
func (s *scene) leavesNothing(f func(ctx context.Context)) {
	s.Helper()
	label := fmt.Sprintf("scene %p", s)
	pprof.Do(s.Context(), pprof.Labels("providertest", label), f)
	s.server.Close()
	deadline := time.After(s.patience)
	look := time.NewTicker(2 * time.Millisecond) // polling, because nothing signals the end of a goroutine
	defer look.Stop()
	for {
		left := labelled(label)
		if left == "" {
			return
		}
		select {
		case <-look.C:
		case <-deadline:
			s.Errorf("a goroutine is left behind:\n%s", left)
			return
		}
	}
}

// labelled returns the stacks of the goroutines that have a label.
func labelled(label string) string {
	var all strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	var found []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
