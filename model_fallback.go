package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Fallback makes one model from several. The agent uses the first of them. If the first
// model fails permanently, or still fails after the attempts of [Options].Retry, the next
// model answers for the rest of the turn. Each new or resumed turn starts with the first
// model again. Usage, price and name of a response are those of the model that answered.
// An error event with Retry set reports the change.
//
// The window is the smallest window of all models, so that a conversation fits each of
// them.
func Fallback(first Model, others ...Model) Model { //nolint:ireturn // a model is used through the interface
	f := &fallbackModel{}
	for _, m := range append([]Model{first}, others...) {
		if inner, ok := m.(*fallbackModel); ok {
			f.models = append(f.models, inner.models...)
		} else if m != nil {
			f.models = append(f.models, m)
		}
	}
	if len(f.models) == 1 {
		return f.models[0]
	}
	if len(f.models) == 0 {
		return nil // New returns an error for a nil model
	}
	return f
}

type fallbackModel struct{ models []Model }

var (
	_ InfoModel      = (*fallbackModel)(nil)
	_ ToolCheckModel = (*fallbackModel)(nil)
	_ ReachModel     = (*fallbackModel)(nil)
	_ SettingsModel  = (*fallbackModel)(nil)
)

// Stream tries the models in order until one begins to answer. An agent does not call this
// method: see turn.fallBack.
func (f *fallbackModel) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for i, m := range f.models {
			begun, failed := false, false
			for chunk, err := range m.Stream(ctx, req) {
				if err != nil && !begun && i < len(f.models)-1 && ctx.Err() == nil {
					failed = true
					break
				}
				begun = begun || chunk != (Chunk{})
				if !yield(chunk, err) {
					return
				}
			}
			if !failed {
				return
			}
		}
	}
}

// Info describes the first model, with the smallest Window and MaxOutput of all models.
func (f *fallbackModel) Info() ModelInfo {
	info := named(f.models[0]).info
	for _, m := range f.models[1:] {
		other := named(m).info
		info.Window, info.MaxOutput = smallest(info.Window, other.Window), smallest(info.MaxOutput, other.MaxOutput)
	}
	return info
}

// smallest returns the smaller number of tokens. 0 means unknown.
func smallest(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// CheckTools joins the errors of all models.
func (f *fallbackModel) CheckTools(tools []ToolDeclaration) error {
	var problems []error
	for _, m := range f.models {
		problems = append(problems, named(m).check(tools))
	}
	return errors.Join(problems...)
}

// CheckSettings joins the errors of all models.
func (f *fallbackModel) CheckSettings(req *Request) error {
	var problems []error
	for _, m := range f.models {
		problems = append(problems, named(m).checkSettings(req))
	}
	return errors.Join(problems...)
}

// Reach returns nil if at least one model is available, or if a model cannot check this.
func (f *fallbackModel) Reach(ctx context.Context) error {
	var problems []error
	for _, m := range f.models {
		r, ok := m.(ReachModel)
		if !ok {
			return nil
		}
		err := r.Reach(ctx)
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Stream sends the request to the model. If the model is a Fallback, it uses the first
// model.
func (n *namedModel) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	if f, ok := n.Model.(*fallbackModel); ok {
		return f.models[0].Stream(ctx, req)
	}
	return n.Model.Stream(ctx, req)
}

// fallBack switches to the next model if the turn's model failed. It reports false if there
// is no next model, if err is not a ModelError, or if the turn was cancelled.
func (t *turn) fallBack(err error) bool {
	next := t.model.next()
	failure, failed := errors.AsType[*ModelError](err)
	if next == nil || !failed || t.ctx.Err() != nil {
		return false
	}
	t.emit(Event{Kind: EventError, Text: fmt.Sprintf("%v: using %s instead", failure, next.info.Name), Retry: true})
	t.model, t.request.tooFull = next, false
	return true
}

// next returns the model to use if this one fails, or nil.
func (n *namedModel) next() *namedModel {
	if f, ok := n.Model.(*fallbackModel); ok {
		return named(Fallback(f.models[1], f.models[2:]...))
	}
	return nil
}
