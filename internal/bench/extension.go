package main

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// extensionPromises are those of extensions together.
func extensionPromises() []promise {
	return []promise{{"extensions-50-tools-1000", 1.2, extensionRatio}}
}

// toolsOf is an extension with so many tools.
type toolsOf struct {
	name  string
	tools []belay.Tool
}

func (e *toolsOf) Name() string        { return e.name }
func (e *toolsOf) Tools() []belay.Tool { return e.tools }

// extensionRatio is what a turn costs that calls one of 1,000 tools of 50 extensions,
// against one that calls the only tool of one.
func extensionRatio() (float64, error) {
	with := func(extensions, each int) (func(n int), error) {
		var all []belay.Extension
		for i := range extensions {
			e := &toolsOf{name: fmt.Sprintf("extension-%d", i)}
			for j := range each {
				tool := echoTool
				if i < extensions-1 || j < each-1 {
					tool = belay.NewTool(fmt.Sprintf("tool_%d_%d", i, j), "does nothing", func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
				}
				e.tools = append(e.tools, tool)
			}
			all = append(all, e)
		}
		store := memstore.New(nil)
		agent, err := belay.New(instant{}, &belay.Options{Hooks: tenHooks(), Store: store, Extensions: all})
		return func(n int) {
			s := agent.Session("turns")
			for range n {
				takeTurn(s)
			}
			must(s.Close(ctx))
			must(store.Forget("turns"))
		}, err
	}
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
