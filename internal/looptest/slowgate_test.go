package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// killedIn starts a turn that blocks in a handler until hold is closed. It then lets the
// session expire in the store, as if the process had died. hold is closed when the test
// ends.
func killedIn(t *testing.T, store *memstore.Store, agent *belay.Agent, hold chan struct{}) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = agent.Session("s").Turn(t.Context(), "a") // ignore the error: the turn has lost its session
	}()
	synctest.Wait()
	select {
	case <-over:
		t.Fatal("the turn ended before it was killed")
	default:
	}
	store.Expire("s")
	t.Cleanup(func() {
		close(hold)
		<-over
	})
}

// slowHooks returns subscriptions whose handlers block until hold is closed: one for each
// kind of handler that may take long, and for each of several phases.
func slowHooks(hold chan struct{}) map[string]map[string]hook.Subscription {
	wait := func() { <-hold }
	kinds := map[string]*hook.Options{
		"a command":              {Kind: hook.HandlerCommand},
		"a worker":               {Kind: hook.HandlerWorker},
		"a webhook":              {Kind: hook.HandlerWebhook},
		"a deadline":             {Execution: hook.Deadline, Timeout: time.Hour},
		"a Go gate with timeout": {Timeout: time.Hour},
	}
	all := make(map[string]map[string]hook.Subscription)
	for kind, opts := range kinds {
		all[kind] = map[string]hook.Subscription{
			"tool.pre": belay.ToolPre.On("slow", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { wait(); return belay.Pass, nil }, opts),
			"turn.stop": belay.TurnStop.On("slow", func(context.Context, belay.StopAttempt) (belay.StopVerdict, error) {
				wait()
				return belay.StopVerdict{}, nil
			}, opts),
			"approval.request": belay.ApprovalRequest.On("slow", func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
				wait()
				return belay.ApprovalVerdict{}, nil
			}, opts),
			"tool.denied": belay.ToolDenied.On("slow", func(context.Context, belay.DeniedCall) (belay.Note, error) { wait(); return belay.Note{}, nil }, opts),
			"approval.decided": belay.ApprovalDecided.On("slow", func(context.Context, belay.ApprovalOutcome) (belay.Note, error) {
				wait()
				return belay.Note{}, nil
			}, opts),
		}
	}
	return all
}

// SPEC L-01, L-07: a process that is killed while a slow hook checks a response does not
// lose the response. The process that resumes the turn does not pay for it again.
func TestAPaidResponseSurvivesAKillInASlowGate(t *testing.T) {
	t.Parallel()
	for kind := range slowHooks(nil) {
		for _, phase := range []string{"tool.pre", "turn.stop", "approval.request", "tool.denied", "approval.decided"} {
			t.Run(phase+" of "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store, hold := memstore.New(nil), make(chan struct{})
					first := scripted.Step{Text: "thinking", Calls: []scripted.Call{{Tool: "run"}}, Usage: belay.Usage{In: 100, Out: 10}}
					rest := []scripted.Step{{Text: "done", Usage: belay.Usage{In: 7, Out: 1}}}
					floor := belay.Authorization{Decision: belay.ToolPass}
					switch phase {
					case "turn.stop":
						first.Calls, rest = nil, nil
					case "tool.denied":
						floor = belay.Authorization{Decision: belay.ToolDeny, Reason: "no", By: "zone"}
					case "approval.request", "approval.decided":
						floor = belay.Authorization{Decision: belay.ToolAsk, Reason: "sure?", By: "zone"}
					}
					var ran logbook
					opts := func(hooks ...hook.Subscription) *belay.Options {
						return &belay.Options{
							Store: store, OnAsk: belay.AskDeny, Tools: []belay.Tool{noting(&ran, "run", nil)}, Hooks: hooks,
							Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) { return floor, nil }),
						}
					}
					killedIn(t, store, agentOf(t, scriptOf(first), opts(slowHooks(hold)[kind][phase])), hold)

					model, log := scriptOf(rest...), new(phaseLog)
					agent := agentOf(t, model, opts(log.everywhere()...))
					turn := takeTurn(t, agent.Session("s").Resume(t.Context()), belay.EndTurn)
					if n := len(model.Requests()); n != len(rest) {
						t.Errorf("the model was asked %d times after the kill, want %d", n, len(rest))
					}
					want := first.Usage
					for _, step := range rest {
						want.In, want.Out = want.In+step.Usage.In, want.Out+step.Usage.Out
					}
					if got := turn.Usage; got.In != want.In || got.Out != want.Out {
						t.Errorf("the turn took %+v, want %+v", got, want)
					}
					if got := agent.Session("s").Usage(); got.In != want.In {
						t.Errorf("the session took %+v, want %+v", got, want)
					}
					if phase == "tool.pre" {
						wantEqual(t, "what ran", ran.all(), []string{"run " + "run"})
					}
					if n := log.count("model.post"); n != 1+len(rest) {
						t.Errorf("model.post fired %d times, want once for each response", n)
					}
					wantAnswered(t, model.Requests())
				})
			})
		}
	}
}

// SPEC L-01: if a process is killed in a slow gate, the next turn ends the interrupted
// turn. The result tells the model that the call never started.
func TestATurnKilledInASlowGateIsAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, hold := memstore.New(nil), make(chan struct{})
		killedIn(t, store, agentOf(t, scriptOf(calls("echo")), &belay.Options{
			Store: store, Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{slowHooks(hold)["a command"]["tool.pre"]},
		}), hold)
		agent := agentOf(t, scriptOf(says("never mind")), &belay.Options{Store: store, Tools: []belay.Tool{echoTool("echo")}})
		say(t, agent.Session("s"), "b")
		if r := onlyResult(t, agent.Session("s")); r.Class != belay.ClassAborted || !strings.Contains(r.Text, "before this call started") {
			t.Errorf("the result is %+v", r)
		}
	})
}

// SPEC L-01, T-07: the order of phases is the same whether a gate is slow or not. If a slow
// hook rewrites an input, the transcript has both inputs.
func TestASlowGateChangesNoOrder(t *testing.T) {
	t.Parallel()
	order := func(opts *hook.Options) (phases []string, calls []*belay.CallPart, commits int) {
		log := new(phaseLog)
		rewriter := belay.ToolPre.On("rewriter", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.ToolVerdict{Input: json.RawMessage(`{"n":2}`)}, nil
		}, opts)
		stored := make(map[*belay.Message]string)
		store := &watchedStore{memstore.New(nil), func(c *belay.Commit) {
			commits++
			for _, m := range c.Messages {
				stored[m] = contents(t, m)
			}
		}}
		agent := agentOf(t, scriptOf(callWith("echo", `{"n":1}`), says("done")), &belay.Options{
			Store: store, Tools: []belay.Tool{echoTool("echo")}, Hooks: append(log.everywhere(), rewriter),
		})
		s := agent.Session("s")
		say(t, s, "a")
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = agentOf(t, scriptOf(), &belay.Options{Store: store}).Session("s") // read the messages as another process does
		for _, p := range log.all() {
			phases = append(phases, p.name)
		}
		for m, before := range stored {
			if now := contents(t, m); now != before {
				t.Errorf("a stored message was changed in place from\n%s\nto\n%s", before, now)
			}
		}
		return phases, storedCalls(t, s), commits
	}
	quick, _, few := order(&hook.Options{Capabilities: hook.CanRewriteInput})
	slow, calls, more := order(&hook.Options{Capabilities: hook.CanRewriteInput, Kind: hook.HandlerCommand})
	wantEqual(t, "the phases", slow, quick)
	if more != few+1 {
		t.Errorf("a slow gate takes %d commits, and a quick one %d: want one more, for the response", more, few)
	}
	if len(calls) != 1 || string(calls[0].Input) != `{"n":1}` || string(calls[0].Final) != `{"n":2}` || !slices.Equal(calls[0].RewrittenBy, []string{"rewriter"}) {
		t.Errorf("the stored call is %+v", calls)
	}
}

// contents returns a message as JSON.
func contents(t *testing.T, m *belay.Message) string {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// SPEC L-01: fast gates take no additional commit, and a slow gate takes none for tools
// that it does not match.
func TestOnlyASlowGateThatIsAskedTakesACommit(t *testing.T) {
	t.Parallel()
	pass := func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }
	tests := map[string]struct {
		gate hook.Subscription
		want int
	}{
		"a quick gate":                {belay.ToolPre.On("gate", pass, nil), 4},
		"a slow gate":                 {belay.ToolPre.On("gate", pass, &hook.Options{Kind: hook.HandlerWorker}), 5},
		"a slow gate on another tool": {belay.ToolPre.On("gate", pass, &hook.Options{Kind: hook.HandlerWorker, Match: hook.Match{Tools: []string{"write"}}}), 4},
		"a built-in action":           {belay.ToolPre.On("gate", pass, &hook.Options{Kind: hook.HandlerAction, Timeout: time.Second}), 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commits := 0
			store := &watchedStore{memstore.New(nil), func(*belay.Commit) { commits++ }}
			agent := agentOf(t, scriptOf(calls("echo"), says("done")), &belay.Options{
				Store: store, Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{test.gate},
			})
			say(t, agent.Session("s"), "a")
			if commits != test.want {
				t.Errorf("the turn took %d commits, want %d", commits, test.want)
			}
		})
	}
}

// SPEC L-01: a call that has not begun when model.post runs is not recorded as started. The
// process that resumes the turn runs it, and does not tell the model that it may have run.
func TestACallHasNotBegunWhileModelPostRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, hold := memstore.New(nil), make(chan struct{})
		tools := []belay.Tool{echoTool("one"), echoTool("two")}
		post := belay.ModelPost.On("slow", func(context.Context, belay.ModelResponse) (belay.Note, error) {
			<-hold
			return belay.Note{}, nil
		}, &hook.Options{Kind: hook.HandlerCommand})
		killedIn(t, store, agentOf(t, scriptOf(calls("one", "two")), &belay.Options{Store: store, Tools: tools, Hooks: []hook.Subscription{post}}), hold)
		agent := agentOf(t, scriptOf(says("done")), &belay.Options{Store: store, Tools: tools})
		takeTurn(t, agent.Session("s").Resume(t.Context()), belay.EndTurn)
		for _, r := range storedResults(t, agent.Session("s")) {
			if r.IsError {
				t.Errorf("the result of %s is %q", r.Tool, r.Text)
			}
		}
	})
}

// slowTools returns several tools. Some return at once, some after a while, and some only
// after hold is closed.
func slowTools(hold chan struct{}, ran *diary, traits *belay.ToolTraits) []belay.Tool {
	tool := func(name string, wait func()) belay.Tool {
		return anyTool(name, func(context.Context, *belay.Invocation) (belay.Result, error) {
			ran.notef("%s begins", name)
			wait()
			return belay.Result{Text: name + " is done"}, nil
		}, traits)
	}
	return []belay.Tool{
		tool("quick", func() {}), tool("steady", func() { time.Sleep(20 * time.Millisecond) }), tool("endless", func() { <-hold }),
	}
}

// SPEC L-01: a finished result waits at most 50 ms for its siblings. A kill after that
// does not lose it, and the model gets exact information about each call.
func TestFinishedResultsAreStoredWhileSiblingsRun(t *testing.T) {
	t.Parallel()
	const unknown = "The call may have run"
	tests := map[string]struct {
		serial bool
		calls  []string
		after  time.Duration // time from the start of the turn until the kill
		want   []string      // the beginnings of the results
		runs   []string      // the calls that the second process runs
	}{
		"side by side": {false, []string{"quick", "endless", "steady"}, 75 * time.Millisecond, []string{"quick is done", unknown, "steady is done"}, nil},
		"one by one": {
			true,
			[]string{"quick", "endless", "steady"},
			60 * time.Millisecond,
			[]string{"quick is done", unknown, "steady is done"},
			[]string{"steady begins"},
		},
		"the first of several":               {true, []string{"endless", "quick"}, 60 * time.Millisecond, []string{unknown, "quick is done"}, []string{"quick begins"}},
		"within 50 ms what ran is not known": {false, []string{"quick", "endless"}, 40 * time.Millisecond, []string{unknown, unknown}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, hold := memstore.New(nil), make(chan struct{})
				var first, second diary
				traits := &belay.ToolTraits{Serial: test.serial}
				agent := agentOf(t, scriptOf(calls(test.calls...)), &belay.Options{Store: store, Tools: slowTools(hold, &first, traits)})
				over := make(chan struct{})
				go func() {
					defer close(over)
					_, _ = agent.Session("s").Turn(t.Context(), "a") // ignore the error: the turn has lost its session
				}()
				time.Sleep(test.after)
				synctest.Wait()
				store.Expire("s")

				free := make(chan struct{})
				close(free)
				other := agentOf(t, scriptOf(says("done")), &belay.Options{Store: store, Tools: slowTools(free, &second, traits)})
				takeTurn(t, other.Session("s").Resume(t.Context()), belay.EndTurn)
				for i, r := range storedResults(t, other.Session("s")) {
					if !strings.Contains(r.Text, test.want[i]) {
						t.Errorf("the result of %s is %q, want %q", r.Tool, r.Text, test.want[i])
					}
				}
				wantEqual(t, "what the second process runs", second.all(), test.runs)
				close(hold)
				<-over
			})
		})
	}
}

// SPEC L-01: if a store fails or panics while calls run, the turn ends with an error after
// the running calls are done. Waiting calls are not started.
func TestAStoreThatFailsWhileCallsRun(t *testing.T) {
	t.Parallel()
	for how, fail := range map[string]func() error{
		"an error": func() error { return errors.New("disk on fire") },
		"a panic":  func() error { panic("disk on fire") },
		"Goexit":   func() error { runtime.Goexit(); return nil },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var ran diary
				hold := make(chan struct{})
				time.AfterFunc(time.Minute, func() { close(hold) })
				store := &failingStore{Store: memstore.New(nil), at: 3, fail: fail}
				tools := slowTools(hold, &ran, nil)
				tools = append(tools, anyTool("serial", func(context.Context, *belay.Invocation) (belay.Result, error) {
					ran.notef("serial begins")
					return belay.Result{}, nil
				}, &belay.ToolTraits{Serial: true}))
				agent := agentOf(t, scriptOf(calls("quick", "endless", "serial")), &belay.Options{Store: store, Tools: tools})
				start := time.Now()
				over := make(chan error)
				go func() {
					_, err := agent.Session("s").Turn(t.Context(), "a")
					over <- err
				}()
				synctest.Wait()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				select {
				case err := <-over:
					if err == nil && how != "Goexit" {
						t.Error("the turn ended without an error")
					}
				default:
					if how != "Goexit" { // Goexit ends the goroutine on which the test runs the turn
						t.Errorf("the turn has not ended after %s", time.Since(start))
					}
				}
				if slices.Contains(ran.all(), "serial begins") {
					t.Errorf("what ran is %v", ran.all())
				}
			})
		})
	}
}

// failingStore is a store in which commit number at fails.
type failingStore struct {
	belay.Store

	at   int
	fail func() error
}

func (s *failingStore) Commit(ctx context.Context, c *belay.Commit) error {
	if s.at--; s.at == 0 {
		return s.fail()
	}
	return s.Store.Commit(ctx, c)
}

// SPEC L-01: the results of fast calls are stored in one commit. If some calls are slow,
// the results of calls that finished earlier are stored in a commit of their own.
func TestCommitsOfABatch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sleeps []time.Duration
		serial bool
		want   int
	}{
		"fast":                      {[]time.Duration{0, 1, 2}, false, 4},
		"slow together":             {[]time.Duration{time.Second, time.Second}, false, 4},
		"one slow":                  {[]time.Duration{0, time.Second}, false, 5},
		"two slow, far apart":       {[]time.Duration{0, time.Second, 2 * time.Second}, false, 6},
		"fast one by one":           {[]time.Duration{0, 1, 2}, true, 4},
		"slow and fast, one by one": {[]time.Duration{time.Second, 0}, true, 6}, // the second call begins only after the first has ended
		"alone and slow":            {[]time.Duration{time.Second}, false, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				commits := 0
				store := &watchedStore{memstore.New(nil), func(*belay.Commit) { commits++ }}
				var tools []belay.Tool
				var names []string
				for i, d := range test.sleeps {
					names = append(names, fmt.Sprintf("tool%d", i))
					tools = append(tools, anyTool(names[i], func(context.Context, *belay.Invocation) (belay.Result, error) {
						time.Sleep(d)
						return belay.Result{Text: "ok"}, nil
					}, &belay.ToolTraits{Serial: test.serial}))
				}
				agent := agentOf(t, scriptOf(calls(names...), says("done")), &belay.Options{Store: store, Tools: tools})
				say(t, agent.Session("s"), "a")
				if commits != test.want {
					t.Errorf("the turn took %d commits, want %d", commits, test.want)
				}
			})
		})
	}
}

// SPEC L-01: the result of a tool is stored before a slow hook at tool.post runs, unless a
// hook may rewrite the result. The process that resumes the turn runs the hook, and does
// not run the tool.
func TestAResultSurvivesAKillInASlowToolPost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		calls    []string
		rewriter bool
		abandon  bool
		want     string
	}{
		"one call":                        {[]string{"run"}, false, false, "run ran on {}"},
		"two calls":                       {[]string{"run", "run"}, false, false, "run ran on {}"},
		"a turn that is abandoned":        {[]string{"run"}, false, true, "run ran on {}"},
		"what may be rewritten is a risk": {[]string{"run"}, true, false, "The call may have run"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, hold := memstore.New(nil), make(chan struct{})
				post := func(asked *logbook, wait func()) hook.Subscription {
					opts := &hook.Options{Kind: hook.HandlerCommand}
					if test.rewriter {
						opts.Capabilities = hook.CanRewriteOutput
					}
					return belay.ToolPost.On("post", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
						asked.notef("%s", r.Text())
						wait()
						return belay.ToolReaction{}, nil
					}, opts)
				}
				var first, second, asked logbook
				killedIn(t, store, agentOf(t, scriptOf(calls(test.calls...)), &belay.Options{
					Store: store, Tools: []belay.Tool{noting(&first, "run", nil)}, Hooks: []hook.Subscription{post(&asked, func() { <-hold })},
				}), hold)
				agent := agentOf(t, scriptOf(says("done")), &belay.Options{
					Store: store, Tools: []belay.Tool{noting(&second, "run", nil)}, Hooks: []hook.Subscription{post(&asked, func() {})},
				})
				if test.abandon {
					if _, err := agent.Session("s").Abandon(t.Context()); err == nil {
						say(t, agent.Session("s"), "b")
					}
				} else {
					takeTurn(t, agent.Session("s").Resume(t.Context()), belay.EndTurn)
				}
				results := storedResults(t, agent.Session("s"))
				if len(results) != len(test.calls) {
					t.Fatalf("there are %d results, want %d", len(results), len(test.calls))
				}
				for _, r := range results {
					if !strings.Contains(r.Text, test.want) {
						t.Errorf("the result is %q, want %q", r.Text, test.want)
					}
				}
				wantEqual(t, "what ran again", second.all(), nil)
				if n := len(asked.all()); n != 2*len(test.calls) {
					t.Errorf("tool.post was asked %d times, want once by each process for each call", n)
				}
			})
		})
	}
}

// SPEC L-01, R-04: the reminders of a finished call, and the messages that its tool added,
// are stored with its result. The model gets them once.
func TestAFinishedCallLeavesItsRemindersOnce(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, hold := memstore.New(nil), make(chan struct{})
				post := belay.ToolPost.On("post", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
					return belay.ToolReaction{Aside: belay.Aside{Context: belay.Tell("heed " + r.Tool())}}, nil
				}, nil)
				opts := func(hold chan struct{}) *belay.Options {
					return &belay.Options{Store: store, Hooks: []hook.Subscription{post}, Tools: []belay.Tool{
						anyTool("adds", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
							return belay.Result{Text: "ok"}, call.Controls().Append(belay.Text("an added message"))
						}, nil),
						anyTool("endless", func(context.Context, *belay.Invocation) (belay.Result, error) {
							<-hold
							return belay.Result{Text: "ok"}, nil
						}, nil),
					}}
				}
				model := scriptOf(calls("endless", "adds"), says("done"))
				agent := agentOf(t, model, opts(hold))
				over := make(chan struct{})
				go func() {
					defer close(over)
					_, _ = agent.Session("s").Turn(t.Context(), "a")
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				if killed {
					store.Expire("s")
					model = scriptOf(says("done"))
					agent = agentOf(t, model, opts(hold))
					takeTurn(t, agent.Session("s").Resume(t.Context()), belay.EndTurn)
				}
				close(hold)
				<-over
				requests := model.Requests()
				text := fmt.Sprint(remindersOf(requests[len(requests)-1].Messages))
				if strings.Count(text, "heed adds") != 1 || strings.Count(text, "heed endless") != 1 {
					t.Errorf("the reminders are %s", text)
				}
				added := 0
				for _, m := range transcript(t, agent.Session("s")) {
					if m.Text() == "an added message" {
						added++
					}
				}
				if added != 1 {
					t.Errorf("the added message is stored %d times", added)
				}
			})
		})
	}
}

// SPEC L-01, L-07: the usage of a response counts even if the turn cannot use the response.
func TestEveryPaidResponseIsCounted(t *testing.T) {
	t.Parallel()
	paid := belay.Usage{In: 1000, Out: 10}
	whole := func(parts ...belay.Part) *belay.Response {
		return &belay.Response{Parts: parts, StopReason: belay.StopEnd, Usage: paid}
	}
	tests := map[string]struct {
		first func(yield func(belay.Chunk, error) bool)
		want  int // all input tokens; the second attempt has 7
	}{
		"an empty response": {func(yield func(belay.Chunk, error) bool) { yield(belay.Chunk{Response: whole()}, nil) }, 1007},
		"one that breaks after its end": {func(yield func(belay.Chunk, error) bool) {
			if yield(belay.Chunk{Response: whole(belay.Text("hi"))}, nil) {
				yield(belay.Chunk{}, &belay.ModelError{Kind: belay.ModelNetwork, Err: context.DeadlineExceeded})
			}
		}, 1007},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				agent := agentOf(t, modelFunc(func(_ context.Context, _ *belay.Request, yield func(belay.Chunk, error) bool) {
					if asked++; asked == 1 {
						test.first(yield)
						return
					}
					rest := whole(belay.Text("done"))
					rest.Usage = belay.Usage{In: 7}
					yield(belay.Chunk{Response: rest}, nil)
				}), nil)
				if turn := say(t, agent.Session("s"), "a"); turn.Usage.In != test.want || agent.Session("s").Usage().In != test.want {
					t.Errorf("the turn took %+v, and the session %+v", turn.Usage, agent.Session("s").Usage())
				}
			})
		})
	}
	t.Run("one that came when the turn was aborted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		agent := agentOf(t, modelFunc(func(_ context.Context, _ *belay.Request, yield func(belay.Chunk, error) bool) {
			cancel()
			yield(belay.Chunk{Response: whole(belay.Text("hi"))}, nil)
		}), nil)
		turn, err := agent.Session("s").Turn(ctx, "a")
		if err == nil || turn.Reason != belay.EndAborted || turn.Usage.In != paid.In || agent.Session("s").Usage().In != paid.In {
			t.Errorf("the turn is %+v, the session took %+v: %v", turn, agent.Session("s").Usage(), err)
		}
	})
}
