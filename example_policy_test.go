package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// docs:begin policy

// MaxFiles is how many files a turn may change. If several hooks set it, the smallest value
// is used.
var MaxFiles = policy.Min[int]("team.max_files")

var teamPolicy = belay.TurnPrePolicy.On("team", atMost(20), nil)

var fridayPolicy = belay.TurnPrePolicy.On("friday", atMost(3), nil)

func atMost(files int) hook.Handler[belay.TurnBegun, belay.TurnPolicy] {
	return func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
		return belay.SetPolicy(MaxFiles.Set(files)), nil
	}
}

// A later phase of the turn reads what was merged.
var houseRules = belay.TurnPrePromptCompile.On("house-rules",
	func(_ context.Context, turn belay.TurnSoFar) (belay.PromptSections, error) {
		files, set := MaxFiles.Value(turn.Policy())
		if !set {
			return belay.PromptSections{}, nil
		}
		return belay.PromptSections{Sections: []belay.PromptSection{
			{ID: "rules", Title: "House rules", Body: fmt.Sprintf("Change at most %d files.", files)},
		}}, nil
	}, nil)

// docs:end policy

// Several independent hooks can set the same setting.
func Example_policy() {
	runtime := must(hook.NewRuntime(belay.Phases(), nil))
	must(runtime.Install(teamPolicy, fridayPolicy, houseRules))

	begun := must(belay.TurnPrePolicy.DecodeInput(hook.Scope{Session: "demo"}, []byte(`{"text": "tidy the changelog"}`)))
	outcome := must(belay.TurnPrePolicy.Dispatch(context.Background(), runtime.Snapshot(), begun))

	files, set := MaxFiles.Value(outcome.Output.Policy)
	fmt.Println(files, set)

	so := must(belay.TurnPrePromptCompile.DecodeInput(hook.Scope{Session: "demo"}, []byte(`{"text": "tidy", "policy": {"team.max_files": 3}}`)))
	sections := must(belay.TurnPrePromptCompile.Dispatch(context.Background(), runtime.Snapshot(), so))
	fmt.Println(sections.Output.Sections[0].Body)
	// Output:
	// 3 true
	// Change at most 3 files.
}
