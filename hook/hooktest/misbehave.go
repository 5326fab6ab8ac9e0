package hooktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// Fails returns a handler that returns err.
func Fails[In any, Out hook.Output](err error) hook.Handler[In, Out] {
	return func(context.Context, In) (out Out, _ error) { return out, err }
}

// FailsSafely returns a handler that returns a [hook.SafeError], whose code and message are
// recorded.
func FailsSafely[In any, Out hook.Output](code codes.Code, message string) hook.Handler[In, Out] {
	return Fails[In, Out](&hook.SafeError{Code: code, Message: message})
}

// Contradicts returns a handler that returns an answer and an error. The runtime must use
// the error and ignore the answer.
func Contradicts[In any, Out hook.Output](out Out, err error) hook.Handler[In, Out] {
	return func(context.Context, In) (Out, error) { return out, err }
}

// Panics returns a handler that panics with value, which may be nil.
func Panics[In any, Out hook.Output](value any) hook.Handler[In, Out] {
	return func(context.Context, In) (Out, error) { panic(value) }
}

// Goexits returns a handler that ends its goroutine with runtime.Goexit, as
// testing.T.FailNow does. A blocking handler runs on the goroutine that dispatches, so
// [Try] dispatches on a goroutine of its own.
func Goexits[In any, Out hook.Output]() hook.Handler[In, Out] {
	return func(context.Context, In) (out Out, _ error) {
		runtime.Goexit()
		return out, nil
	}
}

// Hangs returns a handler that waits until its context is cancelled. It then returns the
// cause of the cancellation.
func Hangs[In any, Out hook.Output]() hook.Handler[In, Out] {
	return func(ctx context.Context, _ In) (out Out, _ error) {
		<-ctx.Done()
		return out, context.Cause(ctx)
	}
}

// IgnoresCancel returns a handler that ignores its context. The handler returns out only
// after release is called, which is too late. After release, every call of the handler
// returns at once. A second call of release does nothing.
func IgnoresCancel[In any, Out hook.Output](out Out) (handler hook.Handler[In, Out], release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	return func(context.Context, In) (Out, error) {
		<-ctx.Done()
		return out, nil
	}, cancel
}

// Overreaches returns a handler that answers with out. Subscribe it without the
// capabilities that out needs, for example with [hook.NoCapability].
func Overreaches[In any, Out hook.Output](out Out) hook.Handler[In, Out] {
	return func(context.Context, In) (Out, error) { return out, nil }
}

// NilOutput returns a handler that returns the zero value of its output, which means "no
// opinion". The zero value is nil if the output is a pointer, an interface, a map or
// similar.
func NilOutput[In any, Out hook.Output]() hook.Handler[In, Out] {
	return func(context.Context, In) (out Out, _ error) { return out, nil }
}

// Reenters returns a handler that uses its runtime during a dispatch. The handler installs
// a subscription, dispatches its own input again, and closes the lease twice. In the inner
// dispatch it has no opinion. It fails if one of these steps fails. Call bind with the
// runtime before the phase fires: see Options.Ready.
func Reenters[In any, Out hook.Output](phase hook.Phase[In, Out]) (handler hook.Handler[In, Out], bind func(*hook.Runtime)) {
	var bound atomic.Pointer[hook.Runtime]
	var count atomic.Int64
	return func(ctx context.Context, in In) (out Out, _ error) {
		if ctx.Value(reentered{}) != nil {
			return out, nil
		}
		rt := bound.Load()
		if rt == nil {
			return out, errors.New("hooktest: Reenters is not bound to its runtime")
		}
		id := fmt.Sprintf("hooktest/reentry-%d", count.Add(1))
		return out, reenter(context.WithValue(ctx, reentered{}, true), phase, rt, id, in)
	}, bound.Store
}

// reentered is the context key that marks a dispatch inside a dispatch.
type reentered struct{}

func reenter[In any, Out hook.Output](ctx context.Context, phase hook.Phase[In, Out], rt *hook.Runtime, id string, in In) error {
	lease, err := rt.Install(phase.On(id, NilOutput[In, Out](), nil))
	if err != nil {
		return err
	}
	snapshot := rt.Snapshot()
	_, err = phase.Dispatch(ctx, snapshot, in)
	return errors.Join(err, snapshot.Release(ctx), lease.Close(), lease.Close())
}

// Misbehaviour is a handler that misbehaves, and the expected result.
type Misbehaviour[In any, Out hook.Output] struct {
	// Name says what the handler does. Use it as the name of a subtest.
	Name string
	// Handler is the handler that misbehaves.
	Handler hook.Handler[In, Out]
	// Code is the expected code of the recorded run. It is empty if the runtime accepts the
	// behaviour.
	Code codes.Code
	// Capabilities are the capabilities that the subscription must declare. Zero means the
	// default of hook.Options.
	Capabilities hook.Capability
	// Deadline says that the handler returns only after its timeout, so the subscription
	// needs a timeout. If Abandoned is true too, it also needs hook.Deadline execution.
	Deadline bool
	// Abandoned says that the handler does not return after its timeout, but only after a
	// call of Release.
	Abandoned bool
	// Bind gives the handler its runtime before the phase fires. It is never nil.
	Bind func(*hook.Runtime)
	// Release makes a handler that ignores its context return. It is never nil.
	Release func()
}

// State returns the expected state of the recorded run.
func (m Misbehaviour[In, Out]) State() hook.State {
	switch m.Code {
	case "":
		return hook.Completed
	case codes.Timeout:
		return hook.TimedOut
	default:
		return hook.Failed
	}
}

// Misbehaviours returns a handler for every kind of misbehaviour that the kit knows, so
// that a test can loop over them at every phase. Each call makes new handlers.
//
// answer is an answer of the phase that contributes something. It is returned by the
// handlers that exceed their capabilities, answer too late, or answer and fail. If answer
// contributes nothing, the result has no handler that exceeds its capabilities.
func Misbehaviours[In any, Out hook.Output](phase hook.Phase[In, Out], answer Out) []Misbehaviour[In, Out] {
	late, release := IgnoresCancel[In](answer)
	again, bind := Reenters(phase)
	onPurpose := errors.New("failed on purpose")
	all := []Misbehaviour[In, Out]{
		{Name: "returns an error", Handler: Fails[In, Out](onPurpose), Code: codes.Error},
		{Name: "returns context.Canceled without a cancellation", Handler: Fails[In, Out](context.Canceled), Code: codes.Error},
		{
			Name: "returns an error with its own code", Code: codes.ExecutableMissing,
			Handler: FailsSafely[In, Out](codes.ExecutableMissing, "missing on purpose"),
		},
		{Name: "answers and fails", Handler: Contradicts[In](answer, onPurpose), Code: codes.Error},
		{Name: "panics", Handler: Panics[In, Out]("panicked on purpose"), Code: codes.Panic},
		{Name: "panics with an error", Handler: Panics[In, Out](onPurpose), Code: codes.Panic},
		{Name: "panics with nil", Handler: Panics[In, Out](nil), Code: codes.Panic},
		{Name: "calls runtime.Goexit", Handler: Goexits[In, Out](), Code: codes.Goexit},
		{Name: "hangs until it is cancelled", Handler: Hangs[In, Out](), Code: codes.Timeout, Deadline: true},
		{
			Name: "ignores its cancellation and answers too late", Handler: late,
			Code: codes.Timeout, Deadline: true, Abandoned: true, Release: release,
		},
		{Name: "installs, closes and dispatches again", Handler: again, Bind: bind},
	}
	var zero Out
	if isNil(zero) {
		all = append(all, Misbehaviour[In, Out]{Name: "answers nil", Handler: NilOutput[In, Out]()})
	}
	if said := answerOf(answer); len(said.Parts)+len(said.Audit)+len(said.Jobs) > 0 {
		all = append(all, Misbehaviour[In, Out]{
			Name: "answers beyond its capabilities", Handler: Overreaches[In](answer),
			Code: codes.CapabilityMissing, Capabilities: hook.NoCapability,
		})
	}
	for i := range all {
		if all[i].Bind == nil {
			all[i].Bind = func(*hook.Runtime) {}
		}
		if all[i].Release == nil {
			all[i].Release = func() {}
		}
	}
	return all
}
