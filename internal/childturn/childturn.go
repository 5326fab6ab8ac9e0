// Package childturn has what a context says about the turn of a child.
//
// Package subagent runs the turn of a child without a stream. The child's events then go
// directly to the parent's stream. A stream needs a goroutine, and
// two switches of goroutines for each event: a third of the time of a child whose model
// answers at once.
package childturn

import "context"

type key struct{}

// Direct returns a context for Session.Turn of a child. Use it only inside the function
// that Controls.Child calls. That function must then yield only the event turn_end.
func Direct(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// IsDirect reports whether the context comes from Direct.
func IsDirect(ctx context.Context) bool { direct, _ := ctx.Value(key{}).(bool); return direct }

// Streamed undoes Direct, for the children of the child.
func Streamed(ctx context.Context) context.Context {
	if !IsDirect(ctx) {
		return ctx
	}
	return context.WithValue(ctx, key{}, false)
}

type runKey struct{}

// Run is the run of a child.
type Run struct {
	// Name is the subagent's name, and ID the id of its run.
	Name, ID string
	// Session is the session of the main agent.
	Session string
}

// In returns a context for the turn of a child.
func In(ctx context.Context, r Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// Of returns the run to which a context belongs. It returns the zero value for the main
// agent.
func Of(ctx context.Context) Run { r, _ := ctx.Value(runKey{}).(Run); return r }
