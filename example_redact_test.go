package belay_test

import (
	"context"
	"fmt"
	"regexp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// docs:begin redact

// Redact keeps keys from the model.
var Redact = belay.ToolPost.On("redact", redact, &hook.Options{
	Capabilities: hook.CanRewriteOutput, // rewriting has to be named
	Failure:      hook.Closed,           // if it fails, the result is withheld
})

var secretKey = regexp.MustCompile(`\bkey-[a-z0-9]+`)

func redact(_ context.Context, result belay.ToolResult) (belay.ToolReaction, error) {
	clean := secretKey.ReplaceAllString(result.Text(), "[REDACTED]")
	if clean == result.Text() {
		return belay.ToolReaction{}, nil // no opinion
	}
	return belay.RewriteResult(clean), nil
}

// docs:end redact

// Hooks that rewrite run first. The other hooks see the rewritten text.
func Example_redact() {
	runtime := must(hook.NewRuntime(belay.Phases(), nil))
	must(runtime.Install(Redact))

	result := must(belay.ToolPost.DecodeInput(hook.Scope{Session: "demo"},
		[]byte(`{"id": "1", "tool": "read", "input": {"path": "env"}, "text": "token = key-4f1a9c"}`)))
	outcome := must(belay.ToolPost.Dispatch(context.Background(), runtime.Snapshot(), result))

	fmt.Println(outcome.Input.Text())
	fmt.Println("rewritten by", outcome.Rewriters)
	// Output:
	// token = [REDACTED]
	// rewritten by [redact]
}
