package demo

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// maxFiles is a policy key of the demo's own: of all who set it, the smallest
// stands.
var maxFiles = belay.PolicyMin[int]("demo.max_files")

type pathInput struct {
	Path string `json:"path"`
}

// hooks are the subscriptions of the tour.
func hooks() []hook.Subscription {
	writes := hook.Match{Tools: []string{"write", "edit"}}
	return []hook.Subscription{
		belay.TurnPrePolicy.On("team-policy", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
			return belay.SetPolicy(maxFiles.Set(20)), nil
		}, nil),
		belay.TurnPrePolicy.On("friday-policy", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
			return belay.SetPolicy(maxFiles.Set(3)), nil
		}, nil),

		// These two wait for something slow, so they overlap.
		belay.TurnPrePromptContext.On("git-status", lookUp(20*time.Millisecond, "git", "branch main, 2 files changed"),
			&hook.Options{Concurrent: true}),
		belay.TurnPrePromptContext.On("open-issues", lookUp(30*time.Millisecond, "issues", "issue 7: tidy the changelog"),
			&hook.Options{Concurrent: true}),

		belay.TurnPrePromptCompile.On("house-style", func(_ context.Context, t belay.TurnSoFar) (belay.PromptSections, error) {
			limit, _ := maxFiles.Value(t.Policy())
			return belay.PromptSections{Sections: []belay.PromptSection{{
				ID: "style", Title: "House style", Body: fmt.Sprintf("Change at most %d files.", limit),
			}}}, nil
		}, nil),

		// Rewriters come first, so that every gate judges the final input.
		belay.ToolPre.On("clean-paths", cleanPath, &hook.Options{
			Match: writes, Capabilities: hook.CanRewriteInput,
		}),
		belay.ToolPre.On("no-prod", noProd, &hook.Options{Match: writes}),
		belay.ToolPre.On("virus-scan", scan, &hook.Options{
			Execution: hook.Deadline, Timeout: 40 * time.Millisecond,
			Failure: belay.ToolPre.Fallback(belay.Ask("the scanner did not answer in time")),
			After:   []string{"no-prod"}, Match: writes,
		}),
		belay.ToolPre.On("stricter-rule", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.Deny("a rule we are only trying out"), nil
		}, &hook.Options{Shadow: true}),

		belay.ToolDenied.On("count-denials", func(_ context.Context, d belay.DeniedCall) (belay.Note, error) {
			return belay.Note{Audit: []hook.Audit{{Code: "demo.denied", Message: "denied by " + d.By()}}}, nil
		}, nil),
		belay.ToolPost.On("redact-keys", redact, &hook.Options{
			Capabilities: hook.CanRewriteOutput, Failure: hook.Closed,
		}),
		belay.TurnPostTurn.On("learn", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			return belay.Note{Audit: []hook.Audit{{Code: "demo.learned"}}}, nil
		}, &hook.Options{Execution: hook.Background, Idempotent: true}),
	}
}

// lookUp answers with a fact after a while, unless the turn is cancelled.
func lookUp(d time.Duration, id, fact string) hook.Handler[belay.TurnSoFar, belay.PromptContext] {
	return func(ctx context.Context, _ belay.TurnSoFar) (belay.PromptContext, error) {
		select {
		case <-time.After(d):
			return belay.PromptContext{Entries: []belay.ContextEntry{{ID: id, Text: fact}}}, nil
		case <-ctx.Done():
			return belay.PromptContext{}, context.Cause(ctx)
		}
	}
}

func cleanPath(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in pathInput
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err
	}
	clean := path.Clean(in.Path)
	if clean == in.Path {
		return belay.Pass, nil
	}
	return belay.RewriteInput(pathInput{clean})
}

func noProd(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in pathInput
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if strings.HasPrefix(in.Path, "/srv/prod/") {
		return belay.Deny("production is off limits in this session"), nil
	}
	return belay.Pass, nil
}

// scan is a hook that hangs: it returns only when it is given up.
func scan(ctx context.Context, _ belay.ToolCall) (belay.ToolVerdict, error) {
	<-ctx.Done()
	return belay.Pass, context.Cause(ctx)
}

var keyPattern = regexp.MustCompile(`key-[a-z0-9]+`)

func redact(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
	clean := keyPattern.ReplaceAllString(r.Text(), "[REDACTED]")
	if clean == r.Text() {
		return belay.ToolReaction{}, nil
	}
	return belay.RewriteResult(clean), nil
}
