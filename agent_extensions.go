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

// registration records which extensions the agent is registered with. The agent holds no
// lock while it calls an extension, so the extension may add and remove other extensions.
type registration struct {
	mu     sync.Mutex
	known  map[*attached]*known
	over   bool        // the agent is closed and must not register again
	spare  []Extension // extensions that another agent uses too: closing this agent does not close them
	closed bool        // the extensions that are not in spare are closed
}

// known is an extension that the agent is registered with.
type known struct {
	config AgentConfig // the configuration that Register got
	busy   bool        // Register or Unregister is running
}

// registerAll calls Register of all extensions of the agent.
func (a *Agent) registerAll(ctx context.Context) error {
	composed := a.composed.Load()
	return a.register(ctx, composed, composed.extensions, a.allTools().names)
}

// register calls Register of the extensions that the agent is not registered with yet. If
// a Register fails, register calls Unregister of the extensions that it has registered.
func (a *Agent) register(ctx context.Context, composed *composition, extensions []*attached, tools []string) error {
	config := composed.config
	config.Tools = tools
	var told []*attached
	for _, x := range extensions {
		one, ok := x.Extension.(RegisterExtension)
		if !ok {
			continue
		}
		begun, err := a.registration.begin(x, config)
		if begun {
			err = safely(x.name, func() error { return one.Register(ctx, config.clone()) })
			if a.registration.end(x, err == nil); err == nil {
				told = append(told, x)
			}
		}
		if err != nil {
			return errors.Join(err, a.unregister(context.WithoutCancel(ctx), told))
		}
	}
	return nil
}

// begin reports whether the caller must call Register of the extension. It returns
// ErrClosed if the agent is closed.
func (r *registration) begin(x *attached, config AgentConfig) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false, ErrClosed
	}
	if r.known[x] != nil {
		return false, nil
	}
	if r.known == nil {
		r.known = make(map[*attached]*known)
	}
	r.known[x] = &known{config, true}
	return true, nil
}

// end records that a call of Register or Unregister has returned, and whether the extension
// is registered now.
func (r *registration) end(x *attached, registered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[x].busy = false; !registered {
		delete(r.known, x)
	}
}

// unregister calls Unregister of the extensions, the last one first. An extension whose
// Unregister fails still counts as registered.
func (a *Agent) unregister(ctx context.Context, extensions []*attached) error {
	r := &a.registration
	var problems []error
	for _, x := range slices.Backward(extensions) {
		r.mu.Lock()
		k := r.known[x]
		if k == nil || k.busy {
			r.mu.Unlock()
			continue
		}
		k.busy = true
		r.mu.Unlock()
		err := safely(x.name, func() error { return x.Extension.(RegisterExtension).Unregister(ctx, k.config.clone()) }) //nolint:forcetypeassert // only those are registered
		r.end(x, err != nil)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// unregisterForGood unregisters a closed agent. It also retries removed extensions whose
// Unregister has failed before.
func (a *Agent) unregisterForGood(ctx context.Context) error {
	r := &a.registration
	all := slices.Clone(a.composed.Load().extensions)
	r.mu.Lock()
	r.over = true
	for x := range r.known {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	r.mu.Unlock()
	return a.unregister(ctx, all)
}

// spareExtensions makes sure that closing this agent does not close extensions that another
// agent will use. It reports false if Close has already closed them.
func (a *Agent) spareExtensions(others []Extension) bool {
	a.registration.mu.Lock()
	defer a.registration.mu.Unlock()
	if a.registration.closed {
		return false
	}
	a.registration.spare = others
	return true
}

// reclaimExtensions undoes spareExtensions, because the other agent could not be made. If
// this agent was closed meanwhile, reclaimExtensions closes the spared extensions.
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

// closeExtensions closes the extensions for which the function which reports true, the last
// one first.
func (a *Agent) closeExtensions(ctx context.Context, which func(Extension) bool) error {
	var problems []error
	for _, x := range slices.Backward(a.composed.Load().extensions) {
		if c, ok := x.Extension.(CloseExtension); ok && which(x.Extension) {
			problems = append(problems, safely(x.name, func() error { return c.Close(ctx) }))
		}
	}
	return errors.Join(problems...)
}

// among reports whether others contains the extension. It reports false for a value that
// cannot be compared.
func among(others []Extension, e Extension) bool {
	return reflect.ValueOf(e).Comparable() && slices.ContainsFunc(others, func(o Extension) bool {
		return reflect.TypeOf(o) == reflect.TypeOf(e) && o == e
	})
}

// extensionWatch is a running Watch method of an extension.
type extensionWatch struct {
	of   *attached
	end  context.CancelFunc // ends the stream after all events up to now
	cut  context.CancelFunc // ends the stream after the current event
	done chan struct{}
}

// watchExtensions starts the Watch methods of extensions. Their context ends when the agent
// is closed or the extension is removed. Before they end, they get the events that are
// waiting, unless the context of Close ends first.
func (a *Agent) watchExtensions(extensions []*attached) {
	for _, x := range extensions {
		w, ok := x.Extension.(WatchExtension)
		if !ok {
			continue
		}
		ctx, end := context.WithCancel(context.Background())
		patience, cut := context.WithCancel(context.Background())
		watch := &extensionWatch{x, end, cut, make(chan struct{})}
		a.mu.Lock()
		a.watching = append(a.watching, watch)
		a.mu.Unlock()
		events := a.watch(patience, ctx.Done(), nil)
		go func() { // runs until the agent is closed or the extension is removed
			defer a.endWatch(watch)
			if err := safely(x.name, func() error { w.Watch(ctx, events); return nil }); err != nil {
				a.opts.Logger.Warn("the Watch method of an extension panicked", "error", err)
			}
		}()
	}
}

// endWatch removes a watch that has ended from the agent's list.
func (a *Agent) endWatch(w *extensionWatch) {
	w.cut()
	a.mu.Lock()
	a.watching = slices.DeleteFunc(a.watching, func(o *extensionWatch) bool { return o == w })
	a.mu.Unlock()
	close(w.done)
}

// stopWatching waits until the Watch methods have seen all events and have returned. If
// ctx ends first, each method gets no events after its current event.
func (a *Agent) stopWatching(ctx context.Context) error {
	a.mu.Lock()
	watching := slices.Clone(a.watching)
	a.mu.Unlock()
	for _, w := range watching {
		w.end()
	}
	defer func() {
		for _, w := range watching {
			w.cut()
		}
	}()
	var problems []error
	for _, w := range watching {
		select {
		case <-w.done:
			continue
		default:
		}
		select {
		case <-w.done:
		case <-ctx.Done():
			problems = append(problems, fmt.Errorf("extension %q: its Watch method has not returned: %w", w.of.name, context.Cause(ctx)))
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

// drain waits for the running turns of an agent that begins no new turns.
func (a *Agent) drain(ctx context.Context) error {
	for _, s := range a.open() {
		select {
		case s.slot <- struct{}{}:
			<-s.slot
		case <-ctx.Done():
			return fmt.Errorf("session %q is still running a turn: %w", s.id, context.Cause(ctx))
		}
	}
	return nil
}

// takesTurns reports whether the agent may begin a turn. An agent that is being replaced
// may begin only child turns of its own running turns, because Replace waits for those.
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
