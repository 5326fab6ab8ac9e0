package hook

import (
	"cmp"
	"slices"
	"time"
)

// Options are the settings of a subscription, such as its order and its limits. A nil
// *Options means the defaults.
type Options struct {
	// Name is shown to users. Defaults to the id.
	Name string
	// Description says what the subscription is for. Defaults to empty.
	Description string
	// Kind is the kind of the handler. Defaults to HandlerGo.
	Kind HandlerKind
	// Version is the handler's version. A job that was stored for one version is not run by
	// another version. Defaults to empty.
	Version string
	// Priority orders subscriptions that have no dependency on each other: the smallest
	// comes first. If priorities are equal, the smallest id comes first. Defaults to 0.
	Priority int
	// After lists the ids of subscriptions on the same phase that run before this one.
	// Defaults to none.
	After []string
	// Before lists the ids of subscriptions on the same phase that run after this one.
	// Defaults to none.
	Before []string
	// Execution says how the handler runs. Defaults to Blocking.
	Execution Execution
	// Concurrent lets a blocking handler run in parallel with other handlers of its level.
	// Defaults to false.
	Concurrent bool
	// Timeout limits a run. Deadline execution requires it. For a blocking handler, the
	// runtime cancels the context after the timeout, but still waits for the handler, and
	// does not use a late answer. Defaults to 1 minute for FireAndRecord, to 10 minutes for
	// Background, and to none otherwise.
	Timeout time.Duration
	// Failure says what happens when a run fails. Defaults to the phase's mode.
	Failure Failure
	// Match limits the subscription to some inputs. Defaults to all.
	Match Match
	// Visibility says who sees the runs. Defaults to VisibleInAudit.
	Visibility Visibility
	// Origin says where the subscription came from. Defaults to the host.
	Origin Origin
	// Capabilities are what answers may contribute. By default, answers may contribute
	// everything that both the phase and the origin's grants allow. Capabilities to
	// rewrite, to answer and to approve are not part of the default: name them. A
	// FireAndRecord or Background subscription may by default contribute only audit notes
	// and jobs.
	Capabilities Capability
	// Idempotent says that the handler may run twice for one input. Background work that
	// was interrupted then runs again. Defaults to false.
	Idempotent bool
	// Retry says when failed background work is retried. Defaults to never.
	Retry Retry
	// Effects says that a run changes something outside the process, although it calls no
	// webhook and no program that the phase waits for: it writes a file, or leaves a program
	// running. A backtest then asks the hook only if it allows effects, and never a hook
	// that leaves a program running. Defaults to false.
	Effects bool
	// Shadow runs the handler and records the run, but does not use the answer. Defaults to
	// false.
	Shadow bool
	// NoInherit keeps subagents from inheriting the subscription. Defaults to false.
	NoInherit bool
	// Disabled keeps the subscription in listings but not in plans. Defaults to false.
	Disabled bool
}

// Subscription binds a handler to a phase. It is an immutable value and does nothing until
// a runtime installs it.
type Subscription struct{ s *subscription }

type subscription struct {
	id      string
	phase   *phaseCore
	opts    Options
	handler handler
}

// On binds a handler to the phase. It returns no error: [Runtime.Install] reports mistakes
// in id and options.
func (p Phase[In, Out]) On(id string, handler Handler[In, Out], opts *Options) Subscription {
	if p.d == nil || handler == nil {
		return newSubscription(id, p.core(), nil, opts)
	}
	return newSubscription(id, p.core(), p.d.bind(handler), opts)
}

// newSubscription is On without type parameters.
func newSubscription(id string, phase *phaseCore, handler handler, opts *Options) Subscription {
	s := &subscription{id: id, phase: phase, handler: handler}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.After = slices.Clone(s.opts.After)
	s.opts.Before = slices.Clone(s.opts.Before)
	s.opts.Match = s.opts.Match.clone()
	if s.opts.Name == "" {
		s.opts.Name = id
	}
	if s.opts.Kind == "" {
		s.opts.Kind = HandlerGo
	}
	if s.opts.Failure == (Failure{}) {
		s.opts.Failure = s.phase.failure
	}
	if s.opts.Timeout == 0 {
		switch s.opts.Execution {
		case FireAndRecord:
			s.opts.Timeout = time.Minute
		case Background:
			s.opts.Timeout = 10 * time.Minute
		default:
		}
	}
	return Subscription{s}
}

// ID returns the subscription's id.
func (s Subscription) ID() string {
	if s.s == nil {
		return ""
	}
	return s.s.id
}

// Phase returns the subscription's phase.
func (s Subscription) Phase() AnyPhase {
	if s.s == nil {
		return nil
	}
	return s.s.phase.self
}

// Options returns a copy of the options, with the defaults filled in.
func (s Subscription) Options() Options {
	if s.s == nil {
		return Options{}
	}
	opts := s.s.opts
	opts.After, opts.Before = slices.Clone(opts.After), slices.Clone(opts.Before)
	opts.Match = opts.Match.clone()
	return opts
}

// Alone returns the subscription without its dependencies, so that it can be tried alone.
func (s Subscription) Alone() Subscription {
	if s.s == nil {
		return s
	}
	c := *s.s
	c.opts.After, c.opts.Before = nil, nil
	return Subscription{&c}
}

// Descriptor describes a handler's contract. hooktest compares it with a golden file, so
// that nobody changes the contract by mistake.
type Descriptor struct {
	ID           string      `json:"id"`
	Kind         HandlerKind `json:"kind"`
	Version      string      `json:"version,omitempty"`
	Phases       []string    `json:"phases"`
	Capabilities Capability  `json:"capabilities"`
}

// Descriptor returns the handler's contract. If a handler subscribes to several phases
// under one id, [Describe] joins the descriptors.
func (s Subscription) Descriptor() Descriptor {
	if s.s == nil {
		return Descriptor{}
	}
	return Descriptor{
		ID:           s.s.id,
		Kind:         s.s.opts.Kind,
		Version:      s.s.opts.Version,
		Phases:       []string{s.s.phase.name},
		Capabilities: s.s.declared() &^ NoCapability,
	}
}

// Describe joins the descriptors of subscriptions that have the same id, kind and version.
// It sorts the result by id, sorts the phases, and unites the capabilities.
func Describe(subs ...Subscription) []Descriptor {
	var joined []Descriptor
	for _, s := range subs {
		d := s.Descriptor()
		i := slices.IndexFunc(joined, func(o Descriptor) bool {
			return o.ID == d.ID && o.Kind == d.Kind && o.Version == d.Version
		})
		if i < 0 {
			joined = append(joined, d)
			continue
		}
		for _, phase := range d.Phases {
			if !slices.Contains(joined[i].Phases, phase) {
				joined[i].Phases = append(joined[i].Phases, phase)
				slices.Sort(joined[i].Phases)
			}
		}
		joined[i].Capabilities |= d.Capabilities
	}
	slices.SortFunc(joined, func(a, b Descriptor) int {
		return cmp.Or(compareBytes(a.ID, b.ID), compareBytes(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	return joined
}

// declared returns the capabilities in the options, or the phase's default.
func (s *subscription) declared() Capability {
	switch {
	case s.opts.Capabilities == 0 && s.opts.Execution.waits():
		return s.phase.caps &^ exceptional
	case s.opts.Capabilities == 0:
		return s.phase.caps & (CanAudit | CanSchedule)
	default:
		return s.opts.Capabilities
	}
}

func (s *subscription) rewrites() bool { return s.declared()&rewriting != 0 }

// overlaps reports whether the handler may run in parallel with others.
func (s *subscription) overlaps() bool {
	return !s.rewrites() && (s.opts.Execution == Deadline || s.opts.Concurrent)
}

func compareBytes(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}
