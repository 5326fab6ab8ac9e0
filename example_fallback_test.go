package belay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin fallback

// fallback asks the first model. If that fails before it has said anything, it asks the second one.
type fallback struct{ first, second belay.InfoModel }

var _ belay.InfoModel = fallback{}

func (f fallback) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		said := false
		for chunk, err := range f.first.Stream(ctx, req) {
			if err != nil && !said && ctx.Err() == nil && worthAnother(err) {
				f.ask(ctx, req, yield)
				return
			}
			said = said || chunk.Text != "" || chunk.Thinking != "" || chunk.Response != nil
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// ask asks the second model, and states in the response which model it was and what it cost.
func (f fallback) ask(ctx context.Context, req *belay.Request, yield func(belay.Chunk, error) bool) {
	info := f.second.Info()
	for chunk, err := range f.second.Stream(ctx, req) {
		if r := chunk.Response; r != nil {
			if r.Model == "" {
				r.Model = info.Name
			}
			if r.Usage.Cost == 0 {
				r.Usage.Cost = info.Price.Of(r.Usage)
			}
		}
		if !yield(chunk, err) {
			return
		}
	}
}

// worthAnother reports whether another model may succeed where this one failed.
func worthAnother(err error) bool {
	failure, ok := errors.AsType[*belay.ModelError](err)
	if !ok {
		return false
	}
	switch failure.Kind {
	case belay.ModelRateLimited, belay.ModelOverloaded, belay.ModelServer, belay.ModelNetwork, belay.ModelAuth:
		return true
	default: // a request that is invalid or too long stays so
		return false
	}
}

// Info describes the first model, with the smaller window of the two: a conversation must fit both.
func (f fallback) Info() belay.ModelInfo {
	info := f.first.Info()
	if w := f.second.Info().Window; w > 0 && (info.Window == 0 || w < info.Window) {
		info.Window = w
	}
	return info
}

// docs:end fallback

// A model that wraps two others falls back from one to the other.
func ExampleModel_fallback() {
	first := scripted.New([]scripted.Step{
		{Fault: &scripted.Fault{Kind: belay.ModelOverloaded, Status: 529}},
		{Text: "From the first."},
	}, &scripted.Options{Name: "scripted/first"})
	second := scripted.New([]scripted.Step{
		{Text: "From the second."},
	}, &scripted.Options{Name: "scripted/second"})

	// docs:begin fallback-run
	agent, err := belay.New(fallback{first, second}, nil)
	if err != nil {
		panic(err)
	}
	session := agent.Session("demo")
	for range 2 {
		turn, err := session.Turn(context.Background(), "Who answers?")
		if err != nil {
			panic(err)
		}
		fmt.Println(turn.Text)
	}
	// docs:end fallback-run

	for message, err := range session.Messages(context.Background()) {
		check(err)
		if message.Kind == belay.KindAssistant {
			fmt.Println(message.Model)
		}
	}

	// Output:
	// From the second.
	// From the first.
	// scripted/second
	// scripted/first
}
