package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// computed returns a step with a Compute function.
func computed(compute func(context.Context, *belay.Request) (scripted.Step, error)) scripted.Step {
	return scripted.Step{Compute: compute}
}

func TestComputeSeesTheRequest(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{computed(func(_ context.Context, req *belay.Request) (scripted.Step, error) {
		return scripted.Step{Text: fmt.Sprintf("%d messages", len(req.Messages)), Calls: []scripted.Call{{Tool: "read"}}}, nil
	})}, &scripted.Options{Repeat: true, Pace: scripted.Pace{Chunk: 5}})
	for i, id := range []string{"call_1_1", "call_2_1"} {
		h := answer(t, model, ask(user("1234"), user("1234")))
		if got := textOf(h.response); got != "2 messages" {
			t.Errorf("the model says %q, want what was computed", got)
		}
		if got := h.response.Parts[1].Call.ID; got != id {
			t.Errorf("id = %q in request %d, want %q", got, i+1, id)
		}
		if h.chunks[0].Text != "2 mes" {
			t.Errorf("the first chunk is %q, want the model's pace to count", h.chunks[0].Text)
		}
		if got, want := h.response.Usage, (belay.Usage{In: 2, Out: 4}); got != want {
			t.Errorf("usage = %+v, want %+v", got, want)
		}
	}
}

func TestComputeMayAskTheModel(t *testing.T) {
	t.Parallel()
	var model *scripted.Model
	model = scripted.New([]scripted.Step{computed(func(context.Context, *belay.Request) (scripted.Step, error) {
		return scripted.Step{Text: fmt.Sprint(len(model.Requests()), model.Left())}, nil
	})}, nil)
	if got := textOf(answer(t, model, ask()).response); got != "1 0" {
		t.Errorf("requests and steps left = %s, want 1 0", got)
	}
}

func TestComputeReplacesTheStep(t *testing.T) {
	t.Parallel()
	step := computed(func(context.Context, *belay.Request) (scripted.Step, error) { return scripted.Step{Text: "new"}, nil })
	step.Text, step.Usage, step.Fault = "old", belay.Usage{In: 99}, &scripted.Fault{}
	got := answer(t, scripted.New([]scripted.Step{step}, nil), ask(user("1234"))).response
	if want := (belay.Usage{In: 1, Out: 1}); textOf(got) != "new" || got.Usage != want {
		t.Errorf("the model says %q for %+v, want only what was computed, for %+v", textOf(got), got.Usage, want)
	}
}

func TestComputeAgain(t *testing.T) {
	t.Parallel()
	inner := computed(func(context.Context, *belay.Request) (scripted.Step, error) { return scripted.Step{Text: "inner"}, nil })
	outer := computed(func(context.Context, *belay.Request) (scripted.Step, error) { return inner, nil })
	if got := textOf(answer(t, scripted.New([]scripted.Step{outer}, nil), ask()).response); got != "inner" {
		t.Errorf("the model says %q, want the step that was computed last", got)
	}
}

func TestComputeFails(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd request")
	for _, test := range []struct {
		rule string
		step scripted.Step
		kind belay.ModelErrorKind
		want string
	}{
		{"an error is an invalid request", computed(func(context.Context, *belay.Request) (scripted.Step, error) {
			return scripted.Step{}, odd
		}), belay.ModelInvalid, "step 1: compute: odd request"},
		{"a model error stays what it is", computed(func(context.Context, *belay.Request) (scripted.Step, error) {
			return scripted.Step{}, &belay.ModelError{Kind: belay.ModelOverloaded}
		}), belay.ModelOverloaded, "overloaded"},
		{"a computed step can expect", computed(func(context.Context, *belay.Request) (scripted.Step, error) {
			return scripted.Step{Expect: &scripted.Expect{User: "x"}}, nil
		}), belay.ModelInvalid, "step 1: the request is not as expected"},
		{"what the computing step expects counts first", scripted.Step{
			Expect:  &scripted.Expect{User: "x"},
			Compute: func(context.Context, *belay.Request) (scripted.Step, error) { panic("not to be called") },
		}, belay.ModelInvalid, "not as expected"},
		{"a computed step can fail", computed(func(context.Context, *belay.Request) (scripted.Step, error) {
			return scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelNetwork}}, nil
		}), belay.ModelNetwork, "network"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			fails(t, scripted.New([]scripted.Step{test.step}, nil), ask(user("hi")), test.kind, test.want)
		})
	}
}

func TestComputeIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	model := scripted.New([]scripted.Step{computed(func(ctx context.Context, _ *belay.Request) (scripted.Step, error) {
		cancel()
		<-ctx.Done()
		return scripted.Step{}, errors.New("gave up")
	})}, nil)
	h := listen(ctx, model, ask())
	if _, ok := errors.AsType[*belay.ModelError](h.err); ok || !errors.Is(h.err, context.Canceled) {
		t.Errorf("error = %v, want the context's", h.err)
	}
}
