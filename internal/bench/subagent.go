package main

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// subagentPromises are the promises about subagents. One child is a function, so that
// only the dispatch is measured. The other child is an agent whose model answers at once.
// It has a new session for each call.
func subagentPromises() []promise {
	return []promise{
		{"subagent-dispatch", 3, pairRatio(dispatchTo(subagent.Canned(func(context.Context, string) (string, error) { return "hello", nil })))},
		{"subagent-dispatch-agent", 3, pairRatio(dispatchTo(subagent.Agent(answering{}, nil)))},
	}
}

// delegating is a model that gives its task to a subagent, and ends the turn when it gets
// the answer.
type delegating struct{ instant }

func (m delegating) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	if last := req.Messages[len(req.Messages)-1]; last.Parts[0].Result != nil {
		return m.instant.Stream(ctx, req)
	}
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{
			StopReason: belay.StopToolUse, Usage: belay.Usage{In: 100, Out: 10},
			Parts: []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "call_1", Tool: subagent.InvokeTool, Input: json.RawMessage(`{"name":"child","prompt":"say hello"}`)}}},
		}}, nil)
	}
}

// answering is a model that answers at once.
type answering struct{}

func (answering) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("hello")}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 100, Out: 10}}}, nil)
	}
}

// dispatchTo returns turns that call a subagent. The floor is turns that call a tool. Both
// have the same hooks.
func dispatchTo(child subagent.Factory) func() (*pair, error) {
	return func() (*pair, error) {
		plain, err := turns()
		if err != nil {
			return nil, err
		}
		subagents, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{Name: "child", Factory: child}}})
		if err != nil {
			return nil, err
		}
		return &pair{ours: func(n int) {
			store := memstore.New(nil) // a new store each time, because the sessions of children are not removed
			agent, err := belay.New(delegating{}, &belay.Options{Hooks: tenHooks(), Store: store, Extensions: []belay.Extension{subagents}})
			must(err)
			s := agent.Session("turns")
			for range n {
				takeTurn(s)
			}
			must(agent.Close(ctx))
		}, floor: plain, close: func() error { return nil }}, nil
	}
}
