package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// extensionPromises are the promises about many extensions. They are measured with fixed
// tools and with step tools, in an agent and in a child agent whose parent may use only
// some of the tools.
func extensionPromises() []promise {
	return []promise{
		{"extensions-50-tools-1000", 1.2, extensionRatio(agentTurns(stays))},
		{"extensions-50-tools-1000-step", 1.2, extensionRatio(agentTurns(steps))},
		{"extensions-50-tools-1000-child", 1.2, extensionRatio(childTurns(stays))},
		{"extensions-50-tools-1000-child-step", 1.2, extensionRatio(childTurns(steps))},
	}
}

// toolsOf is an extension with fixed tools.
type toolsOf struct {
	name  string
	tools []belay.Tool
}

func (e *toolsOf) Name() string        { return e.name }
func (e *toolsOf) Tools() []belay.Tool { return e.tools }

// stepToolsOf is an extension with step tools: see belay.StepToolExtension.
type stepToolsOf struct{ of toolsOf }

func (e *stepToolsOf) Name() string                  { return e.of.name }
func (e *stepToolsOf) StepTools(string) []belay.Tool { return e.of.tools }

func stays(e toolsOf) belay.Extension { return &e }              //nolint:ireturn // it is put among extensions
func steps(e toolsOf) belay.Extension { return &stepToolsOf{e} } //nolint:ireturn // likewise

// extensionRatio returns the time of a turn that calls one of 1,000 tools of 50 extensions,
// divided by the time of a turn with only one extension and one tool.
func extensionRatio(with func(extensions, each int) (func(n int), error)) func() (float64, error) {
	return func() (float64, error) {
		many, err := with(50, 20)
		if err != nil {
			return 0, err
		}
		one, err := with(1, 1)
		if err != nil {
			return 0, err
		}
		return ratio(many, one), nil
	}
}

// extensionsOf returns extensions with tools. The model calls the last tool.
func extensionsOf(extensions, each int, kind func(toolsOf) belay.Extension) []belay.Extension {
	all := make([]belay.Extension, extensions)
	for i := range all {
		e := toolsOf{name: fmt.Sprintf("extension-%d", i)}
		for j := range each {
			tool := echoTool
			if i < extensions-1 || j < each-1 {
				tool = belay.NewTool(fmt.Sprintf("tool_%d_%d", i, j), "does nothing", func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
			}
			e.tools = append(e.tools, tool)
		}
		all[i] = kind(e)
	}
	return all
}

// agentTurns returns a function that runs turns of an agent with extensions.
func agentTurns(kind func(toolsOf) belay.Extension) func(extensions, each int) (func(n int), error) {
	return func(extensions, each int) (func(n int), error) {
		store := memstore.New(nil)
		agent, err := belay.New(instant{}, &belay.Options{Hooks: tenHooks(), Store: store, Extensions: extensionsOf(extensions, each, kind)})
		return func(n int) {
			s := agent.Session("turns")
			for range n {
				takeTurn(s)
			}
			must(s.Close(ctx))
			must(store.Forget("turns"))
		}, err
	}
}

// below is the name of the tool that runs a turn of a child.
const below = "below"

// handing is a model that calls the tool below, and ends the turn when it gets the
// result.
type handing struct{ instant }

func (m handing) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	if last := req.Messages[len(req.Messages)-1]; last.Parts[0].Result != nil {
		return m.instant.Stream(ctx, req)
	}
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{
			StopReason: belay.StopToolUse, Usage: belay.Usage{In: 100, Out: 10},
			Parts: []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "call_1", Tool: below, Input: json.RawMessage(`{}`)}}},
		}}, nil)
	}
}

// childTurns returns a function that runs turns of an agent whose tool runs a turn of a
// child. The child has the extensions. The parent, and so the child, may use only some of
// their tools.
func childTurns(kind func(toolsOf) belay.Extension) func(extensions, each int) (func(n int), error) {
	return func(extensions, each int) (func(n int), error) {
		store := memstore.New(nil)
		child, err := belay.New(instant{}, &belay.Options{Store: store, Extensions: extensionsOf(extensions, each, kind)})
		if err != nil {
			return nil, err
		}
		tool := belay.NewRawTool(belay.ToolDeclaration{Name: below, Description: "takes a turn of a child"}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
			turn, err := call.Controls().Child(ctx, belay.Child{Name: "child"}, func(ctx context.Context) iter.Seq2[belay.Event, error] {
				return child.Session("child").Run(ctx, "go")
			})
			if err != nil {
				return belay.Result{}, err
			}
			return belay.Result{Text: turn.Text}, nil
		}, nil)
		agent, err := belay.New(handing{}, &belay.Options{
			Hooks: tenHooks(), Store: store, Tools: []belay.Tool{tool}, Scope: []string{below, echoTool.Declaration().Name, "tool_*_1*"},
		})
		return func(n int) {
			s := agent.Session("turns")
			for range n {
				takeTurn(s)
			}
			must(s.Close(ctx))
			must(child.Session("child").Close(ctx))
			must(store.Forget("turns"))
			must(store.Forget("child"))
		}, err
	}
}
