package belay

import (
	"context"
	"iter"

	"github.com/belay-run/belay/internal/typeschema"
)

// WrapTool returns a tool that does something around the calls of another. The rest of the
// tool stays: its declaration, its traits and what it does when a call is abandoned. Run calls
// next to run the wrapped tool, with the call that it got or a changed copy.
func WrapTool(tool Tool, run func(ctx context.Context, call *Invocation, next func(context.Context, *Invocation) (Result, error)) (Result, error)) Tool { //nolint:ireturn // a tool is used through the interface
	return &wrappedTool{tool, run}
}

type wrappedTool struct {
	Tool
	run func(ctx context.Context, call *Invocation, next func(context.Context, *Invocation) (Result, error)) (Result, error)
}

var (
	_ TraitTool   = (*wrappedTool)(nil)
	_ ListingTool = (*wrappedTool)(nil)
	_ AbandonTool = (*wrappedTool)(nil)
)

// Call runs the function around the tool.
func (w *wrappedTool) Call(ctx context.Context, call *Invocation) (Result, error) {
	return w.run(ctx, call, w.Tool.Call)
}

// Traits are those of the tool.
func (w *wrappedTool) Traits() ToolTraits {
	if t, ok := w.Tool.(TraitTool); ok {
		return t.Traits()
	}
	return ToolTraits{}
}

// LeftOut is what the tool's list leaves out.
func (w *wrappedTool) LeftOut() string {
	if t, ok := w.Tool.(ListingTool); ok {
		return t.LeftOut()
	}
	return ""
}

// Abandon informs the tool.
func (w *wrappedTool) Abandon(ctx context.Context, call *Invocation) error {
	if t, ok := w.Tool.(AbandonTool); ok {
		return t.Abandon(ctx, call)
	}
	return nil
}

func (w *wrappedTool) inputType() *typeschema.Type { return inputTypeOf(w.Tool) }

// inputTypeOf returns the type of a typed tool's input, also if the tool is wrapped.
func inputTypeOf(t Tool) *typeschema.Type {
	if typed, ok := t.(interface{ inputType() *typeschema.Type }); ok {
		return typed.inputType()
	}
	return nil
}

// WrapModel returns a model that does something around the requests of another. The rest of the
// model stays: its name, price and window, and what it can check beforehand. Stream calls next
// to ask the wrapped model. Around a [Fallback] it wraps each of the models.
func WrapModel(model Model, stream func(ctx context.Context, req *Request, next func(context.Context, *Request) iter.Seq2[Chunk, error]) iter.Seq2[Chunk, error]) Model { //nolint:ireturn // a model is used through the interface
	if f, ok := model.(*fallbackModel); ok {
		each := &fallbackModel{}
		for _, m := range f.models {
			each.models = append(each.models, &wrappedModel{m, stream})
		}
		return each
	}
	return &wrappedModel{model, stream}
}

type wrappedModel struct {
	Model
	stream func(ctx context.Context, req *Request, next func(context.Context, *Request) iter.Seq2[Chunk, error]) iter.Seq2[Chunk, error]
}

var (
	_ InfoModel      = (*wrappedModel)(nil)
	_ ToolCheckModel = (*wrappedModel)(nil)
	_ ReachModel     = (*wrappedModel)(nil)
	_ SettingsModel  = (*wrappedModel)(nil)
)

// Stream runs the function around the model.
func (w *wrappedModel) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return w.stream(ctx, req, w.Model.Stream)
}

// Info is that of the model.
func (w *wrappedModel) Info() ModelInfo { return named(w.Model).info }

// CheckTools asks the model.
func (w *wrappedModel) CheckTools(tools []ToolDeclaration) error {
	if c, ok := w.Model.(ToolCheckModel); ok {
		return c.CheckTools(tools)
	}
	return nil
}

// Reach asks the model.
func (w *wrappedModel) Reach(ctx context.Context) error {
	if r, ok := w.Model.(ReachModel); ok {
		return r.Reach(ctx)
	}
	return nil
}

// CheckSettings asks the model.
func (w *wrappedModel) CheckSettings(req *Request) error { return named(w.Model).checkSettings(req) }
