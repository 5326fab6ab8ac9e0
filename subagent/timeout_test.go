package subagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// silent is a model that never answers.
type silent struct{ belay.Model }

func (silent) Stream(ctx context.Context, _ *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		<-ctx.Done()
		yield(belay.Chunk{}, context.Cause(ctx))
	}
}

// Everything that times out has the class timeout: in the event, in the transcript and at
// tool.post. Other failures have another class, even if their error is a timeout error.
//
// SPEC T-04
func TestWhatRunsOutOfTimeHasTheClassTimeout(t *testing.T) {
	t.Parallel()
	const bound = time.Minute
	heeds := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	ignores := func(context.Context) error {
		time.Sleep(2 * bound) // longer than the grace period
		return nil
	}
	toolOf := func(run func(context.Context) error, traits *belay.ToolTraits) belay.Tool {
		return belay.NewTool("tool", "for tests", func(ctx context.Context, _ struct{}) (string, error) { return "too late", run(ctx) }, traits)
	}
	child := func(factory subagent.Factory) subagent.Subagent {
		return subagent.Subagent{Name: "child", Factory: factory, Timeout: bound}
	}
	canned := func(run func(context.Context) error) subagent.Factory {
		return subagent.Canned(func(ctx context.Context, _ string) (string, error) { return "too late", run(ctx) })
	}
	durable := child(canned(heeds))
	durable.Durable = true
	callTool, callChild := []scripted.Call{call("tool", struct{}{})}, []scripted.Call{invoke("child", "x")}
	tasks := func(names ...string) []scripted.Call {
		var all []map[string]string
		for _, name := range names {
			all = append(all, map[string]string{"name": name, "prompt": "x"})
		}
		return []scripted.Call{call("delegate", map[string]any{"tasks": all})}
	}
	for rule, test := range map[string]struct {
		calls     []scripted.Call
		tool      belay.Tool
		subagents []subagent.Subagent
		limits    belay.Limits
		hooks     []hook.Subscription
		want      belay.ResultClass
	}{
		"a tool with a timeout of its own":   {calls: callTool, tool: toolOf(heeds, &belay.ToolTraits{Timeout: bound}), want: belay.ClassTimeout},
		"a tool that ignores its timeout":    {calls: callTool, tool: toolOf(ignores, &belay.ToolTraits{Timeout: bound}), want: belay.ClassTimeout},
		"a tool under the limit of an agent": {calls: callTool, tool: toolOf(heeds, nil), limits: belay.Limits{Tool: bound}, want: belay.ClassTimeout},
		"a tool that must finish":            {calls: callTool, tool: toolOf(heeds, &belay.ToolTraits{Timeout: bound, MustFinish: true}), want: belay.ClassTimeout},
		"a tool that gives up by itself": {calls: callTool, tool: toolOf(func(context.Context) error {
			return context.DeadlineExceeded // from a request of the tool itself
		}, nil), want: belay.ClassFailed},
		"a gate that runs out of time": {
			calls: callTool, tool: toolOf(func(context.Context) error { return nil }, nil), want: belay.ClassDenied,
			hooks: []hook.Subscription{belay.ToolPre.On("slow", func(ctx context.Context, _ belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, heeds(ctx) }, &hook.Options{Timeout: bound})},
		},
		"a child":                         {calls: callChild, subagents: []subagent.Subagent{child(canned(heeds))}, want: belay.ClassTimeout},
		"a child that ignores it":         {calls: callChild, subagents: []subagent.Subagent{child(canned(ignores))}, want: belay.ClassTimeout},
		"a child whose model is silent":   {calls: callChild, subagents: []subagent.Subagent{child(subagent.Agent(silent{script()}, nil))}, want: belay.ClassTimeout},
		"a child that waits for its turn": {calls: []scripted.Call{invoke("child", "1"), invoke("child", "2")}, subagents: []subagent.Subagent{durable}, want: belay.ClassTimeout},
		"a child whose tool is slow": {
			calls: callChild, want: belay.ClassTimeout,
			subagents: []subagent.Subagent{child(subagent.Agent(script(calls(callTool...), says("done")), &belay.Options{Tools: []belay.Tool{toolOf(heeds, nil)}}))},
		},
		"a child that fails":             {calls: callChild, subagents: []subagent.Subagent{child(canned(func(context.Context) error { return errors.New("no") }))}, want: belay.ClassFailed},
		"tasks that all run out of time": {calls: tasks("child", "child"), subagents: []subagent.Subagent{child(canned(heeds))}, want: belay.ClassTimeout},
		"tasks of which one failed otherwise": {
			calls: tasks("child", "other"), want: belay.ClassFailed,
			subagents: []subagent.Subagent{child(canned(heeds)), {Name: "other", Factory: canned(func(context.Context) error { return errors.New("no") })}},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(2 * bound) // fake clock: wait until the tool that ignores its timeout has ended
				var posted []belay.ResultClass
				post := belay.ToolPost.On("log", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
					posted = append(posted, r.Class())
					return belay.ToolReaction{}, nil
				}, &hook.Options{NoInherit: true})
				opts := &belay.Options{Store: memstore.New(nil), Limits: test.limits, Hooks: append(test.hooks, post), Extensions: []belay.Extension{newExtension(t, &subagent.Options{Delegate: true}, test.subagents...)}}
				if test.tool != nil {
					opts.Tools = []belay.Tool{test.tool}
				}
				session := newAgent(t, script(calls(test.calls...), says("done")), opts).Session("s")
				h := take(t, session.Run(t.Context(), "go"))
				h.ended(t, belay.EndTurn)
				results := h.results()
				if len(results) != len(test.calls) {
					t.Fatalf("there are %d results, want %d", len(results), len(test.calls))
				}
				for _, r := range results {
					if r.Class != test.want || !r.IsError {
						t.Errorf("the event has %+v, want class %q", r, test.want)
					}
				}
				if test.want != belay.ClassDenied && (len(posted) != len(test.calls) || posted[0] != test.want) {
					t.Errorf("tool.post saw the classes %q, want %q", posted, test.want)
				}
				for m, err := range session.Messages(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					for _, p := range m.Parts {
						if p.Result == nil {
							continue
						}
						var wire struct {
							Class belay.ResultClass `json:"class"`
						}
						if data, err := json.Marshal(p.Result); err != nil || json.Unmarshal(data, &wire) != nil || wire.Class != test.want || p.Result.Class != test.want {
							t.Errorf("the transcript has %+v, and on the wire %s, want class %q", p.Result, data, test.want)
						}
					}
				}
			})
		})
	}
}
