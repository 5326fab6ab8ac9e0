package main

import (
	"testing"

	"github.com/belay-run/belay/subagent"
)

// TestMain runs the test program as a server or a worker, if a benchmark wants it to.
func TestMain(m *testing.M) {
	if !serveMCP() && !serveWorker() {
		m.Run()
	}
}

// BenchmarkPair measures promises that compare two operations: ours, and its floor.
func BenchmarkPair(b *testing.B) {
	for _, one := range []struct {
		name string
		open func() (*pair, error)
	}{
		{"inline-10", inlinePair(10)},
		{"inline-100", inlinePair(100)},
		{"deadline", deadlinePair},
		{"durable-turn", durableTurns},
		{"postgres-durable-turn", postgresTurns},
		{"postgres-watched-turn", turnsWatchedFromAfar},
		{"subagent-dispatch-agent", dispatchTo(subagent.Agent(answering{}, nil))},
		{"mcp-call", mcpCalls(64)},
		{"serve-watched-turn", watchedTurns},
		{"chat-key", chatKeys},
	} {
		b.Run(one.name, func(b *testing.B) {
			p, err := one.open()
			if err != nil {
				b.Fatal(err)
			}
			for name, f := range map[string]func(n int){"ours": p.ours, "floor": p.floor} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					f(b.N)
				})
			}
			if err := p.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
