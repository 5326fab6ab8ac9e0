package main

import (
	"context"
	"regexp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// docs:begin redact

// Redact removes text that matches its patterns from the results of tools, before the
// model, the transcript and other hooks see them.
type Redact struct{ Patterns []*regexp.Regexp }

var _ belay.HookExtension = Redact{}

// Name returns the name for errors.
func (Redact) Name() string { return "redact" }

// Hooks returns a rewriter. Rewriters run before all others, and a result that cannot be
// redacted is withheld.
func (r Redact) Hooks() []hook.Subscription {
	return []hook.Subscription{belay.ToolPost.On("redact", r.redact, &hook.Options{
		Capabilities: hook.CanRewriteOutput, // rewriting must be declared
		Failure:      hook.Closed,
	})}
}

func (r Redact) redact(_ context.Context, result belay.ToolResult) (belay.ToolReaction, error) {
	clean := result.Text()
	for _, pattern := range r.Patterns {
		clean = pattern.ReplaceAllLiteralString(clean, "[REDACTED]")
	}
	if clean == result.Text() {
		return belay.ToolReaction{}, nil // no opinion
	}
	return belay.RewriteResult(clean), nil
}

// docs:end redact
