package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// steady returns a model that always fails with the fault. If fault is empty, it always
// answers.
func steady(name string, price float64, fault belay.ModelErrorKind) *scripted.Model {
	step := scripted.Step{Text: "from " + name, Usage: belay.Usage{In: 1_000_000}}
	if fault != "" {
		step = scripted.Step{Fault: &scripted.Fault{Kind: fault, Status: 500}}
	}
	return scripted.New([]scripted.Step{step}, &scripted.Options{Name: name, Repeat: true, Price: belay.Price{In: price}})
}

// If a model fails permanently, or in all its attempts, the next model answers. The
// events and the transcript show the change. The cost is computed with the price of the
// model that answered.
//
// SPEC L-11
func TestFallback(t *testing.T) {
	t.Parallel()
	const attempts = 3
	for _, test := range []struct {
		fault    belay.ModelErrorKind
		requests int // number of requests to the first model
	}{
		{"", 1},
		{belay.ModelOverloaded, attempts},
		{belay.ModelRateLimited, attempts},
		{belay.ModelNetwork, attempts},
		{belay.ModelAuth, 1},
		{belay.ModelInvalid, 1},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				first, broken, last := steady("a/first", 1, test.fault), steady("b/broken", 2, belay.ModelAuth), steady("c/last", 4, "")
				agent, err := belay.New(belay.Fallback(first, broken, last), &belay.Options{Store: memstore.New(nil), Retry: hook.Retry{Attempts: attempts}})
				if err != nil {
					t.Fatal(err)
				}
				want, cost, changes := "c/last", 4.0, 2
				if test.fault == "" {
					want, cost, changes = "a/first", 1, 0
				}
				session := agent.Session("s")
				for turn := 1; turn <= 2; turn++ { // each turn begins with the first model
					all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
					if all.Text != "from "+want || all.Usage.Cost != cost {
						t.Errorf("the answer is %q for %v dollars, want that of %s for %v", all.Text, all.Usage.Cost, want, cost)
					}
					told := 0
					for _, e := range all.of(belay.EventError) {
						if strings.Contains(e.Text, " instead") && e.Retry {
							told++
						}
					}
					if n := len(first.Requests()); n != turn*test.requests || told != changes {
						t.Errorf("the first model was asked %d times and %d changes were shown, want %d and %d", n, told, turn*test.requests, changes)
					}
				}
				for m, err := range session.Messages(t.Context()) {
					if err != nil || m.Role == belay.RoleAssistant && m.Model != want {
						t.Errorf("a message of %q, error %v, want all of %s", m.Model, err, want)
					}
				}
				if err := agent.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// If a hook of model.pre fails closed, the request is not sent to any model. If all
// models fail, the turn returns the error of the last model.
//
// SPEC L-11
func TestFallbackThatDoesNotHelp(t *testing.T) {
	t.Parallel()
	second := steady("b/second", 1, "")
	gate := belay.ModelPre.On("gate", func(context.Context, belay.ModelRequest) (belay.Aside, error) {
		return belay.Aside{}, errors.New("not today")
	},
		&hook.Options{Failure: hook.Closed})
	for _, test := range []struct {
		model belay.Model
		hooks []hook.Subscription
		want  string
		asked int
	}{
		{belay.Fallback(steady("a/first", 1, belay.ModelAuth), second), []hook.Subscription{gate}, "not today", 0},
		{belay.Fallback(steady("a/first", 1, belay.ModelAuth), steady("b/second", 1, belay.ModelInvalid)), nil, "b/second", 0},
	} {
		agent, err := belay.New(test.model, &belay.Options{Hooks: test.hooks, Store: memstore.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Session("s").Turn(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("the turn gives %v, want %q", err, test.want)
		}
		if n := len(second.Requests()); n != test.asked {
			t.Errorf("the second model was asked %d times", n)
		}
		if err := agent.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// If a request is too long for a model and its summary fails too, the next model gets the
// request. A request for a summary also falls back to the next model.
//
// SPEC L-11
func TestFallbackOfCompaction(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]belay.Model{
		"too long, and no summary": belay.Fallback(steady("a/small", 1, belay.ModelTooLong), steady("b/large", 1, "")),
		"a summary by the second":  belay.Fallback(steady("a/down", 1, belay.ModelAuth), steady("b/up", 1, "")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, err := belay.New(model, &belay.Options{Store: memstore.New(nil)})
			if err != nil {
				t.Fatal(err)
			}
			session := agent.Session("s")
			for range 3 {
				takeTurn(t, session.Run(t.Context(), strings.Repeat("long ", 100)), belay.EndTurn)
			}
			if err := session.Compact(t.Context()); err != nil {
				t.Errorf("compact: %v", err)
			}
			if err := agent.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An answer may have any type, also a struct whose JSON form is a string.
//
// SPEC L-10, T-14
func TestAnswerOfAStructThatIsAString(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, nil, callWith("final_answer", `{"answer":"2026-01-02T03:04:05Z"}`))
	got, _, err := belay.Answer[time.Time](t.Context(), agent.Session("s"), "when?")
	if err != nil || got.Year() != 2026 {
		t.Errorf("the answer is %v, %v", got, err)
	}
	agent, _ = newAgent(t, nil, callWith("final_answer", `{}`), callWith("final_answer", `{"answer":{"n":1}}`))
	pointer, _, err := belay.Answer[*struct {
		N int `json:"n"`
	}](t.Context(), agent.Session("s"), "which?")
	if err != nil || pointer == nil || pointer.N != 1 {
		t.Errorf("the answer is %v, %v", pointer, err)
	}
}

// If encoding/json treats two keys as equal, the input is rejected, whatever letters the
// keys have.
//
// SPEC T-02
func TestKeysThatAreTheSameToTheDecoder(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{"hosts":"good","ho\u017fts":"evil"}`, `{"hosts":"good","HOSTS":"evil"}`, "{\"k\":1,\"\u212a\":2}"} {
		ran := 0
		tool := anyTool("call", func(context.Context, *belay.Invocation) (belay.Result, error) { ran++; return belay.Result{}, nil }, nil)
		agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, callWith("call", input))
		session := agent.Session("s")
		takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
		if r := onlyResult(t, session); ran > 0 || r.Class != belay.ClassInvalid {
			t.Errorf("%s ran %d times: %s", input, ran, r.Text)
		}
	}
}

// everyTrait is a tool with all optional methods of a tool.
type everyTrait struct{ belay.Tool }

func (everyTrait) Traits() belay.ToolTraits {
	return belay.ToolTraits{Serial: true, MustFinish: true, Idempotent: true, Timeout: time.Hour, MaxResult: 7}
}
func (everyTrait) LeftOut() string { return "something" }
func (everyTrait) Abandon(context.Context, *belay.Invocation) error {
	return errors.New("abandoned")
}

// everyModel is a model with all optional methods of a model.
type everyModel struct{ belay.Model }

func (everyModel) Info() belay.ModelInfo {
	return belay.ModelInfo{Name: "a/b", Window: 5, MaxOutput: 6, Price: belay.Price{In: 7}}
}
func (everyModel) CheckTools([]belay.ToolDeclaration) error { return errors.New("checked") }
func (everyModel) Reach(context.Context) error              { return errors.New("reached") }

// A wrapper keeps every optional method of the tool or the model that it wraps.
//
// SPEC T-16
func TestWrappersKeepTraits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	around := func(ctx context.Context, call *belay.Invocation, next func(context.Context, *belay.Invocation) (belay.Result, error)) (belay.Result, error) {
		r, err := next(ctx, call)
		r.Text = "<" + r.Text + ">"
		return r, err
	}
	traits := func(tool belay.Tool) string {
		tt, lt, at := tool.(belay.TraitTool), tool.(belay.ListingTool), tool.(belay.AbandonTool)
		return fmt.Sprint(tool.Declaration().Name, tt.Traits(), lt.LeftOut(), at.Abandon(ctx, nil))
	}
	whole := everyTrait{echoTool("echo")}
	if got, want := traits(belay.WrapTool(belay.WrapTool(whole, around), around)), traits(whole); got != want {
		t.Errorf("the wrapped tool has %s, want %s", got, want)
	}
	streamed := 0
	watch := func(ctx context.Context, req *belay.Request, next func(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error]) iter.Seq2[belay.Chunk, error] {
		streamed++
		return next(ctx, req)
	}
	about := func(model belay.Model) string {
		return fmt.Sprint(model.(belay.InfoModel).Info(), model.(belay.ToolCheckModel).CheckTools(nil), model.(belay.ReachModel).Reach(ctx))
	}
	every := everyModel{steady("x/y", 1, "")}
	if got, want := about(belay.WrapModel(belay.WrapModel(every, watch), watch)), about(every); got != want {
		t.Errorf("the wrapped model has %s, want %s", got, want)
	}
	// A wrapped typed tool stays typed. WrapModel wraps each model of a Fallback.
	typed := belay.WrapTool(belay.NewTool("order", "orders", func(_ context.Context, in struct {
		Size *string `json:"size" default:"m"`
	},
	) (string, error) {
		return *in.Size, nil
	}, nil), around)
	model := belay.WrapModel(belay.Fallback(steady("a/first", 1, belay.ModelAuth), scriptOf(callWith("order", `{"size":null}`), scripted.Step{Text: "done"})), watch)
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{typed}, Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	session := agent.Session("s")
	takeTurn(t, session.Run(ctx, "go"), belay.EndTurn)
	if r := onlyResult(t, session); r.Text != "<m>" || streamed != 3 {
		t.Errorf("the result is %q after %d requests, want <m> after 3", r.Text, streamed)
	}
	if err := agent.Close(ctx); err != nil {
		t.Error(err)
	}
}
