package looptest_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// wantUsage compares usage. Costs may differ by a billionth.
func wantUsage(t testing.TB, what string, got, want belay.Usage) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// SPEC L-07: tokens and cost are counted for a step, a turn and a session.
func TestUsage(t *testing.T) {
	t.Parallel()
	price := belay.Price{In: 3, Out: 15, CacheRead: 0.3, CacheWrite: 3.75}
	first := belay.Usage{In: 1000, Out: 100, CacheRead: 10_000, CacheWrite: 200}
	second := belay.Usage{In: 10, Out: 20, Cost: 0.5} // the provider reports the cost
	third := belay.Usage{Out: 1_000_000}
	summary := belay.Usage{In: 1_000_000}
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "echo"}}, Usage: first}, counted("one", second), counted("gist", summary), counted("two", third),
	}, &scripted.Options{Price: price, Pace: atOnce})
	var observed []belay.Usage
	hooks := []hook.Subscription{
		belay.ModelPost.On("post", func(_ context.Context, r belay.ModelResponse) (belay.Note, error) {
			observed = append(observed, r.Usage())
			return belay.Note{}, nil
		}, nil),
		belay.TurnPostTurn.On("end", func(_ context.Context, e belay.TurnEnded) (belay.Note, error) {
			observed = append(observed, e.Usage())
			return belay.Note{}, nil
		}, nil),
	}
	store := memstore.New(nil)
	opts := &belay.Options{Store: store, Tools: []belay.Tool{echoTool("echo")}, Hooks: hooks}
	s := agentOf(t, model, opts).Session("s")

	first.Cost = 0.003 + 0.0015 + 0.003 + 0.00075
	third.Cost, summary.Cost = 15, 3
	all := takeTurn(t, s.Run(t.Context(), "a"), belay.EndTurn)
	turn := belay.Usage{In: 1010, Out: 120, CacheRead: 10_000, CacheWrite: 200, Cost: first.Cost + 0.5}
	steps := all.of(belay.EventTokenConsumption)
	if len(steps) != 2 {
		t.Fatalf("%d steps were counted", len(steps))
	}
	wantUsage(t, "the first step", *steps[0].Usage, first)
	wantUsage(t, "the second step", *steps[1].Usage, second)
	wantUsage(t, "the turn", all.Usage, turn)
	wantUsage(t, "the session", s.Usage(), turn)
	wantUsage(t, "the stored response", *transcript(t, s)[1].Usage, first)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantUsage(t, "the session with its summary", s.Usage(), sum(turn, summary))

	store.Expire("s")
	s = agentOf(t, model, opts).Session("s")
	wantUsage(t, "the turn in another process", say(t, s, "b").Usage, third)
	wantUsage(t, "the session in another process", s.Usage(), sum(turn, summary, third))
	for i, want := range []belay.Usage{first, second, turn, third, third} {
		wantUsage(t, "what hooks observe", observed[i], want)
	}
}

// sum returns the sum of all usage.
func sum(all ...belay.Usage) belay.Usage {
	var s belay.Usage
	for _, u := range all {
		s = belay.Usage{In: s.In + u.In, Out: s.Out + u.Out, CacheRead: s.CacheRead + u.CacheRead, CacheWrite: s.CacheWrite + u.CacheWrite, Cost: s.Cost + u.Cost}
	}
	return s
}

// SPEC L-07: the tokens of a summary count for the turn that makes it.
func TestUsageOfCompaction(t *testing.T) {
	t.Parallel()
	model := scriptOf(counted("one", belay.Usage{In: 900}), counted("gist", belay.Usage{In: 900, Out: 7}), counted("two", belay.Usage{In: 50}))
	s := agentOf(t, model, &belay.Options{Compaction: belay.Compaction{Window: 1000}}).Session("s")
	say(t, s, "a")
	wantUsage(t, "the turn", say(t, s, "b").Usage, belay.Usage{In: 950, Out: 7})
	wantUsage(t, "the session", s.Usage(), belay.Usage{In: 1850, Out: 7})
}

// SPEC L-07.
func TestBudget(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		budget belay.Budget
		steps  []int // the number of steps of each turn
		why    string
	}{
		"tokens of a turn":    {belay.Budget{TurnTokens: 200}, []int{2, 2}, "the turn has used 200 tokens, and its limit is 200"},
		"money of a turn":     {belay.Budget{TurnCost: 0.15}, []int{2, 2}, "the turn has cost $0.2000, and its limit is $0.1500"},
		"tokens of a session": {belay.Budget{SessionTokens: 300}, []int{3, 0}, "the session has used 300 tokens, and its limit is 300"},
		"money of a session":  {belay.Budget{SessionCost: 0.35}, []int{4, 0}, "the session has cost $0.4000, and its limit is $0.3500"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			step := scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
				n++
				return scripted.Step{
					Calls: []scripted.Call{{Tool: "echo", Input: map[string]int{"n": n}}},
					Usage: belay.Usage{In: 60, Out: 20, CacheRead: 15, CacheWrite: 5, Cost: 0.1},
				}, nil
			}}
			model := scripted.New([]scripted.Step{step}, &scripted.Options{Repeat: true, Pace: atOnce})
			s := agentOf(t, model, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Budget: test.budget}).Session("s")
			for i, steps := range test.steps {
				turn := takeTurn(t, s.Run(t.Context(), "a"), belay.EndBudget)
				if turn.Steps != steps || i == 0 && turn.Why != test.why {
					t.Errorf("turn %d took %d steps, not %d: %s", i+1, turn.Steps, steps, turn.Why)
				}
			}
		})
	}
}

// SPEC L-07.
func TestPrice(t *testing.T) {
	t.Parallel()
	price := belay.Price{In: 1, Out: 2, CacheRead: 4, CacheWrite: 8}
	if got := price.Of(belay.Usage{In: 1_000_000, Out: 500_000, CacheRead: 250_000, CacheWrite: 125_000}); math.Abs(got-4) > 1e-12 {
		t.Errorf("it costs %v, not 4", got)
	}
	if got := (belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4}).Tokens(); got != 10 {
		t.Errorf("it is %d tokens, not 10", got)
	}
	free := scriptOf(counted(strings.Repeat("x", 10), belay.Usage{In: 5}))
	if cost := say(t, agentOf(t, free, nil).Session("s"), "a").Usage.Cost; cost != 0 {
		t.Errorf("without a price it costs %v", cost)
	}
}
