package main

import (
	"strconv"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// BenchmarkTurn measures whole turns with some tool calls and some hooks that have no
// opinion. It measures turns in new sessions, and many turns in one session.
func BenchmarkTurn(b *testing.B) {
	for _, size := range []struct{ calls, hooks int }{{1, 0}, {1, 10}, {10, 10}} {
		store := memstore.New(nil)
		var model belay.Model = instant{}
		if size.calls > 1 {
			model = manyCalls{size.calls}
		}
		agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: gates(size.hooks), Store: store})
		if err != nil {
			b.Fatal(err)
		}
		name := "calls=" + strconv.Itoa(size.calls) + "/hooks=" + strconv.Itoa(size.hooks)
		b.Run(name+"/fresh", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := agent.Session("fresh")
				takeTurn(s)
				must(s.Close(ctx))
				must(store.Forget("fresh"))
			}
		})
		b.Run(name+"/warm", func(b *testing.B) {
			b.ReportAllocs()
			s := agent.Session("warm")
			for b.Loop() {
				takeTurn(s)
			}
			must(s.Close(ctx))
			must(store.Forget("warm"))
		})
	}
}
