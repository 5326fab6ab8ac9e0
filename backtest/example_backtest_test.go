package backtest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A hook that should be switched on soon is tried on the sessions of the past.
func Example_backtest() {
	ctx := context.Background()
	store := memstore.New(nil)
	play(ctx, store) // an agent has written two files

	// docs:begin backtest
	freeze := belay.ToolPre.On("freeze", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		if strings.Contains(string(call.Input()), "releases/") {
			return belay.Deny("releases are frozen"), nil
		}
		return belay.Pass, nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"write"}}})

	report, err := backtest.Run(ctx, store, &backtest.Policy{Hooks: []hook.Subscription{freeze}}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Calls, "calls,", len(report.Differences), "would differ")
	for _, d := range report.Differences {
		fmt.Printf("%s: was %s, now %s by %s: %s\n", d.Input, d.Was.Outcome, d.Now.Outcome, d.Now.By, d.Now.Reason)
	}
	// docs:end backtest

	// Output:
	// 2 calls, 1 would differ
	// {"path":"releases/v2.md"}: was allowed, now denied by freeze: releases are frozen
}

// play runs a turn that writes two files.
func play(ctx context.Context, store belay.Store) {
	write := belay.NewTool("write", "Writes a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return "written: " + in.Path, nil
	}, nil)
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "write", Input: `{"path":"notes.md"}`}, {Tool: "write", Input: `{"path":"releases/v2.md"}`}}},
		{Text: "Both are written."},
	}, nil)
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{write}, Store: store})
	if err != nil {
		panic(err)
	}
	if _, err := agent.Session("demo").Turn(ctx, "Write the notes of the release."); err != nil {
		panic(err)
	}
	if err := agent.Close(ctx); err != nil {
		panic(err)
	}
}
