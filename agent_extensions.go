package belay

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// registration records which extensions the agent is registered with.
type registration struct {
	mu     sync.Mutex  // held during Register and Unregister, so that an extension gets one call at a time
	config AgentConfig // as it was registered
	known  []bool      // by extension: it is registered and not yet unregistered
	over   bool        // the agent is closed: it is not registered again
	spare  []Extension // extensions that another agent uses too: they stay open
	closed bool        // the other extensions are closed
}

// register registers the agent with the extensions that do not know it. If one fails, those
// registered by this call are unregistered.
func (a *Agent) register(ctx context.Context) error {
	r := &a.registration
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return ErrClosed
	}
	if !slices.Contains(r.known, true) {
		r.known, r.config = make([]bool, len(a.opts.Extensions)), a.config
		r.config.Tools = a.allTools().names
	}
	told := make([]bool, len(r.known))
	for i, e := range a.opts.Extensions {
		if one, ok := e.(RegisterExtension); ok && !r.known[i] {
			if err := safely(a.names[i], func() error { return one.Register(ctx, r.config.clone()) }); err != nil {
				return errors.Join(err, a.notifyUnregister(context.WithoutCancel(ctx), told))
			}
			r.known[i], told[i] = true, true
		}
	}
	return nil
}

// unregister unregisters the agent. An extension whose Unregister fails still counts as
// registered.
func (a *Agent) unregister(ctx context.Context) error {
	a.registration.mu.Lock()
	defer a.registration.mu.Unlock()
	return a.notifyUnregister(ctx, slices.Clone(a.registration.known))
}

// unregisterForGood unregisters an agent that is closed.
func (a *Agent) unregisterForGood(ctx context.Context) error {
	a.registration.mu.Lock()
	defer a.registration.mu.Unlock()
	a.registration.over = true
	return a.notifyUnregister(ctx, slices.Clone(a.registration.known))
}

// notifyUnregister calls Unregister of some extensions, in reverse order.
func (a *Agent) notifyUnregister(ctx context.Context, which []bool) error {
	r := &a.registration
	var problems []error
	for i, told := range slices.Backward(which) {
		one, ok := a.opts.Extensions[i].(RegisterExtension)
		if !ok || !told {
			continue
		}
		err := safely(a.names[i], func() error { return one.Unregister(ctx, r.config.clone()) })
		r.known[i] = err != nil
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// spareExtensions keeps extensions open that another agent will use.
func (a *Agent) spareExtensions(others []Extension) {
	a.registration.mu.Lock()
	defer a.registration.mu.Unlock()
	a.registration.spare = others
}

// reclaimExtensions undoes spareExtensions, because the other agent could not be made. If
// this agent was closed meanwhile, it closes the spared extensions now.
func (a *Agent) reclaimExtensions(ctx context.Context) error {
	r := &a.registration
	r.mu.Lock()
	spared, late := r.spare, r.closed
	r.spare = nil
	r.mu.Unlock()
	if !late {
		return nil
	}
	return a.closeExtensions(ctx, func(e Extension) bool { return among(spared, e) })
}

// endExtensions closes the extensions, except the spared ones.
func (a *Agent) endExtensions(ctx context.Context) error {
	r := &a.registration
	r.mu.Lock()
	spared := r.spare
	r.closed = true
	r.mu.Unlock()
	return a.closeExtensions(ctx, func(e Extension) bool { return !among(spared, e) })
}

// closeExtensions closes some of the extensions, the last one first.
func (a *Agent) closeExtensions(ctx context.Context, which func(Extension) bool) error {
	var problems []error
	for i, e := range slices.Backward(a.opts.Extensions) {
		if c, ok := e.(CloseExtension); ok && which(e) {
			problems = append(problems, safely(a.names[i], func() error { return c.Close(ctx) }))
		}
	}
	return errors.Join(problems...)
}

// among reports whether an extension is one of others. It reports false for values that
// cannot be compared.
func among(others []Extension, e Extension) bool {
	return reflect.ValueOf(e).Comparable() && slices.ContainsFunc(others, func(o Extension) bool {
		return reflect.TypeOf(o) == reflect.TypeOf(e) && o == e
	})
}

// extensionWatch is an extension that watches events.
type extensionWatch struct {
	name string
	done chan struct{}
}

// watchExtensions starts the extensions that watch events. Their context ends when the
// agent is closed. They still get the events that are waiting then, unless Close runs out
// of time.
func (a *Agent) watchExtensions() {
	ctx, cancel := context.WithCancel(context.Background())
	patience, cut := context.WithCancel(context.Background())
	a.endWatching, a.cutWatching = cancel, cut
	for i, e := range a.opts.Extensions {
		w, ok := e.(WatchExtension)
		if !ok {
			continue
		}
		watch := extensionWatch{a.names[i], make(chan struct{})}
		a.watching = append(a.watching, watch)
		events := a.watch(patience, ctx.Done(), nil)
		go func() { // until the agent is closed
			defer close(watch.done)
			if err := safely(watch.name, func() error { w.Watch(ctx, events); return nil }); err != nil {
				a.opts.Logger.Warn("an extension stopped watching", "error", err)
			}
		}()
	}
}

// stopWatching waits until the watching extensions have seen all events and have returned.
// When ctx is done, each of them stops after its current event.
func (a *Agent) stopWatching(ctx context.Context) error {
	if a.endWatching == nil {
		return nil
	}
	a.endWatching()
	defer a.cutWatching()
	var problems []error
	for _, w := range a.watching {
		select {
		case <-w.done:
			continue
		default:
		}
		select {
		case <-w.done:
		case <-ctx.Done():
			problems = append(problems, fmt.Errorf("extension %q: it is still watching: %w", w.name, context.Cause(ctx)))
		}
	}
	return errors.Join(problems...)
}

// open returns the agent's sessions, sorted by id.
func (a *Agent) open() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := make([]*Session, 0, len(a.sessions))
	for _, s := range a.sessions {
		open = append(open, s)
	}
	slices.SortFunc(open, func(x, y *Session) int { return strings.Compare(x.id, y.id) })
	return open
}

// drain waits for the running turns of an agent that takes no new ones.
func (a *Agent) drain(ctx context.Context) error {
	for _, s := range a.open() {
		select {
		case s.slot <- struct{}{}:
			<-s.slot
		case <-ctx.Done():
			return fmt.Errorf("session %q is running a turn: %w", s.id, context.Cause(ctx))
		}
	}
	return nil
}

// takesTurns reports whether the agent may begin a turn. An agent that is being replaced
// begins only turns below its own running turns, because Replace waits for those.
func (a *Agent) takesTurns(ctx context.Context) bool {
	if a.closed.Load() {
		return false
	}
	if !a.leaving.Load() {
		return true
	}
	for at := lineageOf(ctx).above(); at != nil; at = at.lineage.above() {
		if at.agent == a {
			return true
		}
	}
	return false
}
