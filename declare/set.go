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
	"github.com/belay-run/belay/internal/tracecontext"
)

// Options are the settings of [New]. A nil *Options is valid.
type Options struct {
	// Prefix is added before every id of the set, followed by a slash. In the lists after
	// and before, the ids of hooks of the set get the prefix too. Defaults to none.
	Prefix string
	// Project is the directory in which the agent works. Hooks get it in the envelope.
	// Defaults to the working directory.
	Project string
	// Environ is the environment, as KEY=value, from which hooks get variables. Hooks get
	// only harmless variables and those that they declare. Defaults to the environment of
	// the process.
	Environ []string
	// Secrets are values that log, webhook and save_json must not reveal, such as API
	// keys. Values with fewer than 4 characters are ignored. The secrets that the files
	// name are always added.
	Secrets []string
	// Allowlist lists where webhooks may be called. An entry is a host, with the port if
	// it is not the default port; *.host for all subdomains of a host; or a URL, for all
	// URLs that begin with it. Defaults to none.
	Allowlist []string
	// Transport sends the calls of webhooks. The default transport uses no proxy, uses
	// http only to this machine, and does not connect to host names that resolve to
	// private addresses.
	Transport http.RoundTripper
	// Trust is called each time before a command, a worker or a webhook of a declaration
	// is used. If it returns an error, the hook does not run. A gate that fails closed by
	// default then denies with that error, even if its file says failure: open. Other
	// hooks fail according to their failure mode. The model sees the error, so it must
	// not contain secrets. By default, everything is trusted.
	Trust func(ctx context.Context, d *Declaration) error
	// Confine changes a program before it runs, for example into the command line of a
	// sandbox. It is called before each command, and before each start of a worker. If it
	// returns an error, the program does not run and the hook fails. By default, programs
	// run unchanged.
	Confine func(ctx context.Context, d *Declaration, run *Execution) error
	// Speak sets the Protocol of a hook whose file has the key dialect, and its condition
	// in Options.Match. It gets a copy of the declaration. Without it, such a hook is a
	// mistake.
	Speak func(d *Declaration) error
	// Logger gets the lines of the action log, the standard error of workers, and
	// messages when workers start and end. Defaults to no logging.
	Logger *slog.Logger
	// Grace is the time between SIGTERM and SIGKILL when Belay stops a process group.
	// Defaults to 2 seconds.
	Grace time.Duration
	// Backoff is the pause before Belay restarts a worker that has died. The pause
	// doubles with each death, up to 30 seconds, until a call succeeds. Defaults to 100
	// milliseconds.
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
	// Note says what the sandbox does not let the program do, and how to change that. If the
	// program fails and its output looks as if the sandbox was the cause, the error has it.
	Note string
}

// Set holds subscriptions that were made from declarations, and runs their workers. Close
// it after its subscriptions are drained.
type Set struct {
	opts    Options
	origin  hook.Origin
	env     *environ
	redact  *redactor
	client  *http.Client
	allowed []allowance
	subs    []hook.Subscription
	workers []*keeper
	// running has an element for each detached command that runs.
	running chan struct{}
	leaving sync.Once

	closed  chan struct{} // closed by Close
	closing sync.Once
}

// New makes subscriptions from declarations. Nothing runs before you install them. A worker
// starts with its first call, or when you call [Set.Start].
func New(declarations []*Declaration, origin hook.Origin, opts *Options) (*Set, error) {
	s, err := newSet(declarations, origin, opts)
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	var problems []error
	codecs := make(map[string]*codec)
	for _, d := range declarations {
		d, err := s.spoken(d)
		if err != nil {
			problems = append(problems, &FaultError{d.File, d.Line, err.Error()})
			continue
		}
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

// spoken returns a declaration whose protocol is known.
func (s *Set) spoken(d *Declaration) (*Declaration, error) {
	if d.Dialect == nil || d.Protocol != nil {
		return d, nil
	}
	if s.opts.Speak == nil {
		return d, fmt.Errorf("dialect: this program does not know the hooks of %s", d.Dialect.Agent.Title())
	}
	if err := d.waits(); err != nil {
		return d, err
	}
	own := *d
	return &own, s.opts.Speak(&own)
}

// newSet makes a set without subscriptions. The declarations are needed for their
// secrets.
func newSet(declarations []*Declaration, origin hook.Origin, opts *Options) (*Set, error) {
	s := &Set{origin: origin, running: make(chan struct{}, mostDetached), closed: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Project == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
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
		return nil, err
	}
	s.client = newClient(s.opts.Transport)
	return s, nil
}

// secrets returns the values that must not be revealed: those of Options and of
// declarations.
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

// Subscriptions returns the subscriptions of the set, in the order of the
// declarations.
func (s *Set) Subscriptions() []hook.Subscription { return slices.Clone(s.subs) }

// id returns the id of a hook with the prefix.
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
	if d.Protocol != nil { // translated enforces the timeout itself, so that a denial before the timeout counts
		opts.Timeout += lateAnswer
	}
	opts.Kind, opts.Origin = d.Kind, s.origin
	opts.Origin.File, opts.Origin.Line = d.File, d.Line
	opts.Effects = d.Detached || d.Kind == hook.HandlerAction && d.Action != nil && !d.Action.answers()
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

// handler runs a declared hook.
type handler struct {
	set   *Set
	d     *Declaration
	id    string
	codec *codec
	opts  *hook.Options
	ask   func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error)
}

// means returns the function that runs the hook, by the hook's kind.
func (h *handler) means() (func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error), error) {
	switch h.d.Kind {
	case hook.HandlerCommand:
		if len(h.d.Argv) == 0 {
			return nil, errors.New("the command is empty")
		}
		switch {
		case h.d.Protocol != nil && h.d.Detached:
			return h.detached, nil
		case h.d.Protocol != nil:
			return h.translated, nil
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
		return nil, fmt.Errorf("unknown kind %q: use command, worker, webhook or action", h.d.Kind)
	}
}

// ErrClosed means that the set of the hook was closed.
var ErrClosed = errors.New("declare: the hook cannot run, because its hooks were unloaded")

// handle runs the hook. It is what the runtime calls.
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
		Traceparent: tracecontext.Of(ctx),
	})
}

// untrusted returns the answer of a hook that must not run. A gate then denies, even if
// its file says failure: open. Otherwise anyone who can edit the file could open the
// gate. Phases that fail open by default are an exception, because a denial there would
// do harm: the hook fails according to its failure mode.
func (h *handler) untrusted(err error) (json.RawMessage, error) {
	phase := h.codec.wire
	if phase.Info().Kind == hook.Gate && phase.Info().Failure == hook.Closed && !h.d.Detached {
		return h.codec.block(err.Error())
	}
	return nil, &hook.SafeError{Code: codes.Error, Message: "the hook is not trusted and did not run", Err: err}
}

// WorkerError means that a worker did not start.
type WorkerError struct {
	// Hooks are the hooks that use the worker.
	Hooks []*Declaration
	// Err is the reason.
	Err error
}

func (e *WorkerError) Error() string {
	return fmt.Sprintf("%s:%d: %v", e.Hooks[0].File, e.Hooks[0].Line, e.Err)
}

func (e *WorkerError) Unwrap() error { return e.Err }

// Start starts the workers of all enabled hooks and does the handshake, so that problems
// show before the first call. It returns when all workers have answered or failed. The
// error joins one [WorkerError] for each worker that failed. Such a worker is started
// again with its next call.
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

// Close stops all workers and waits until they have ended. It first closes their standard
// input, then sends SIGTERM, then SIGKILL. It stops detached commands that are still running
// after 5 seconds. After Close, hooks of the set fail. You can call Close more than once.
func (s *Set) Close() error {
	s.closing.Do(func() { close(s.closed) })
	var ending sync.WaitGroup
	ending.Go(func() { s.leaving.Do(s.leave) })
	for _, pool := range s.workers {
		ending.Go(pool.close)
	}
	ending.Wait()
	return nil
}
