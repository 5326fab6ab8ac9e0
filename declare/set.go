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
	// Prefix is put in front of every id of the set, with a slash between, also
	// where after and before name them. Defaults to none.
	Prefix string
	// Project is the directory that the agent works in. Hooks get it in the envelope.
	// Defaults to the working directory.
	Project string
	// Environ is the host's environment, as KEY=value. Hooks get only the safe part
	// of it. Defaults to that of the process.
	Environ []string
	// Secrets are values that log, webhook and save_json must not reveal, such as API
	// keys. Values of fewer than 4 characters are ignored. Defaults to the secrets that
	// the files name.
	Secrets []string
	// Allowlist lists where webhooks may be called: a host, with its port if that is
	// not the scheme's default; *.host for all subdomains; or a URL, for all URLs
	// that begin with it. Defaults to nowhere.
	Allowlist []string
	// Transport sends the calls of webhooks. Defaults to one that uses no proxy, connects
	// with http to this machine only, and does not connect to host names that resolve to
	// private addresses.
	Transport http.RoundTripper
	// Trust is called each time before a command or worker of a declaration runs or its
	// webhook is called. If it returns an error, nothing runs: a gate denies with that
	// error, whatever its failure mode; other hooks fail by their mode. The model sees the
	// error, so it must not contain secrets. Defaults to trusting everything.
	Trust func(ctx context.Context, d *Declaration) error
	// Confine changes the program before it runs, for example into the command line of a
	// sandbox. It is called before each command, and before each start of a worker. If
	// it returns an error, the program does not run and the hook fails. Defaults to
	// running programs as they are.
	Confine func(ctx context.Context, d *Declaration, run *Execution) error
	// Logger gets the lines of the action log, the standard error of workers, and the
	// starts and ends of workers. Defaults to discarding them.
	Logger *slog.Logger
	// Grace is how long a process group has between SIGTERM and SIGKILL. Defaults to 2
	// seconds.
	Grace time.Duration
	// Backoff is the delay before a worker that died is started again. It doubles with
	// each death, up to 30 seconds, until a call succeeds. Defaults to 100 ms.
	Backoff time.Duration
}

// Execution is a program before it runs.
type Execution struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env is the whole environment, as KEY=value.
	Env []string
	// Dir is the working directory.
	Dir string
}

// Set holds declarations that can be installed, and their workers. Close it after its
// subscriptions are drained.
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

// New makes subscriptions of declarations from the given origin. Nothing runs before
// they are installed; workers start with their first call, or by [Set.Start].
func New(declarations []*Declaration, origin hook.Origin, opts *Options) (*Set, error) {
	s, err := newSet(declarations, origin, opts)
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
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

// newSet makes a set without subscriptions. The declarations name secrets.
func newSet(declarations []*Declaration, origin hook.Origin, opts *Options) (*Set, error) {
	s := &Set{origin: origin, closed: make(chan struct{})}
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

// secrets returns the values that must not be revealed.
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

// id returns the id that the runtime uses.
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

// handler is the handler of a declared hook.
type handler struct {
	set   *Set
	d     *Declaration
	id    string
	codec *codec
	opts  *hook.Options
	ask   func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error)
}

// means runs the hook by its kind.
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
		return nil, fmt.Errorf("unknown kind %q: use command, worker, webhook or action", h.d.Kind)
	}
}

// ErrClosed is the error of hooks whose set was closed.
var ErrClosed = errors.New("declare: the hooks were unloaded")

// handle runs the hook. The runtime calls it.
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

// untrusted returns the answer of a hook that must not run. A gate denies even if it
// fails open; otherwise anyone who can edit its file could open the gate. Gates that
// fail open by default would do harm when closed, so they fail by their mode.
func (h *handler) untrusted(err error) (json.RawMessage, error) {
	phase := h.codec.wire
	if phase.Info().Kind == hook.Gate && phase.Info().Failure == hook.Closed {
		return h.codec.block(err.Error())
	}
	return nil, &hook.SafeError{Code: codes.Error, Message: "the hook is not trusted and did not run", Err: err}
}

// WorkerError is the error of a worker that did not start.
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

// Start starts the workers of enabled hooks and does the handshake, so that a problem shows
// before the first call. It returns when all have answered. The error joins a [WorkerError]
// for each that did not; those are started again with their next call.
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

// Close stops the workers and waits until they have ended: first it closes their
// standard input, then it sends SIGTERM, then SIGKILL. After that, hooks of the
// set fail. Calling it again is harmless.
func (s *Set) Close() error {
	s.closing.Do(func() { close(s.closed) })
	var ending sync.WaitGroup
	for _, pool := range s.workers {
		ending.Go(pool.close)
	}
	ending.Wait()
	return nil
}
