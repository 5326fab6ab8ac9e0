package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/policy"
)

// maxFiles is a policy setting of the demo. The smallest value wins.
var maxFiles = policy.Min[int]("demo.max_files")

// scanTime is the timeout of the hook virus-scan.
const scanTime = 100 * time.Millisecond

// hooks returns the hooks of the tour.
func hooks(root *os.Root) []hook.Subscription {
	files := hook.Match{Tools: []string{"read", "write"}}
	writes := hook.Match{Tools: []string{"write"}}
	return []hook.Subscription{
		belay.TurnPrePolicy.On("team-policy", limitFiles(20), nil),
		belay.TurnPrePolicy.On("friday-policy", limitFiles(3), nil),

		// These two hooks wait for something slow, so they run at the same time.
		belay.TurnPrePromptContext.On("git-status", lookUp(40*time.Millisecond, "git", "branch main, 2 files changed"),
			&hook.Options{Concurrent: true}),
		belay.TurnPrePromptContext.On("open-issues", lookUp(60*time.Millisecond, "issues", "issue 7: the changelog is untidy"),
			&hook.Options{Concurrent: true}),

		belay.TurnPrePromptCompile.On("house-rules", houseRules, nil),

		// Rewriters run first, so that every gate checks the final input.
		belay.ToolPre.On("clean-paths", cleanPath, &hook.Options{Match: files, Capabilities: hook.CanRewriteInput}),
		belay.ToolPre.On("stay-inside", stayInside, &hook.Options{Match: files}),
		belay.ToolPre.On("virus-scan", newScanner(), &hook.Options{
			Execution: hook.Deadline, Timeout: scanTime,
			Failure: belay.ToolPre.Fallback(belay.Ask("the scanner did not answer in time")),
			After:   []string{"stay-inside"}, Match: writes,
		}),
		belay.ToolPre.On("stricter-rule", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.Deny("a rule we are only trying out"), nil
		}, &hook.Options{Shadow: true, Match: writes}),

		belay.ToolDenied.On("count-denials", func(_ context.Context, d belay.DeniedCall) (belay.Note, error) {
			return belay.Note{Audit: []hook.Audit{{Code: "demo.denied", Message: "denied by " + d.By()}}}, nil
		}, nil),
		belay.ToolPost.On("redact-keys", redact, &hook.Options{
			Match: hook.Match{Tools: []string{"read", "search"}}, Capabilities: hook.CanRewriteOutput, Failure: hook.Closed,
		}),
		belay.ToolPost.On("house-style", houseStyle, &hook.Options{Match: writes}),
		belay.TurnStop.On("definition-of-done", definitionOfDone(root), nil),
		belay.TurnPostTurn.On("learn", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			return belay.Note{Audit: []hook.Audit{{Code: "demo.learned"}}}, nil
		}, &hook.Options{Execution: hook.Background, Idempotent: true}),
	}
}

func limitFiles(most int) hook.Handler[belay.TurnBegun, belay.TurnPolicy] {
	return func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
		return belay.SetPolicy(maxFiles.Set(most)), nil
	}
}

// lookUp returns a fact after a delay.
func lookUp(d time.Duration, id, fact string) hook.Handler[belay.TurnSoFar, belay.PromptContext] {
	return func(ctx context.Context, _ belay.TurnSoFar) (belay.PromptContext, error) {
		return belay.PromptContext{Entries: []belay.ContextEntry{{ID: id, Text: fact}}}, pause(ctx, d)
	}
}

// houseRules adds the merged value of maxFiles to the prompt.
func houseRules(_ context.Context, t belay.TurnSoFar) (belay.PromptSections, error) {
	limit, _ := maxFiles.Value(t.Policy())
	return belay.PromptSections{Sections: []belay.PromptSection{{
		ID: "rules", Title: "House rules", Body: fmt.Sprintf("Change at most %d files.", limit),
	}}}, nil
}

func cleanPath(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	in := make(map[string]any)
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err
	}
	given, _ := in["path"].(string)
	clean := path.Clean(given)
	if clean == given {
		return belay.Pass, nil
	}
	in["path"] = clean
	return belay.RewriteInput(in)
}

func stayInside(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in pathInput
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if !fs.ValidPath(in.Path) {
		return belay.Deny(in.Path + " is outside the project"), nil
	}
	return belay.Pass, nil
}

// newScanner returns a hook that hangs when it is called for the first time. That call
// returns only when the runtime abandons it.
func newScanner() hook.Handler[belay.ToolCall, belay.ToolVerdict] {
	var works atomic.Bool
	return func(ctx context.Context, _ belay.ToolCall) (belay.ToolVerdict, error) {
		if works.Swap(true) {
			return belay.Pass, nil
		}
		<-ctx.Done()
		return belay.Pass, context.Cause(ctx)
	}
}

var keyPattern = lazyregexp.New(`key-[a-z0-9]+`)

func redact(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
	clean := keyPattern.ReplaceAllString(r.Text(), "[REDACTED]")
	if clean == r.Text() {
		return belay.ToolReaction{}, nil
	}
	return belay.RewriteResult(clean), nil
}

var datedVersion = lazyregexp.New(`(?m)^# \S+ \(\d{4}-\d\d-\d\d\)$`)

// houseStyle tells the model if a written changelog has no version with a date.
func houseStyle(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
	var in writeInput
	if err := json.Unmarshal(r.Input(), &in); err != nil {
		return belay.ToolReaction{}, fmt.Errorf("what was written: %w", err)
	}
	if in.Path != "CHANGELOG.md" || datedVersion.MatchString(in.Text) {
		return belay.ToolReaction{}, nil
	}
	return belay.ToolReaction{Aside: belay.Aside{Context: belay.Tell("House style wants a date behind each version.")}}, nil
}

// definitionOfDone lets a turn end only if the file with the news mentions the release.
func definitionOfDone(root *os.Root) hook.Handler[belay.StopAttempt, belay.StopVerdict] {
	return func(context.Context, belay.StopAttempt) (belay.StopVerdict, error) {
		text, err := root.ReadFile(news)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return belay.StopVerdict{}, fmt.Errorf("the news: %w", err)
		}
		if !strings.Contains(string(text), "1.2") {
			return belay.Continue(news + " does not tell of release 1.2"), nil
		}
		return belay.StopVerdict{}, nil
	}
}
