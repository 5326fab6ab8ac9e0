package scripted_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// instant returns a model that repeats its step for ever, without delays.
func instant() *scripted.Model {
	return scripted.New([]scripted.Step{{Text: "ok", Calls: []scripted.Call{{Tool: "read"}, {Tool: "read"}}}}, &scripted.Options{
		Repeat: true, Keep: -1, Pace: scripted.Pace{Chunk: scripted.Whole},
	})
}

func exhaust(b testing.TB, model *scripted.Model, req *belay.Request) {
	for _, err := range model.Stream(b.Context(), req) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

//nolint:paralleltest // AllocsPerRun counts the allocations of the whole program.
func TestAnInstantResponseIsCheap(t *testing.T) {
	req := ask(user("hi"), assistant(belay.Text("hello")), user("read them"))
	model := instant()
	if got := testing.AllocsPerRun(100, func() { exhaust(t, model, req) }); got > 4 {
		t.Errorf("a request takes %v allocations, want at most 4: the sequence, the response, its parts and its calls", got)
	}
}

//nolint:paralleltest // See above.
func TestAFullRecordTakesNoMoreMemory(t *testing.T) {
	req := ask(user("hi"), assistant(belay.Text("hello")), user("read them"))
	model := scripted.New(says("ok"), &scripted.Options{Repeat: true, Keep: 8, Cache: true})
	for range 8 {
		exhaust(t, model, req)
	}
	if got := testing.AllocsPerRun(100, func() { exhaust(t, model, req) }); got > 3 {
		t.Errorf("a request takes %v allocations once the record is full, want at most 3", got)
	}
}

func BenchmarkInstant(b *testing.B) {
	req := ask()
	for range 10 {
		req.Messages = append(req.Messages, user("how do you do"), assistant(belay.Text("fine, thank you")))
	}
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parts := []belay.Part{belay.Text("ok")}
			floor = &belay.Response{Parts: parts}
		}
	})
	b.Run("scripted", func(b *testing.B) {
		b.ReportAllocs()
		model := instant()
		for b.Loop() {
			exhaust(b, model, req)
		}
	})
}

// floor keeps the compiler from removing the benchmarked code.
var floor *belay.Response
