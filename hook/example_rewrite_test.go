package hook_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay/hook"
)

// docs:begin rewrite-phase

// reply is a new text for the message, or nothing.
type reply struct{ Text string }

func (r reply) Answer() *hook.Answer {
	if r.Text == "" {
		return nil
	}
	return &hook.Answer{Parts: []hook.Part{{Kind: "prompt", Needs: hook.CanRewritePrompt, Content: r.Text}}}
}

var onMessage = hook.Define(hook.Definition[string, reply]{
	Name:         "message",
	Kind:         hook.Collect,
	Capabilities: hook.CanRewritePrompt,
	Merge:        func(_ *hook.Merging, _, answer reply) reply { return answer },
	Rewrite:      func(_ string, answer reply) (string, error) { return answer.Text, nil },
})

// docs:end rewrite-phase

// Rewriters run first, one at a time, and each gets the result of the previous one. A
// subscription must declare that it rewrites: rewriting is never a default.
func Example_rewrite() {
	ctx := context.Background()
	runtime, err := hook.NewRuntime([]hook.AnyPhase{onMessage}, nil)
	check(err)
	// docs:begin rewrite
	rewrites := &hook.Options{Capabilities: hook.CanRewritePrompt}
	_, err = runtime.Install(
		onMessage.On("listen", func(_ context.Context, text string) (reply, error) {
			fmt.Println("listen:", text)
			return reply{}, nil
		}, nil),
		onMessage.On("polite", func(_ context.Context, text string) (reply, error) {
			return reply{text + ", please"}, nil
		}, rewrites),
		onMessage.On("calm", func(_ context.Context, text string) (reply, error) {
			return reply{strings.ToLower(text)}, nil
		}, rewrites),
	)
	check(err)

	turn := runtime.Snapshot()
	defer func() { _ = turn.Release(ctx) }()
	outcome, err := onMessage.Dispatch(ctx, turn, "DO IT NOW")
	check(err)
	fmt.Println("result:", outcome.Input, outcome.Rewriters)
	// docs:end rewrite

	// Output:
	// listen: do it now, please
	// result: do it now, please [calm polite]
}
