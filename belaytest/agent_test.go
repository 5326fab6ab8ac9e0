package belaytest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// The automatic checks of the kit pass and fail when they should.
func TestChecksOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		test func(t testing.TB)
		says []string // texts in the failure; empty if the test must pass
	}{
		{
			"a script that is played to its end is fine",
			func(t testing.TB) { belaytest.New(t, belaytest.Script(belaytest.Says("hello")), nil).Say("hello") },
			nil,
		},
		{
			"steps that are left fail the test",
			func(t testing.TB) {
				belaytest.New(t, belaytest.Script(belaytest.Says("hello"), belaytest.Says("more")), nil).Say("hello")
			},
			[]string{"1 steps of the script were not played"},
		},
		{
			"a model that is no script has none left",
			func(t testing.TB) {
				turn := belaytest.New(t, plainModel{belaytest.Script(belaytest.Says("hello"), belaytest.Says("more"))}, nil).Say("hello")
				turn.Said("hello")
			},
			nil,
		},
		{
			"an agent that cannot be made ends the test",
			func(t testing.TB) {
				belaytest.New(t, belaytest.Script(), &belay.Options{OnAsk: "maybe"}).Say("hello")
			},
			[]string{"the agent cannot be made", "maybe"},
		},
		{
			"an agent needs a model",
			func(t testing.TB) { belaytest.New(t, nil, nil).Say("hello") },
			[]string{"the agent cannot be made", "the model is nil"},
		},
		{
			"an error that nothing asserts fails the test",
			func(t testing.TB) { belaytest.New(t, belaytest.Script(), nil).Say("hello") },
			[]string{"the turn failed, but the test does not call Failed", "the script ends after step 0"},
		},
		{
			"an error may be asserted",
			func(t testing.TB) {
				belaytest.New(t, belaytest.Script(), nil).Say("hello").Failed("the script ends after step 0")
			},
			nil,
		},
		{
			"an error may be asserted by how the turn ended",
			func(t testing.TB) { belaytest.New(t, belaytest.Script(), nil).Say("hello").Ended(belay.EndError) },
			nil,
		},
		{
			"Failed wants the text",
			func(t testing.TB) { belaytest.New(t, belaytest.Script(), nil).Say("hello").Failed("no disk") },
			[]string{`want an error that says "no disk", got`},
		},
		{
			"a turn that is refused before it begins has failed",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(), nil)
				gone := agent.Session("gone")
				if err := gone.Close(t.Context()); err != nil {
					t.Errorf("%v", err)
				}
				turn := agent.Take(func(ctx context.Context) iter.Seq2[belay.Event, error] { return gone.Run(ctx, "hello") })
				turn.Failed("closed")
				turn.Ended(belay.EndTurn)
			},
			[]string{"want a turn that ends end_turn, but it did not begin: ", "closed"},
		},
		{
			"records that cannot be read end the test",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{Store: plainStore{memstore.New(nil)}})
				agent.Say("hello").HookRan("friday", hook.Completed)
			},
			[]string{"the records of hooks cannot be read: the agent has no journal"},
		},
		{
			"a transcript that is not well-formed fails the test",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(belaytest.Calls("write", nil), belaytest.Says("hello")), &belay.Options{
					Store: forgetful{memstore.New(nil)}, Tools: []belay.Tool{belaytest.NewTool("write")},
				})
				agent.Say("hello").Ended(belay.EndTurn)
			},
			[]string{"the transcript is not well-formed", "want the results of call_1", "call_1: write {}"},
		},
		{
			"a request that is not well-formed fails the test",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{Store: hollow{memstore.New(nil)}})
				agent.Say("hello").Ended(belay.EndTurn)
			},
			[]string{"request 1 of the turn is not well-formed", "message 1 (injected): it is empty"},
		},
		{
			"a failed attempt is repeated without a pause",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(
					scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelOverloaded}}, belaytest.Says("hello"),
				), nil)
				agent.Timeout = 900 * time.Millisecond // the default pause before a retry would take one second
				turn := agent.Say("hello")
				turn.Ended(belay.EndTurn)
				turn.Request(2).UserSays("hello")
			},
			nil,
		},
		{
			"a journal of one's own is read",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{
					Hooks: friday(), Runtime: &hook.RuntimeOptions{Journal: hook.NewMemoryJournal(10)}, Store: plainStore{memstore.New(nil)},
				})
				agent.Say("hello").HookRan("friday", hook.Completed)
			},
			nil,
		},
		{
			"the turns of other sessions are taken too",
			func(t testing.TB) {
				agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{Hooks: friday()})
				turn := agent.Take(func(ctx context.Context) iter.Seq2[belay.Event, error] {
					return agent.Session("other").Run(ctx, "hello")
				})
				turn.Said("hello")
				turn.HookRan("friday", hook.Completed)
				if agent.Messages() != nil || agent.Transcript() != "" {
					t.Errorf("the session of the test has messages")
				}
			},
			nil,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, failures(t, test.test), test.says...)
		})
	}
}

// plainModel is a model that has no other methods than Stream.
type plainModel struct{ belay.Model }

// plainStore is a store without a journal.
type plainStore struct{ belay.Store }

func TestTurnIsBoundInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wantFailure(t, failures(t, func(t testing.TB) {
			agent := belaytest.New(t, belaytest.Script(scripted.Step{Fault: &scripted.Fault{Hang: true}}), nil)
			start := time.Now()
			turn := agent.Say("hello")
			if took := time.Since(start); took != 10*time.Second {
				t.Errorf("the turn took %s", took)
			}
			turn.Ended(belay.EndAborted)
			turn.Failed("the turn took longer than 10s")
		}))
	})
}

// A hook that ignores its context cannot block the test.
func TestTurnThatHeedsNothingEndsTheTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		got := failures(t, func(t testing.TB) {
			agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{Hooks: []hook.Subscription{
				belay.UserPromptSubmit.On("stubborn", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
					<-release
					return belay.PromptVerdict{}, nil
				}, nil),
			}})
			agent.Timeout = time.Minute
			agent.Say("hello")
			t.Errorf("the test goes on")
		})
		wantFailure(t, got, "the turn was aborted after 1m0s and then did not end", "TestTurnThatHeedsNothingEndsTheTest.func1.1.1")
		close(release)
	})
}

func TestLeakedGoroutinesFailTheTest(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	leaks := belaytest.NewTool("leaks")
	leaks.Answer = func(context.Context, *belay.Invocation, int) (belay.Result, error) {
		go func() { <-release }()
		return belay.Result{Text: "started"}, nil
	}
	got := failures(t, func(t testing.TB) {
		agent := belaytest.New(t, belaytest.Script(belaytest.Calls("leaks", nil), belaytest.Says("done")), &belay.Options{Tools: []belay.Tool{leaks}})
		agent.Say("hello").Ended(belay.EndTurn)
	})
	wantFailure(t, got, "goroutines of the agent's turns are left", "TestLeakedGoroutinesFailTheTest")
	// A parallel test does not see these goroutines.
	wantFailure(t, failures(t, func(t testing.TB) {
		belaytest.New(t, belaytest.Script(belaytest.Says("hello")), nil).Say("hello")
	}))
	close(release)
}

func TestParkedTurnIsDecidedAndResumed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		answer belay.Decision
		check  func(t *testing.T, turn *belaytest.Turn, tool *belaytest.Tool)
	}{
		{"a yes lets the call run", belaytest.Yes(), func(t *testing.T, turn *belaytest.Turn, tool *belaytest.Tool) {
			t.Helper()
			turn.Result("write", "ok")
			tool.Ran(t, "{}")
		}},
		{"a no denies it", belaytest.No("not today"), func(t *testing.T, turn *belaytest.Turn, tool *belaytest.Tool) {
			t.Helper()
			turn.Denied("write", "test", "not today")
			tool.Ran(t)
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			tool := belaytest.NewTool("write")
			agent := belaytest.New(t, belaytest.Script(belaytest.Calls("write", nil), belaytest.Says("well")), &belay.Options{
				Tools: []belay.Tool{tool}, OnAsk: belay.AskPark,
				Hooks: []hook.Subscription{belay.ToolPre.On("ask", answer(belay.Ask("sure?")), nil)},
			})
			parked := agent.Say("go")
			parked.Ended(belay.EndParked)
			if calls := parked.Calls(); len(calls) != 1 || calls[0].Result != nil {
				t.Errorf("the calls are %+v, want one without a result", calls)
			}
			parked.Decide(test.answer)
			turn := agent.Resume()
			turn.Ended(belay.EndTurn)
			turn.Called("write")
			test.check(t, turn, tool)
		})
	}
}

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "turn.txt")
	run := func() string {
		return failures(t, func(t testing.TB) {
			agent, _ := conversation(t)
			agent.Golden(file)
		})
	}
	wantFailure(t, run(), "there is no golden file", "run the test once with BELAYTEST_UPDATE=1", "user\n  what is to do?")
	t.Setenv("BELAYTEST_UPDATE", "1")
	wantFailure(t, run())
	t.Setenv("BELAYTEST_UPDATE", "")
	wantFailure(t, run())
	if err := os.WriteFile(file, []byte("user\n  what is new?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, run(), "from line 2 on:\n-   what is new?\n+   what is to do?\n", "BELAYTEST_UPDATE=1")
	file = t.TempDir()
	wantFailure(t, run(), "the golden file cannot be read")
	t.Setenv("BELAYTEST_UPDATE", "1")
	wantFailure(t, run(), "the golden file cannot be written")
}

// Golden compares the transcript of a conversation with a file.
func TestTranscript(t *testing.T) {
	t.Parallel()
	agent, _ := conversation(t)
	agent.Golden("testdata/conversation.txt")
}

var errBroken = errors.New("broken on purpose")

func TestStoreThatCannotBeReadEndsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, failures(t, func(t testing.TB) {
		agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{Store: unreadable{memstore.New(nil)}})
		agent.Say("hello")
	}), "the transcript of session \"test\" cannot be read: broken on purpose")
}

type unreadable struct{ belay.Store }

func (unreadable) Read(context.Context, string, int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) { yield(nil, errBroken) }
}

// forgetful is a store that loses results.
type forgetful struct{ belay.Store }

func (s forgetful) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		for m, err := range s.Store.Read(ctx, session, after) {
			if (err != nil || m.Kind != belay.KindResults) && !yield(m, err) {
				return
			}
		}
	}
}

// hollow is a store whose sessions begin with a message without content.
type hollow struct{ belay.Store }

func (s hollow) Open(ctx context.Context, session string) (*belay.Stored, error) {
	stored, err := s.Store.Open(ctx, session)
	if err == nil && stored.Last == 0 {
		stored.Messages = []*belay.Message{{Seq: 1, Role: belay.RoleUser, Kind: belay.KindInjected}}
	}
	return stored, err
}
