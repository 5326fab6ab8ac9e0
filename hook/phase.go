package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	"github.com/belay-run/belay/hook/codes"
)

// Output is the answer of a phase's handlers. Each gate has its own output type, so that an
// answer which the phase cannot use does not compile.
//
// The zero value of an output means "no opinion", and so does nil.
type Output interface {
	// Answer describes the output to the runtime, which checks, records and merges it. A
	// nil Answer means "no opinion". The method must not change the output.
	Answer() *Answer
}

// Handler is the code bound to a phase. It gets the phase's input and returns the phase's
// output. If it returns an error, the handler has failed, and the subscription's failure
// mode applies. The error's text is not recorded. But if a gate fails closed, that text is
// part of the denial's reason, so do not put secrets into it.
type Handler[In any, Out Output] func(ctx context.Context, in In) (Out, error)

// Definition describes a phase. Pass it to [Define].
type Definition[In any, Out Output] struct {
	// Name is the wire name, like "tool.pre".
	Name string
	// Kind says what handlers may do.
	Kind Kind
	// May says in a few words what a handler may do, for the documentation.
	May string
	// Fires says when the phase fires, for the documentation.
	Fires string
	// Failure is the failure mode of subscriptions that set none. Defaults to Closed for
	// gates and Open for everything else.
	Failure Failure
	// Capabilities are all capabilities that an answer at this phase can use.
	Capabilities Capability
	// Labels are the values that subscriptions can match on, by label name.
	Labels map[string]func(In) string
	// Scope returns the scope of an input. The returned Scope must not change later.
	// Defaults to the empty scope.
	Scope func(In) *Scope
	// Merge is the phase's merge rule. It adds an answer to the result of the earlier
	// answers, in plan order. At a gate, use [Merging.Wins] to let only a more severe
	// verdict replace the merged one. Required unless Kind is Observe.
	Merge func(m *Merging, merged, answer Out) Out
	// Rewrite applies an answer's rewrite to the input. The next handlers get the result.
	// Required if Capabilities has a rewriting capability.
	Rewrite func(in In, answer Out) (In, error)
	// Sound reports whether a rewritten input is valid. If it is not, handlers that do not
	// rewrite are not called: see [Outcome.Unsound]. Defaults to accepting every input.
	Sound func(In) bool
	// Closed returns the answer for a failure under [Closed]. A gate must have this
	// function, and the answer must deny. At a collect phase it is optional: without it, or
	// if it reports false, Dispatch returns a *FailureError.
	Closed func(f Problem) (Out, bool)
	// Verdict returns the decision and the reason of a gate's answer, without its other
	// contributions. The runtime uses it if an answer denies but its other contributions
	// cannot be used. Defaults to Closed, which does not keep the reason.
	Verdict func(answer Out) Out
	// Reference returns a reference to an input in the transcript, so that a background job
	// can find the input without a copy. Background subscriptions require it.
	Reference func(In) string
	// Decode decodes an input from its JSON form. Defaults to encoding/json.
	Decode func(scope Scope, data []byte) (In, error)
	// Overlap is the maximum number of handlers that run in parallel. Defaults to 16.
	Overlap int
}

// Phase is a named point at which handlers are called. It is a stateless value: declare it
// once as a package variable and share it between runtimes.
type Phase[In any, Out Output] struct {
	d *operations[In, Out]
}

// operations are the functions of a phase. They are function values and not methods of a
// generic type, because the compiler generates all methods of a generic type, and
// everything that they call, in every package that mentions the type. Many packages mention
// phases. Few packages call Define, which makes the operations.
type operations[In any, Out Output] struct {
	core     *phaseCore
	dispatch func(ctx context.Context, s *Snapshot, plan *phasePlan, in In) (Outcome[In, Out], error)
	explain  func(ctx context.Context, s *Snapshot, in In) (Explanation, error)
	decode   func(scope Scope, data []byte) (In, error)
	slow     func(plan *phasePlan, inputs []In) bool
}

type defined[In any, Out Output] struct {
	phaseCore
	Definition[In, Out]
	nilable bool
}

// AnyPhase is a [Phase] with any input and output types, for lists and tables.
type AnyPhase interface {
	Name() string
	Info() PhaseInfo
	// Types returns the Go types of input and output.
	Types() (in, out reflect.Type)
	core() *phaseCore
}

// PhaseInfo describes a phase: see [Definition].
type PhaseInfo struct {
	Name string
	Kind Kind
	// May and Fires are the texts of [Definition.May] and [Definition.Fires].
	May, Fires string
	// Failure is the failure mode of subscriptions that set none.
	Failure Failure
	// Capabilities are all capabilities that an answer at this phase can use.
	Capabilities Capability
	// Labels are the label names that subscriptions can match on, sorted.
	Labels []string
}

// phaseCore is the part of a phase without its type parameters.
type phaseCore struct {
	name    string
	may     string
	fires   string
	hash    uint64
	kind    Kind
	failure Failure
	caps    Capability
	labels  []string
	overlap int
	faults  func() []string
	self    AnyPhase // the phase

	// These are the operations that need the type parameters. Define sets them.
	canReference  bool
	compile       func(p *phasePlan) any
	checkFallback func(s *subscription, granted Capability) error
	perform       func(ctx context.Context, e *installed, input json.RawMessage, job Job, held any) (*Answer, error)
	zeroIn        func() any
}

// Define makes a phase from its definition. It returns no error, so that phases can be
// package variables. [NewRuntime] reports a faulty definition.
func Define[In any, Out Output](def Definition[In, Out]) Phase[In, Out] {
	if def.Failure == (Failure{}) {
		def.Failure = Open
		if def.Kind == Gate {
			def.Failure = Closed
		}
	}
	if def.Overlap == 0 {
		def.Overlap = 16
	}
	h := fnv.New64a()
	h.Write([]byte(def.Name))
	d := &defined[In, Out]{Definition: def, nilable: nilable[Out]()}
	d.phaseCore = phaseCore{
		name:         def.Name,
		may:          def.May,
		fires:        def.Fires,
		hash:         h.Sum64(),
		kind:         def.Kind,
		failure:      def.Failure,
		caps:         def.Capabilities,
		labels:       slices.Sorted(maps.Keys(def.Labels)),
		overlap:      def.Overlap,
		canReference: def.Reference != nil,
		zeroIn:       func() any { var in In; return in },
	}
	d.phaseCore.faults = d.faults
	d.phaseCore.compile = d.compilePlan
	d.phaseCore.checkFallback = d.fallbackProblem
	d.phaseCore.perform = d.performJob
	p := Phase[In, Out]{&operations[In, Out]{
		core: &d.phaseCore,
		dispatch: func(ctx context.Context, s *Snapshot, plan *phasePlan, in In) (Outcome[In, Out], error) {
			o := Outcome[In, Out]{Input: in}
			err := d.dispatch(ctx, s, plan, nil, &o)
			return o, err
		},
		explain: d.explain,
		decode:  d.decode,
		slow:    d.slow,
	}}
	d.phaseCore.self = p
	return p
}

// faults returns what is wrong with a definition.
func (def *defined[In, Out]) faults() []string {
	var faults []string
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	fault(!validID(def.Definition.Name), "name %q: use 1 to 128 characters of [A-Za-z0-9._:/-]", def.Definition.Name)
	_, known := kindNames[def.Definition.Kind]
	fault(!known, "kind: want Gate, Collect or Observe")
	fault(def.Merge == nil && def.Definition.Kind != Observe, "merge: the phase needs a merge rule")
	fault(def.Definition.Kind == Gate && def.Closed == nil, "closed: a gate needs a Closed function, which denies when a handler fails")
	fault(def.Definition.Capabilities&rewriting != 0 && def.Rewrite == nil, "rewrite: the capabilities %s need a Rewrite function", def.Definition.Capabilities&rewriting)
	fault(def.Definition.Failure.mode == fallback, "failure: a phase cannot default to a fallback")
	fault(def.Definition.Kind == Observe && def.Definition.Failure == Closed, "failure: an observe phase cannot fail closed")
	for name, get := range def.Labels {
		fault(get == nil, "label %q has no function", name)
	}
	if def.Definition.Kind == Gate && def.Closed != nil {
		fault(!def.deniesWhenClosed(), "closed: the answer of the Closed function must deny")
	}
	fault(def.Overlap < 1, "overlap %d: want at least 1", def.Overlap)
	return faults
}

// deniesWhenClosed reports whether Closed returns a denial.
func (def *defined[In, Out]) deniesWhenClosed() (denies bool) {
	defer func() {
		if recover() != nil {
			denies = false
		}
	}()
	out, ok := def.Closed(Problem{Phase: def.name, Subscription: "probe", Code: codes.Error, Err: errors.New("probe")})
	return ok && answerOf(def.nilable, out).Severity.stops()
}

// Name returns the wire name.
func (p Phase[In, Out]) Name() string { return p.core().name }

// Info returns the description of the phase.
func (p Phase[In, Out]) Info() PhaseInfo {
	c := p.core()
	return PhaseInfo{c.name, c.kind, c.may, c.fires, c.failure, c.caps, slices.Clone(c.labels)}
}

// Types returns the Go types of input and output.
func (p Phase[In, Out]) Types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[Out]()
}

// core returns the part without type parameters. For a zero Phase it returns an empty part
// that no runtime knows.
func (p Phase[In, Out]) core() *phaseCore {
	if p.d == nil {
		return undefinedPhase()
	}
	return p.d.core
}

func undefinedPhase() *phaseCore {
	return &phaseCore{self: Phase[int, Output]{}, faults: func() []string { return []string{"the phase was not made by hook.Define"} }}
}

// DecodeInput decodes an input from its JSON form, for tests and for recorded work. It uses
// Definition.Decode. The decoders of package belay return an error for an unknown key and
// accept a missing one.
func (p Phase[In, Out]) DecodeInput(scope Scope, data []byte) (In, error) {
	if p.d == nil {
		var none In
		return none, errors.New("decode input: the phase was not made by hook.Define")
	}
	in, err := p.d.decode(scope, data)
	if err != nil {
		return in, fmt.Errorf("%s input: %w", p.Name(), err)
	}
	return in, nil
}

func (def *defined[In, Out]) decode(scope Scope, data []byte) (In, error) {
	if def.Decode != nil {
		return def.Decode(scope, data)
	}
	var in In
	if err := json.Unmarshal(data, &in); err != nil {
		return in, fmt.Errorf("decode: %w", err)
	}
	return in, nil
}

// Active reports whether the phase has enabled subscriptions. If it has none, a caller need
// not build an input. A nil snapshot has no subscriptions.
func (p Phase[In, Out]) Active(s *Snapshot) bool {
	return s != nil && p.d != nil && s.gen.Load().find(p.d.core) != nil
}

func nilable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return true
	default:
		return false
	}
}
