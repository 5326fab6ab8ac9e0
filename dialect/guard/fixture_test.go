package guard_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/sqlite"
)

// project is the directory of the project in the events. It does not exist.
const project = "/srv/shop"

// floorFunc is a floor.
type floorFunc func(call belay.ToolCall) belay.Authorization

func (f floorFunc) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	return f(call), nil
}

// passes is a floor that lets everything pass.
var passes = floorFunc(func(belay.ToolCall) belay.Authorization { return belay.Authorization{} })

// always is a floor with one decision.
func always(d belay.ToolDecision, reason string) floorFunc {
	return func(belay.ToolCall) belay.Authorization {
		return belay.Authorization{Decision: d, Reason: reason, By: "zone 4"}
	}
}

// guarded is an engine with its store.
type guarded struct {
	*guard.Engine

	store engineStore
}

type engineStore interface {
	belay.ManageStore
	belay.JournalStore
}

// newEngine returns an engine with a store in memory. Under the race detector, a file for each
// test takes minutes.
func newEngine(t *testing.T, floor belay.Authorizer, hooks ...hook.Subscription) *guarded {
	t.Helper()
	return engineWith(t, memstore.New(nil), floor, hooks...)
}

// newFile returns a file with a store without sessions. Its tables were made once, because
// that is slow.
var newFile = filetest.Copies("belay.db", func(path string) error {
	store, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return store.Close()
})

// openEngine returns an engine with a store in a file, as several processes use it.
func openEngine(t *testing.T, file string, floor belay.Authorizer) *guarded {
	t.Helper()
	store, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return engineWith(t, store, floor)
}

func engineWith(t *testing.T, store engineStore, floor belay.Authorizer, hooks ...hook.Subscription) *guarded {
	t.Helper()
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Journal: store.Journal(), Queue: store.Queue()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Install(hooks...); err != nil {
		t.Fatal(err)
	}
	e, err := guard.New(guard.Options{Project: project, Hooks: runtime, Floor: floor, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &guarded{e, store}
}

// answer gives an event to the engine.
func (g *guarded) answer(t *testing.T, agent dialect.Vendor, event, stdin string) guard.Output {
	t.Helper()
	return guard.Answer(t.Context(), g.Engine, guard.Request{Agent: agent, Event: event, Stdin: []byte(stdin), Dir: project})
}

// seen is a hook of tool.pre that stores the calls that it sees.
func seen(into *[]string) hook.Subscription {
	return belay.ToolPre.On("seen", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		*into = append(*into, call.Tool()+" "+string(call.Input()))
		return belay.Pass, nil
	}, nil)
}

// rewrites is a hook of tool.pre that replaces the input.
func rewrites(input string) hook.Subscription {
	return belay.ToolPre.On("rewrites", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.ToolVerdict{Input: json.RawMessage(input)}, nil
	}, &hook.Options{Capabilities: hook.CanRewriteInput})
}

// verdict is a hook of tool.pre with one answer.
func verdict(v belay.ToolVerdict) hook.Subscription {
	return belay.ToolPre.On("verdict", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return v, nil }, nil)
}

// reaction is a hook of tool.post with one answer.
func reaction(r belay.ToolReaction) hook.Subscription {
	var caps hook.Capability
	if r.Result != nil {
		caps = hook.CanRewriteOutput | hook.CanAddContext
	}
	return belay.ToolPost.On("reaction", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) { return r, nil }, &hook.Options{Capabilities: caps})
}

func prompt(v belay.PromptVerdict, caps hook.Capability) hook.Subscription {
	return belay.UserPromptSubmit.On("prompt", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) { return v, nil }, &hook.Options{Capabilities: caps})
}

func stop(v belay.StopVerdict) hook.Subscription {
	return belay.TurnStop.On("stop", func(context.Context, belay.StopAttempt) (belay.StopVerdict, error) { return v, nil }, nil)
}

func start(a belay.Aside) hook.Subscription {
	return belay.SessionStart.On("start", func(context.Context, belay.SessionOpened) (belay.Aside, error) { return a, nil }, nil)
}
