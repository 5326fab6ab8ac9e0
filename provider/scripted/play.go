package scripted

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
)

// A claim is the step that a request takes.
type claim struct {
	*take
	number int         // number of the step; a repetition of the last step gets the next number
	usage  belay.Usage // estimated usage, without the output
}

// claim records a request and checks it. If the request is valid, claim takes its step.
func (m *Model) claim(req *belay.Request) (claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record.add(req, m.options.Keep)
	size, common := 0, -1 // -1: sizeOf has not been called
	count := func() {
		if common < 0 {
			size, common = sizeOf(req, m.before)
		}
	}
	if m.options.Window > 0 {
		if count(); tokens(size) > m.options.Window {
			return claim{}, m.fail(belay.ModelTooLong, fmt.Errorf("the request has about %d tokens, more than the window of %d tokens", tokens(size), m.options.Window))
		}
	}
	at := m.played
	if m.options.FollowTranscript {
		at = saidBefore(req)
	}
	t, err := m.takeAt(at)
	if err != nil {
		return claim{}, err
	}
	if err := m.judge(t, req); err != nil {
		return claim{}, err
	}
	c := claim{take: t, number: at + 1}
	if t.step.Usage == (belay.Usage{}) || t.step.Compute != nil {
		count()
		c.usage = belay.Usage{In: tokens(size) - tokens(common), CacheRead: tokens(common)}
	}
	if m.options.Cache {
		if m.before == nil {
			m.before = &belay.Request{}
		}
		copyRequest(m.before, req)
	}
	m.played = max(m.played, at+1)
	return c, nil
}

// takeAt returns the step at an index of the script.
func (m *Model) takeAt(at int) (*take, error) {
	n := len(m.takes)
	switch {
	case at < n:
		return m.takes[at], nil
	case n > 0 && m.options.Repeat:
		return m.takes[n-1], nil
	default:
		return nil, m.fail(belay.ModelInvalid, fmt.Errorf("the script ends after step %d, and a request needs step %d: add a step, or set repeat to play the last step again", n, at+1))
	}
}

// judge returns an error if the step is invalid or the request is not as the step expects.
func (m *Model) judge(t *take, req *belay.Request) error {
	err := t.err
	if err == nil && t.step.Expect != nil {
		err = t.step.Expect.check(req)
	}
	if err != nil {
		err = m.fail(belay.ModelInvalid, fmt.Errorf("%s: %w", t.where, err))
	}
	return err
}

// saidBefore counts the model's messages in the conversation.
func saidBefore(req *belay.Request) int {
	n := 0
	for _, m := range req.Messages {
		if m.Role == belay.RoleAssistant {
			n++
		}
	}
	return n
}

func (m *Model) play(ctx context.Context, req *belay.Request, yield func(belay.Chunk, error) bool) {
	c, err := claim{}, m.cancelled(ctx)
	if err == nil {
		c, err = m.claim(req)
	}
	if err == nil && c.step.Compute != nil {
		c.take, err = m.compute(ctx, req, c)
	}
	if err == nil {
		err = m.wait(ctx, c.step.Pace.Delay)
	}
	if err == nil {
		err = m.perform(ctx, c, yield)
	}
	if err != nil {
		yield(belay.Chunk{}, err)
	}
}

// perform sends the chunks of a step, and then its response. If the step has a fault,
// perform plays the fault instead of sending a response.
func (m *Model) perform(ctx context.Context, c claim, yield func(belay.Chunk, error) bool) error {
	chunks, fault := c.chunks, c.step.Fault
	if fault != nil {
		chunks = chunks[:min(len(chunks), max(fault.After, 0))]
	}
	for i := range chunks {
		err := m.cancelled(ctx)
		if err == nil && i > 0 {
			err = m.wait(ctx, c.step.Pace.Pause)
		}
		if err != nil {
			return err
		}
		if !yield(chunks[i], nil) {
			return nil
		}
	}
	switch {
	case fault == nil:
		usage := c.step.Usage
		if usage == (belay.Usage{}) {
			usage = c.usage
			usage.Out = c.out
		}
		yield(belay.Chunk{Response: c.response(m.options.Name, usage)}, nil)
		return nil
	case fault.Hang:
		<-ctx.Done()
		return m.cancelled(ctx)
	case fault.Cut:
		return nil
	default:
		return fault.modelError(m.options.Name)
	}
}

// compute calls Compute of the step, until the result is a step without Compute.
func (m *Model) compute(ctx context.Context, req *belay.Request, c claim) (*take, error) {
	t := c.take
	for t.step.Compute != nil {
		step, err := t.step.Compute(ctx, req)
		if err != nil {
			if cancelled := m.cancelled(ctx); cancelled != nil {
				return nil, cancelled
			}
			if _, ok := errors.AsType[*belay.ModelError](err); ok {
				return nil, err
			}
			return nil, m.fail(belay.ModelInvalid, fmt.Errorf("%s: compute: %w", t.where, err))
		}
		t = m.ready(step, c.number, &ids{prefix: fmt.Sprintf("call_%d_", c.number)})
		if err := m.judge(t, req); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// wait returns after the given time, or with an error when the context is cancelled.
func (m *Model) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return m.cancelled(ctx)
	}
}

func (m *Model) cancelled(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("model %s: %w", m.options.Name, err)
	}
	return nil
}

func (m *Model) fail(kind belay.ModelErrorKind, err error) error {
	return &belay.ModelError{Kind: kind, Model: m.options.Name, Err: err}
}
