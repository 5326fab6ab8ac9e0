package hook

import (
	"cmp"
	"slices"
	"time"
)

// Options are the settings of a subscription: its order, its limits, its match. A nil
// *Options means the defaults.
type Options struct {
	// Name is shown to users. Defaults to the id.
	Name string
	// Description says what the subscription is for. Defaults to empty.
	Description string
	// Kind is the kind of the handler. Defaults to HandlerGo.
	Kind HandlerKind
	// Version is the handler's version. A job recorded for one version is not run by
	// another. Defaults to empty.
	Version string
	// Priority orders subscriptions that no dependency orders: smaller first,
	// then by id. Defaults to 0.
	Priority int
	// After lists the ids on the same phase that come before this one.
	// Defaults to none.
	After []string
	// Before lists the ids on the same phase that come after this one.
	// Defaults to none.
	Before []string
	// Execution says how the handler runs. Defaults to Blocking.
	Execution Execution
	// Concurrent lets a blocking handler run in parallel with others of its level. Defaults
	// to false.
	Concurrent bool
	// Timeout limits a run. Deadline requires one. For a blocking handler the context is
	// cancelled after the timeout, the dispatch still waits, and a late answer is not used.
	// Defaults to none, to 1 minute for FireAndRecord and to 10 minutes for Background.
	Timeout time.Duration
	// Failure says what happens when a run fails. Defaults to the phase's mode.
	Failure Failure
	// Match limits the inputs. Defaults to all.
	Match Match
	// Visibility says who sees the runs. Defaults to VisibleInAudit.
	Visibility Visibility
	// Origin says where the subscription came from. Defaults to the host.
	Origin Origin
	// Capabilities are what answers may contribute. Defaults to what the phase allows and
	// the origin's grants cover, except rewriting, answering and approving, which must be
	// named.
	Capabilities Capability
	// Idempotent says that the handler may run twice for one input, so that interrupted
	// background work can run again. Defaults to false.
	Idempotent bool
	// Retry says when failed background work is retried. Defaults to never.
	Retry Retry
	// Shadow runs the handler and records what it would have done, but does not use its
	// answer. Defaults to false.
	Shadow bool
	// NoInherit keeps the subscription from applying in subagents. Defaults to
	// false.
	NoInherit bool
	// Disabled keeps the subscription in listings but out of every plan. Defaults to false.
	Disabled bool
}

// Subscription binds a handler to a phase. It is an immutable value; it does
// nothing until a runtime installs it.
type Subscription struct{ s *subscription }

type subscription struct {
	id      string
	phase   *phaseCore
	any     AnyPhase
	opts    Options
	handler any // Handler[In, Out] of the phase
	missing bool
}

// On binds a handler to the phase. [Runtime.Install] reports mistakes in id and options.
func (p Phase[In, Out]) On(id string, handler Handler[In, Out], opts *Options) Subscription {
	s := &subscription{id: id, phase: p.core(), any: p, handler: handler, missing: handler == nil}
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
	return s.s.any
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

// Alone returns the subscription without its dependencies, for trying it by itself.
func (s Subscription) Alone() Subscription {
	if s.s == nil {
		return s
	}
	c := *s.s
	c.opts.After, c.opts.Before = nil, nil
	return Subscription{&c}
}

// Descriptor describes a handler's contract. hooktest compares it with a golden file, so
// that a change is deliberate.
type Descriptor struct {
	ID           string      `json:"id"`
	Kind         HandlerKind `json:"kind"`
	Version      string      `json:"version,omitempty"`
	Phases       []string    `json:"phases"`
	Capabilities Capability  `json:"capabilities"`
}

// Descriptor returns the handler's contract. A handler that subscribes to several phases
// under one id has one descriptor: see [Describe].
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

// Describe joins the descriptors of subscriptions with the same id, sorted by id, with
// phases sorted and capabilities united.
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

// declared returns the requested capabilities: those named, or the phase's default.
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
