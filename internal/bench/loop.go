package main

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
)

// loopPromises are the promises about the loop of a turn.
func loopPromises() []promise {
	return []promise{
		{"turn", 3, turnRatio},
		{"turn-allocs", 60, turnAllocs},
		{"turn-warm-allocs", 50, turnWarmAllocs},
		{"turn-k10", 4, turnTenCalls},
		{"thousand-turns", 1.15, thousandTurns},
		{"ten-tools-wall", 2, tenTools},
		{"idle-session-bytes", 1024, idleSessionBytes},
		{"idle-session-goroutines", 0, idleSessionGoroutines},
	}
}

// noOpinion is a handler that has no opinion.
func noOpinion[In any, Out hook.Output](context.Context, In) (out Out, err error) { return out, err }

// tenHooks returns a typical set of hooks: most are on tools, the others on the user's
// message and on the end of the turn.
func tenHooks() []hook.Subscription {
	return []hook.Subscription{
		belay.UserPromptSubmit.On("prompt", noOpinion, nil),
		belay.ToolPre.On("gate-1", noOpinion, nil),
		belay.ToolPre.On("gate-2", noOpinion, nil),
		belay.ToolPre.On("gate-3", noOpinion, nil),
		belay.ToolPre.On("gate-4", noOpinion, nil),
		belay.ToolPost.On("result-1", noOpinion, nil),
		belay.ToolPost.On("result-2", noOpinion, nil),
		belay.ToolPost.On("result-3", noOpinion, nil),
		belay.TurnStop.On("stop", noOpinion, nil),
		belay.TurnPostTurn.On("end", noOpinion, nil),
	}
}

func benchAgent() (*belay.Agent, *memstore.Store, error) {
	store := memstore.New(nil)
	agent, err := belay.New(instant{}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: tenHooks(), Store: store})
	return agent, store, err
}

// turns returns a function that runs turns.
func turns() (func(n int), error) {
	agent, store, err := benchAgent()
	return func(n int) { inSessions(agent, store, n) }, err
}

// sessionTurns is how many turns a session has before the next one begins. The bare loop
// drops its history as often. Otherwise the histories would have different lengths, and the
// garbage collector different work.
const sessionTurns = 500

// inSessions runs n turns.
func inSessions(agent *belay.Agent, store *memstore.Store, n int) {
	for ; n > 0; n -= sessionTurns {
		s := agent.Session("turns")
		for range min(n, sessionTurns) {
			takeTurn(s)
		}
		must(s.Close(ctx))
		must(store.Forget("turns"))
	}
}

func takeTurn(s *belay.Session) {
	turn, err := s.Turn(ctx, "say hello")
	must(err)
	if turn.Reason != belay.EndTurn {
		panic("bench: the turn ended " + string(turn.Reason))
	}
}

// turnRatio returns the time of a turn with one tool and ten hooks divided by the time of
// the bare loop.
func turnRatio() (float64, error) {
	ours, err := turns()
	if err != nil {
		return 0, err
	}
	bare, err := bareTurns(instant{})
	if err != nil {
		return 0, err
	}
	return ratio(ours, bare), nil
}

// gates returns hooks of tool.pre that have no opinion.
func gates(n int) []hook.Subscription {
	var hooks []hook.Subscription
	for i := range n {
		hooks = append(hooks, belay.ToolPre.On("gate-"+strconv.Itoa(i), noOpinion, nil))
	}
	return hooks
}

// turnAllocs returns the allocations of the only turn of a session, with one call and ten
// gates.
func turnAllocs() (float64, error) {
	store := memstore.New(nil)
	agent, err := belay.New(instant{}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: gates(10), Store: store})
	if err != nil {
		return 0, err
	}
	return allocs(func(n int) {
		for range n {
			s := agent.Session("fresh")
			takeTurn(s)
			must(s.Close(ctx))
			must(store.Forget("fresh"))
		}
	}), nil
}

// turnWarmAllocs is turnAllocs for a turn of a session that had turns before.
func turnWarmAllocs() (float64, error) {
	agent, err := belay.New(instant{}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: gates(10), Store: memstore.New(nil)})
	if err != nil {
		return 0, err
	}
	s := agent.Session("warm")
	takeTurn(s)
	return allocs(func(n int) {
		for range n {
			takeTurn(s)
		}
	}), nil
}

// turnTenCalls returns the time of a turn with ten calls in one message and ten gates,
// divided by the time of the bare loop, which makes the ten calls one after the other.
func turnTenCalls() (float64, error) {
	store := memstore.New(nil)
	agent, err := belay.New(manyCalls{10}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: gates(10), Store: store})
	if err != nil {
		return 0, err
	}
	bare, err := bareTurns(manyCalls{10})
	if err != nil {
		return 0, err
	}
	return ratio(func(n int) { inSessions(agent, store, n) }, bare), nil
}

// thousandTurns returns the cost of a turn late in a long session divided by the cost of an
// early one.
func thousandTurns() (float64, error) {
	ratios := make([]float64, rounds)
	for i := range ratios {
		agent, _, err := benchAgent()
		if err != nil {
			return 0, err
		}
		s := agent.Session("long")
		took := make([]float64, 1000)
		for n := range took {
			start := time.Now()
			takeTurn(s)
			took[n] = float64(time.Since(start))
		}
		ratios[i] = median(took[900:]) / median(took[100:200])
	}
	return median(ratios), nil
}

// tenTools returns the time of a turn with ten calls of 50 ms in one message, divided by 50
// ms. The calls must run at the same time.
func tenTools() (float64, error) {
	const each = 50 * time.Millisecond
	slow := belay.NewTool("echo", "says it again, slowly", func(_ context.Context, in echoInput) (string, error) {
		time.Sleep(each) // the work of the tool
		return in.Text, nil
	}, nil)
	agent, err := belay.New(manyCalls{10}, &belay.Options{Tools: []belay.Tool{slow}, Hooks: tenHooks(), Store: memstore.New(nil)})
	if err != nil {
		return 0, err
	}
	best := time.Hour
	for i := range 5 {
		start := time.Now()
		takeTurn(agent.Session(fmt.Sprint(i)))
		best = min(best, time.Since(start))
	}
	return float64(best) / float64(each), nil
}

// idleSessionBytes returns the memory of a session between turns, without its messages.
func idleSessionBytes() (float64, error) {
	const sessions = 2000
	agent, _, err := benchAgent()
	if err != nil {
		return 0, err
	}
	for range 2000 {
		takeTurn(agent.Session("warm")) // fills the journal, which has a fixed size
	}
	before := heap()
	for i := range sessions {
		takeTurn(agent.Session(strconv.Itoa(i)))
	}
	grown := heap() - before
	messages := heap()
	kept := make([][]*belay.Message, sessions)
	for i := range sessions {
		for m, err := range agent.Session(strconv.Itoa(i)).Messages(ctx) {
			if err != nil {
				return 0, err
			}
			kept[i] = append(kept[i], copyOf(m))
		}
	}
	messages = heap() - messages
	runtime.KeepAlive(kept)
	runtime.KeepAlive(agent)
	return (grown - messages) / sessions, nil
}

func idleSessionGoroutines() (float64, error) {
	agent, _, err := benchAgent()
	if err != nil {
		return 0, err
	}
	takeTurn(agent.Session("warm"))
	before := runtime.NumGoroutine()
	for i := range 100 {
		takeTurn(agent.Session(strconv.Itoa(i)))
	}
	after := runtime.NumGoroutine()
	runtime.KeepAlive(agent)
	return float64(after - before), nil
}

// copyOf returns a deep copy of a message, to measure its size.
func copyOf(m *belay.Message) *belay.Message {
	c := &belay.Message{Seq: m.Seq, Turn: strings.Clone(m.Turn), Role: m.Role, Kind: m.Kind, Parts: slices.Clone(m.Parts)}
	if m.Usage != nil {
		usage := *m.Usage
		c.Usage = &usage
	}
	for i := range c.Parts {
		if call := c.Parts[i].Call; call != nil {
			own := *call
			own.Input = slices.Clone(call.Input)
			c.Parts[i].Call = &own
		}
		if result := c.Parts[i].Result; result != nil {
			own := *result
			own.Text = strings.Clone(result.Text)
			c.Parts[i].Result = &own
		}
	}
	return c
}

// manyCalls is a model like instant that makes several calls in one message.
type manyCalls struct{ n int }

func (m manyCalls) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for chunk, err := range (instant{}).Stream(ctx, req) {
			if parts := chunk.Response.Parts; parts[0].Call != nil {
				for i := range m.n - 1 {
					call := *parts[0].Call
					call.Input = fmt.Appendf(nil, `{"text":"hello %d"}`, i)
					chunk.Response.Parts = append(chunk.Response.Parts, belay.Part{Type: belay.PartCall, Call: &call})
				}
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}
