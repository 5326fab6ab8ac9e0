package belay

import (
	"context"
	"iter"

	"github.com/belay-run/belay/internal/typeschema"
)

// WrapTool returns a tool that calls run instead of the given tool. run calls next to run
// the given tool, with the same call or a changed copy. Everything else stays the same: the
// declaration, the traits and the handling of abandoned calls.
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

// Call calls the function with the wrapped tool's Call as next.
func (w *wrappedTool) Call(ctx context.Context, call *Invocation) (Result, error) {
	return w.run(ctx, call, w.Tool.Call)
}

// Traits returns the traits of the wrapped tool.
func (w *wrappedTool) Traits() ToolTraits {
	if t, ok := w.Tool.(TraitTool); ok {
		return t.Traits()
	}
	return ToolTraits{}
}

// LeftOut returns the LeftOut text of the wrapped tool.
func (w *wrappedTool) LeftOut() string {
	if t, ok := w.Tool.(ListingTool); ok {
		return t.LeftOut()
	}
	return ""
}

// Abandon calls Abandon of the wrapped tool.
func (w *wrappedTool) Abandon(ctx context.Context, call *Invocation) error {
	if t, ok := w.Tool.(AbandonTool); ok {
		return t.Abandon(ctx, call)
	}
	return nil
}

func (w *wrappedTool) inputType() *typeschema.Type { return inputTypeOf(w.Tool) }

// inputTypeOf returns the input type of a tool made with NewTool, even if the tool is
// wrapped. It returns nil for other tools.
func inputTypeOf(t Tool) *typeschema.Type {
	if typed, ok := t.(interface{ inputType() *typeschema.Type }); ok {
		return typed.inputType()
	}
	return nil
}

// WrapModel returns a model that calls stream instead of the given model. stream calls next
// to send the request to the given model. Everything else stays the same: name, price,
// window and checks. If the model is a [Fallback], WrapModel wraps each of its models.
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

// Stream calls the function with the wrapped model's Stream as next.
func (w *wrappedModel) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return w.stream(ctx, req, w.Model.Stream)
}

// Info returns the info of the wrapped model.
func (w *wrappedModel) Info() ModelInfo { return named(w.Model).info }

// CheckTools calls CheckTools of the wrapped model.
func (w *wrappedModel) CheckTools(tools []ToolDeclaration) error {
	if c, ok := w.Model.(ToolCheckModel); ok {
		return c.CheckTools(tools)
	}
	return nil
}

// Reach calls Reach of the wrapped model.
func (w *wrappedModel) Reach(ctx context.Context) error {
	if r, ok := w.Model.(ReachModel); ok {
		return r.Reach(ctx)
	}
	return nil
}

// CheckSettings lets the wrapped model check the request.
func (w *wrappedModel) CheckSettings(req *Request) error { return named(w.Model).checkSettings(req) }
