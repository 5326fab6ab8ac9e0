package memory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

// The agent recalls a fact from another session.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := must(os.MkdirTemp("", "belay-memory-"))
	defer func() { _ = os.RemoveAll(dir) }()
	model := scripted.New([]scripted.Step{
		{Text: "Noted."},
		{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
			if told := req.Messages[len(req.Messages)-1].Text(); strings.Contains(told, "deploy on Fridays") {
				return scripted.Step{Text: "Not on a Friday: you told me so."}, nil
			}
			return scripted.Step{Text: "Go ahead."}, nil
		}},
	}, nil)

	// docs:begin agent
	store := must(sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil))
	memories := must(memory.Open(ctx, filepath.Join(dir, "memory.db"), nil))
	remembers := must(memory.New(memories, &memory.Options{Transcript: store, Project: "website"}))
	agent := must(belay.New(model, &belay.Options{Store: store, Extensions: []belay.Extension{remembers}}))
	go func() { _ = agent.Hooks().Work(ctx) }() // extraction is background work
	// docs:end agent

	turn := must(agent.Session("monday").Turn(ctx, "We never deploy on Fridays."))
	fmt.Println(turn.Text)
	extracted(ctx, store)
	turn = must(agent.Session("friday").Turn(ctx, "Shall we deploy?"))
	fmt.Println(turn.Text)

	// docs:begin list
	for m, err := range memories.List(ctx, memory.Filter{States: []memory.State{memory.Active}}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(m.Scope, m.Session, m.Text)
	}
	// docs:end list
	cancel()
	fmt.Println(agent.Close(context.Background()), memories.Close(), store.Close())
	// Output:
	// Noted.
	// Not on a Friday: you told me so.
	// project:website monday We never deploy on Fridays.
	// <nil> <nil> <nil>
}

// extracted waits until the extraction job of a turn is recorded as done.
func extracted(ctx context.Context, store *sqlite.Store) {
	journal := store.Journal().(hook.ListJournal)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for ; ; <-again.C {
		for run, err := range journal.List(ctx, hook.Filter{Subscription: "memory.extract", States: []hook.State{hook.Completed}}) {
			if err == nil && run.Attempt > 0 {
				return
			}
		}
	}
}

// A hook can set the policy: here guest sessions are not remembered.
func ExamplePolicyWrite() {
	// docs:begin policy
	guests := belay.TurnPrePolicy.On("guests", func(_ context.Context, turn belay.TurnBegun) (belay.TurnPolicy, error) {
		if strings.HasPrefix(turn.Session(), "guest-") {
			return belay.SetPolicy(memory.PolicyWrite.Set(false)), nil
		}
		return belay.TurnPolicy{}, nil
	}, nil)
	// docs:end policy
	fmt.Println(guests.ID(), memory.PolicyWrite.Name())
	fmt.Println(memory.Classify("My PIN is 1234, but don't remember that."))
	// Output:
	// guests memory.write
	// {true false}
}

// Queries splits a text into search queries.
func ExampleQueries() {
	for _, query := range memory.Queries(`Book a table at "Da Enzo", and tell Bob when we meet.`) {
		fmt.Println(query)
	}
	// Output:
	// da enzo
	// book table da enzo
	// bob meet
}
