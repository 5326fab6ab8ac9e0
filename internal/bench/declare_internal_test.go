package main

import "testing"

// BenchmarkWorker measures a hook that is a Go worker, and bare JSON-RPC with the same
// program.
func BenchmarkWorker(b *testing.B) {
	pair, err := newWorkerPair()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("hook", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(pair.hook.askOnce())
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(pair.bare.ask(pair.hook.call))
		}
	})
	if err := pair.close(); err != nil {
		b.Fatal(err)
	}
}
