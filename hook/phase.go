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
//
// The best input is a pointer, or a struct whose only field is a pointer: a dispatch then
// allocates nothing for the input. Any other input costs one allocation for each dispatch.
type Phase[In any, Out Output] struct {
	d *operations[In, Out]
}

// operations are the functions of a phase. They are function values and not methods of a
// generic type, because the compiler generates all methods of a generic type, and
// everything that they call, in every package that mentions the type. Many packages mention
// phases. Few packages call Define, which makes the operations.
type operations[In any, Out Output] struct {
	core     *phaseCore
	hash     uint64 // of the name; a copy, because Active runs often
	bind     func(handle Handler[In, Out]) handler
	dispatch func(ctx context.Context, s *Snapshot, plan *phasePlan, in In) (Outcome[In, Out], error)
	decode   func(scope Scope, data []byte) (In, error)
	slow     func(plan *phasePlan, inputs []In) bool
}

// handler is a [Handler] without type parameters. If the handler has no opinion, the output
// is nil.
type handler func(ctx context.Context, in any) (Output, error)

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

// phaseCore is a phase without its type parameters. Its functions are those of the
// [Definition]. They take and return inputs and outputs as interfaces.
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
	self    AnyPhase // the phase

	undefined bool // the phase was not made by Define
	decodes   bool // the definition has a Decode function
	label     map[string]func(in any) string

	// A nil output is the zero value of the output's type. A function is nil if the
	// definition does not have it.
	scope     func(in any) *Scope
	merge     func(m *Merging, merged, answer Output) Output
	rewrite   func(in any, answer Output) (any, error)
	sound     func(in any) bool
	closed    func(f Problem) (Output, bool)
	verdict   func(answer Output) Output
	reference func(in any) string

	zeroIn func() any
	// takes reports whether an output has the type of the phase's outputs.
	takes func(out Output) bool
	// orZero returns the output, or the zero value for nil.
	orZero func(out Output) any
	// input returns held if it is an input of the phase. Otherwise it decodes data.
	input func(held any, scope Scope, data []byte) (any, error)
}

// Define makes a phase from its definition. It returns no error, so that phases can be
// package variables. [NewRuntime] reports a faulty definition.
func Define[In any, Out Output](def Definition[In, Out]) Phase[In, Out] {
	nilable := nilable[Out]()
	core := &phaseCore{
		name:    def.Name,
		may:     def.May,
		fires:   def.Fires,
		kind:    def.Kind,
		failure: def.Failure,
		caps:    def.Capabilities,
		labels:  slices.Sorted(maps.Keys(def.Labels)),
		overlap: def.Overlap,
		decodes: def.Decode != nil,
		label:   make(map[string]func(any) string, len(def.Labels)),
		zeroIn:  func() any { var in In; return in },
		takes:   func(out Output) bool { _, ok := out.(Out); return ok },
		orZero:  func(out Output) any { return as[Out](out) },
	}
	core.complete()
	erase(core, &def, nilable)
	decode := def.Decode
	if decode == nil {
		decode = func(_ Scope, data []byte) (in In, err error) {
			if err := json.Unmarshal(data, &in); err != nil {
				return in, fmt.Errorf("decode: %w", err)
			}
			return in, nil
		}
	}
	core.input = func(held any, scope Scope, data []byte) (any, error) {
		if _, ok := held.(In); ok {
			return held, nil
		}
		return decode(scope, data)
	}
	p := Phase[In, Out]{&operations[In, Out]{
		core: core,
		hash: core.hash,
		bind: func(handle Handler[In, Out]) handler {
			if nilable {
				return func(ctx context.Context, in any) (Output, error) {
					out, err := handle(ctx, as[In](in))
					if err != nil || nilInside(out) || out.Answer() == nil {
						return nil, err
					}
					return out, nil
				}
			}
			return func(ctx context.Context, in any) (Output, error) {
				out, err := handle(ctx, as[In](in))
				if err != nil || out.Answer() == nil {
					return nil, err
				}
				return out, nil
			}
		},
		dispatch: func(ctx context.Context, s *Snapshot, plan *phasePlan, in In) (Outcome[In, Out], error) {
			o := outcome{input: in}
			err := core.dispatch(ctx, s, plan, nil, &o)
			return Outcome[In, Out]{as[In](o.input), as[Out](o.output), o.by, o.rewriters, o.unsound, o.diagnostics}, err
		},
		decode: decode,
		slow: func(plan *phasePlan, inputs []In) bool {
			for _, in := range inputs {
				if plan.slowFor(in) {
					return true
				}
			}
			return false
		},
	}}
	core.self = p
	return p
}

// erase gives a phase the functions of its definition, without their type parameters.
func erase[In any, Out Output](core *phaseCore, def *Definition[In, Out], nilable bool) {
	for name, get := range def.Labels {
		if get != nil {
			core.label[name] = func(in any) string { return get(as[In](in)) }
		}
	}
	if def.Scope != nil {
		core.scope = func(in any) *Scope { return def.Scope(as[In](in)) }
	}
	if def.Merge != nil {
		core.merge = func(m *Merging, merged, answer Output) Output {
			return def.Merge(m, as[Out](merged), as[Out](answer))
		}
	}
	if def.Rewrite != nil {
		core.rewrite = func(in any, answer Output) (any, error) { return def.Rewrite(as[In](in), as[Out](answer)) }
	}
	if def.Sound != nil {
		core.sound = func(in any) bool { return def.Sound(as[In](in)) }
	}
	if def.Closed != nil {
		core.closed = func(f Problem) (Output, bool) {
			out, ok := def.Closed(f)
			return opinion(nilable, out), ok
		}
	}
	if def.Verdict != nil {
		core.verdict = func(answer Output) Output { return opinion(nilable, def.Verdict(as[Out](answer))) }
	}
	if def.Reference != nil {
		core.reference = func(in any) string { return def.Reference(as[In](in)) }
	}
}

// complete fills in the defaults of a definition.
func (def *phaseCore) complete() {
	if def.failure == (Failure{}) {
		def.failure = Open
		if def.kind == Gate {
			def.failure = Closed
		}
	}
	if def.overlap == 0 {
		def.overlap = 16
	}
	h := fnv.New64a()
	h.Write([]byte(def.name))
	def.hash = h.Sum64()
}

// as returns the value as a T, or the zero value for nil.
func as[T any](value any) T {
	t, _ := value.(T)
	return t
}

// opinion returns an output without its type, or nil if the output is nil.
func opinion[Out Output](nilable bool, out Out) Output {
	if isNil(nilable, out) {
		return nil
	}
	return out
}

func isNil[Out any](nilable bool, out Out) bool { return nilable && nilInside(out) }

// nilInside reports whether an output is nil, or an interface with a nil pointer.
func nilInside(out any) bool {
	v := reflect.ValueOf(out)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	default: // an interface can hold a value that is not a pointer
		return false
	}
}

// faults returns what is wrong with a definition.
func (def *phaseCore) faults() []string {
	if def.undefined {
		return []string{"the phase was not made by hook.Define"}
	}
	var faults []string
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	fault(!validID(def.name), "name %q: use 1 to 128 characters of [A-Za-z0-9._:/-]", def.name)
	_, known := kindNames[def.kind]
	fault(!known, "kind: want Gate, Collect or Observe")
	fault(def.merge == nil && def.kind != Observe, "merge: the phase needs a merge rule")
	fault(def.kind == Gate && def.closed == nil, "closed: a gate needs a Closed function, which denies when a handler fails")
	fault(def.caps&rewriting != 0 && def.rewrite == nil, "rewrite: the capabilities %s need a Rewrite function", def.caps&rewriting)
	fault(def.failure.mode == fallback, "failure: a phase cannot default to a fallback")
	fault(def.kind == Observe && def.failure == Closed, "failure: an observe phase cannot fail closed")
	for _, name := range def.labels {
		fault(def.label[name] == nil, "label %q has no function", name)
	}
	if def.kind == Gate && def.closed != nil {
		fault(!def.deniesWhenClosed(), "closed: the answer of the Closed function must deny")
	}
	fault(def.overlap < 1, "overlap %d: want at least 1", def.overlap)
	return faults
}

// deniesWhenClosed reports whether Closed returns a denial.
func (def *phaseCore) deniesWhenClosed() (denies bool) {
	defer func() {
		if recover() != nil {
			denies = false
		}
	}()
	out, ok := def.closed(Problem{Phase: def.name, Subscription: "probe", Code: codes.Error, Err: errors.New("probe")})
	return ok && answerOf(out).Severity.stops()
}

// Name returns the wire name.
func (p Phase[In, Out]) Name() string { return p.core().name }

// Info returns the description of the phase.
func (p Phase[In, Out]) Info() PhaseInfo { return p.core().info() }

func (def *phaseCore) info() PhaseInfo {
	return PhaseInfo{def.name, def.kind, def.may, def.fires, def.failure, def.caps, slices.Clone(def.labels)}
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
	return &phaseCore{self: Phase[int, Output]{}, undefined: true}
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

// Active reports whether the phase has enabled subscriptions. If it has none, a caller need
// not build an input. A nil snapshot has no subscriptions.
func (p Phase[In, Out]) Active(s *Snapshot) bool {
	if s == nil || p.d == nil {
		return false
	}
	plan := s.gen.Load().at(p.d.hash)
	return plan != nil && plan.core == p.d.core
}

func nilable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return true
	default:
		return false
	}
}
