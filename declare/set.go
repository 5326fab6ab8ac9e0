package declare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/phasejson"
)

// Options are the options of [New]. A nil *Options is valid.
type Options struct {
	// Prefix is put in front of every id, with a slash between, and of those that
	// after and before name if the set has them. Defaults to none.
	Prefix string
	// Project is the directory that the agent works in: hooks are told it. Defaults to
	// the working directory.
	Project string
	// Environ is the host's environment, as KEY=value. Hooks get the part of it that
	// they may have. Defaults to that of the process.
	Environ []string
	// Secrets are values that must not leave through log, webhook or save_json, such as
	// the keys of providers. Those of fewer than 4 characters are not looked for.
	// Defaults to none but those that the files name.
	Secrets []string
	// Allowlist is where webhooks may be called: a host, with its port if that is not
	// the scheme's own; *.host for all hosts below; or an address, for all that begin
	// with it. Defaults to nowhere.
	Allowlist []string
	// Transport carries the calls of webhooks. Defaults to one that uses no proxy, connects
	// with http to this machine only, and refuses host names that lead to private addresses
	// when it connects.
	Transport http.RoundTripper
	// Trust is asked before a command or worker of a declaration runs or its webhook is
	// called, each time. If it returns an error, nothing runs: a gate denies, whatever its
	// failure mode, and says why; other hooks fail by their mode. The error's text is told
	// to the model, so it must quote no secrets. Defaults to trusting everything.
	Trust func(ctx context.Context, d *Declaration) error
	// Confine changes what is about to run, such as to the command line of a sandbox
	// that runs it. It is asked before each command, and before each start of a worker.
	// An error keeps it from running and fails the hook. Defaults to running programs as
	// they are.
	Confine func(ctx context.Context, d *Declaration, run *Execution) error
	// Logger gets what the action log writes, what workers print to standard error, and
	// what became of them. Defaults to discarding it.
	Logger *slog.Logger
	// Grace is how long a process group has between SIGTERM and SIGKILL. Defaults to 2
	// seconds.
	Grace time.Duration
	// Backoff is how long a worker that died is not started again; it doubles with each
	// death, up to 30 seconds, until a call succeeds. Defaults to 100 ms.
	Backoff time.Duration
}

// Execution is a program that is about to run.
type Execution struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env is the whole environment, as KEY=value.
	Env []string
	// Dir is the working directory.
	Dir string
}

// Set is declarations that can be installed, with the workers that they need. Close it
// when its subscriptions are drained.
type Set struct {
	opts    Options
	origin  hook.Origin
	env     *environ
	redact  *redactor
	client  *http.Client
	allowed []allowance
	subs    []hook.Subscription
	workers []*keeper

	closed  chan struct{} // closed by Close
	closing sync.Once
}

// New makes subscriptions of declarations, which are from origin. Nothing runs before
// they are installed; workers start with their first call, or by [Set.Start].
func New(declarations []*Declaration, origin hook.Origin, opts *Options) (*Set, error) {
	s := &Set{origin: origin, closed: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Project == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("declare: %w", err)
		}
		s.opts.Project = dir
	}
	if s.opts.Environ == nil {
		s.opts.Environ = os.Environ()
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	s.opts.Backoff = cmp.Or(s.opts.Backoff, firstBackoff)
	s.env = newEnviron(s.opts.Environ, s.opts.Project)
	s.redact = newRedactor(s.secrets(declarations))
	var err error
	if s.allowed, err = readAllowlist(s.opts.Allowlist); err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	s.client = newClient(s.opts.Transport)
	var problems []error
	codecs := make(map[string]*codec)
	for _, d := range declarations {
		sub, err := s.subscribe(d, declarations, codecs)
		if err != nil {
			problems = append(problems, &FaultError{d.File, d.Line, err.Error()})
			continue
		}
		s.subs = append(s.subs, sub)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

// secrets are the values that must not leave.
func (s *Set) secrets(declarations []*Declaration) []string {
	values := slices.Clone(s.opts.Secrets)
	for _, d := range declarations {
		names := slices.Clone(d.Secrets)
		if d.Webhook != nil && d.Webhook.Secret != "" {
			names = append(names, d.Webhook.Secret)
		}
		for _, name := range names {
			if value, ok := s.env.host[name]; ok {
				values = append(values, value)
			}
		}
	}
	return values
}

// Subscriptions are those of the set, in the order of the declarations.
func (s *Set) Subscriptions() []hook.Subscription { return slices.Clone(s.subs) }

// id is an id of the set as the runtime knows it.
func (s *Set) id(name string) string {
	if s.opts.Prefix == "" {
		return name
	}
	return s.opts.Prefix + "/" + name
}

func (s *Set) subscribe(d *Declaration, all []*Declaration, codecs map[string]*codec) (hook.Subscription, error) {
	wire := d.wire
	if wire == nil {
		var err error
		if wire, err = phasejson.New(d.Phase); err != nil {
			return hook.Subscription{}, err
		}
	}
	key := d.Phase + " " + d.Options.Execution.String()
	if codecs[key] == nil {
		c, err := newCodec(wire, d.Options.Execution)
		if err != nil {
			return hook.Subscription{}, err
		}
		codecs[key] = c
	}
	opts := d.Options
	opts.Timeout = cmp.Or(opts.Timeout, defaultTimeout)
	opts.Kind, opts.Origin = d.Kind, s.origin
	opts.Origin.File, opts.Origin.Line = d.File, d.Line
	prefixed := func(ids []string) []string {
		ids = slices.Clone(ids)
		for i, id := range ids {
			if slices.ContainsFunc(all, func(o *Declaration) bool { return o.ID == id && o.Phase == d.Phase }) {
				ids[i] = s.id(id)
			}
		}
		return ids
	}
	opts.After, opts.Before = prefixed(opts.After), prefixed(opts.Before)
	own := *codecs[key]
	own.id = s.id(d.ID)
	h := &handler{set: s, d: d, id: own.id, codec: &own, opts: &opts}
	var err error
	if h.ask, err = h.means(); err != nil {
		return hook.Subscription{}, err
	}
	return wire.On(h.id, h.handle, &opts), nil
}

// handler is a declared hook as the runtime calls it.
type handler struct {
	set   *Set
	d     *Declaration
	id    string
	codec *codec
	opts  *hook.Options
	ask   func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error)
}

// means is how the hook is asked.
func (h *handler) means() (func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error), error) {
	switch h.d.Kind {
	case hook.HandlerCommand:
		if len(h.d.Argv) == 0 {
			return nil, errors.New("the command is empty")
		}
		return h.command, nil
	case hook.HandlerWorker:
		if len(h.d.Argv) == 0 {
			return nil, errors.New("the worker is empty")
		}
		pool := h.set.pool(h)
		return func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) { return h.worker(ctx, pool, e) }, nil
	case hook.HandlerWebhook:
		return h.newWebhook()
	case hook.HandlerAction:
		return h.newAction()
	default:
		return nil, fmt.Errorf("it is declared as %q, which is none of command, worker, webhook and action", h.d.Kind)
	}
}

// ErrClosed is the error of hooks whose set was closed.
var ErrClosed = errors.New("declare: the hooks were unloaded")

// handle is called by the runtime.
func (h *handler) handle(ctx context.Context, call phasejson.Call) (json.RawMessage, error) {
	select {
	case <-h.set.closed:
		return nil, ErrClosed
	default:
	}
	if h.set.opts.Trust != nil && h.d.Kind != hook.HandlerAction {
		if err := h.set.opts.Trust(ctx, h.d); err != nil {
			return h.untrusted(err)
		}
	}
	return h.ask(ctx, &worker.Envelope{
		V: worker.Version, Phase: h.d.Phase, Session: call.Scope.Session, Turn: call.Scope.Turn, Step: call.Scope.Step, Agent: call.Scope.Agent,
		Cwd: h.set.opts.Project, Origin: worker.Origin{Kind: h.set.origin.Kind, Name: h.set.origin.Name}, Input: call.Input,
	})
}

// untrusted is what a hook says that may not run. A gate denies even if its failure is
// to be tolerated: else whoever may edit its file could open it. The gates that fail
// open by default do harm when they are closed, and fail by their mode.
func (h *handler) untrusted(err error) (json.RawMessage, error) {
	phase := h.codec.wire
	if phase.Info().Kind == hook.Gate && phase.Info().Failure == hook.Closed {
		return h.codec.block(err.Error())
	}
	return nil, &hook.SafeError{Code: codes.Error, Message: "it is not trusted and did not run", Err: err}
}

// WorkerError says that a worker did not start.
type WorkerError struct {
	// Hooks are those that name it.
	Hooks []*Declaration
	// Err says why.
	Err error
}

func (e *WorkerError) Error() string {
	return fmt.Sprintf("%s:%d: %v", e.Hooks[0].File, e.Hooks[0].Line, e.Err)
}

func (e *WorkerError) Unwrap() error { return e.Err }

// Start starts the workers of hooks that take part and greets them, so that a fault shows
// before the first call. It returns when all have answered; the error joins a [WorkerError]
// for each that did not. Those are started again with their next call.
func (s *Set) Start(ctx context.Context) error {
	errs := make([]error, len(s.workers))
	var starting sync.WaitGroup
	for i, pool := range s.workers {
		if !pool.wanted {
			continue
		}
		starting.Go(func() {
			if err := pool.warm(ctx); err != nil {
				errs[i] = &WorkerError{pool.hooks, err}
			}
		})
	}
	starting.Wait()
	return errors.Join(errs...)
}

// Close ends the workers and waits until they are gone: they see the end of their
// standard input, then SIGTERM, then SIGKILL. Hooks of the set fail from then on.
// Calling it again is harmless.
func (s *Set) Close() error {
	s.closing.Do(func() { close(s.closed) })
	var ending sync.WaitGroup
	for _, pool := range s.workers {
		ending.Go(pool.close)
	}
	ending.Wait()
	return nil
}
