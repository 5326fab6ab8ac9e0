package toolbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/toolbox"
)

// asks returns a model step with one call of ask_user for each input.
func asks(inputs ...string) scripted.Step {
	var step scripted.Step
	for _, input := range inputs {
		step.Calls = append(step.Calls, scripted.Call{Tool: toolbox.AskUserTool, Input: input})
	}
	return step
}

const (
	when  = `{"question": "When shall it go out?"}`
	where = `{"question": "Where to?", "options": ["staging", "production"]}`
)

// asking returns an agent with ask_user, whose model plays the given steps.
func asking(t *testing.T, opts *belay.Options, steps ...scripted.Step) *belay.Agent {
	t.Helper()
	opts.Extensions = append(opts.Extensions, toolbox.AskUser())
	agent, err := belay.New(scripted.New(append(steps, scripted.Step{Text: "Done."}), nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close(context.Background()) })
	return agent
}

// ends returns a function that fails the test unless the turn ends with the wanted
// reason.
func ends(t *testing.T, want belay.EndReason) func(*belay.Turn, error) *belay.Turn {
	t.Helper()
	return func(turn *belay.Turn, err error) *belay.Turn {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if turn.Reason != want {
			t.Fatalf("the turn ended %s (%s), want %s", turn.Reason, turn.Why, want)
		}
		return turn
	}
}

// told returns the results of ask_user, in order. A failure begins with its class.
func told(t *testing.T, session *belay.Session) []string {
	t.Helper()
	var all []string
	for m, err := range session.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range m.Parts {
			if part.Result == nil {
				continue
			}
			text, _, _ := strings.Cut(part.Result.Text, "\n")
			if part.Result.IsError {
				text = string(part.Result.Class) + ": " + text
			}
			all = append(all, text)
		}
	}
	return all
}

func wantTold(t *testing.T, session *belay.Session, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, told(t, session)); diff != "" {
		t.Errorf("what the model got (-want +got):\n%s", diff)
	}
}

// answers is an asker with fixed answers. It records the questions.
type answers struct {
	says  []string
	err   error
	asked []string
}

func (a *answers) Ask(_ context.Context, in belay.Inquiry) (string, error) {
	a.asked = append(a.asked, in.Text)
	if a.err != nil {
		return "", a.err
	}
	said := a.says[0]
	a.says = a.says[1:]
	return said, nil
}

// SPEC E-07
func TestAskUserIsAnsweredInGo(t *testing.T) {
	t.Parallel()
	const options = "Where to?\n  1. staging\n  2. production"
	const none = "the answer is not valid: it is none of the options: staging, production, or a number from 1 to 2\n" + options
	for _, test := range []struct {
		rule  string
		input string
		says  answers
		asked []string
		told  string
	}{
		{"words are the answer", when, answers{says: []string{" On Thursday. "}}, []string{"When shall it go out?"}, "On Thursday."},
		{"an option by its number", where, answers{says: []string{"2"}}, []string{options}, "production"},
		{"an option by its words", where, answers{says: []string{"Staging"}}, []string{options}, "staging"},
		{"an option that is a number is meant by its words", `{"question": "How many?", "options": ["2", "1"]}`, answers{says: []string{"1"}}, []string{"How many?\n  1. 2\n  2. 1"}, "1"},
		{"what is none of the options is told, and asked again", where, answers{says: []string{"the moon", "1"}}, []string{options, none}, "staging"},
		{"but not for ever", where, answers{says: []string{"0", "3", "-1"}}, []string{options, none, none}, `denied: Denied by "ann": the user gave no valid answer`},
		{"an empty answer is none", when, answers{says: []string{" "}}, []string{"When shall it go out?"}, `denied: Denied by "ann": the user gave no answer`},
		{"an asker that fails is no answer", when, answers{err: errors.New("the line is dead")}, []string{"When shall it go out?"}, `denied: Denied by "belay": asking the approver failed: no answer: the line is dead`},
		{"nobody is asked an empty question", `{"question": " "}`, answers{}, nil, `denied: Denied by "ask_user": the question is empty`},
		{"nobody is asked to choose among the same", `{"question": "Sure?", "options": ["yes", "Yes "]}`, answers{}, nil, `denied: Denied by "ask_user": option 2, "Yes", occurs twice`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent := asking(t, &belay.Options{Approver: toolbox.Answering("ann", &test.says, nil)}, asks(test.input))
			session := agent.Session("s")
			ends(t, belay.EndTurn)(session.Turn(t.Context(), "go"))
			if diff := cmp.Diff(test.asked, test.says.asked); diff != "" {
				t.Errorf("what was asked (-want +got):\n%s", diff)
			}
			wantTold(t, session, test.told)
		})
	}
}

// Calls of other tools go to the other approver. If there is none, they are denied.
func TestAnsweringLeavesOtherCallsAlone(t *testing.T) {
	t.Parallel()
	other := belay.Question{Approval: belay.Approval{ID: "ap-1", Tool: "deploy"}, Input: []byte(when)}
	if d, err := toolbox.Answering("ann", &answers{}, nil).Approve(t.Context(), other); err == nil || d.Allow {
		t.Errorf("without another approver it is decided %+v, %v", d, err)
	}
	yes := approves(func(q belay.Question) belay.Decision { return belay.Decision{Allow: true, Reason: q.ID} })
	if d, err := toolbox.Answering("ann", &answers{}, yes).Approve(t.Context(), other); err != nil || !d.Allow || d.Reason != "ap-1" {
		t.Errorf("the other approver's decision is %+v, %v", d, err)
	}
	if _, err := toolbox.Answer(other, "ann", "Thursday"); err == nil || !strings.Contains(err.Error(), `"ap-1" is for a call of deploy and is not a question`) {
		t.Errorf("answering another call: %v", err)
	}
}

type approves func(belay.Question) belay.Decision

func (f approves) Approve(_ context.Context, q belay.Question) (belay.Decision, error) {
	return f(q), nil
}

// answer answers a question of a parked turn.
func answer(t *testing.T, agent *belay.Agent, q belay.Question, said string) (belay.Approval, error) {
	t.Helper()
	d, err := toolbox.Answer(q, "ann", said)
	if err != nil {
		return belay.Approval{}, err
	}
	return agent.Decide(t.Context(), d)
}

// Without an asker, the turn parks, and the answer resumes it. This works with stores
// that list approvals, and with stores that do not.
//
// SPEC E-07
func TestAskUserIsAnsweredLater(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]belay.Store{"memstore": memstore.New(nil), "the agent's own store": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := asking(t, &belay.Options{Store: store, OnAsk: belay.AskPark}, asks(where))
			session := agent.Session("s")
			turn := ends(t, belay.EndParked)(session.Turn(t.Context(), "go"))
			if len(turn.Waits) != 1 {
				t.Fatalf("the turn waits for %d answers, want 1", len(turn.Waits))
			}
			q := turn.Waits[0]
			if q.Reason != "Where to?" || q.By != toolbox.AskUserTool {
				t.Errorf("%s asks %q", q.By, q.Reason)
			}
			for _, said := range []string{"the moon", "", "3", strings.Repeat("x", toolbox.LongestAnswer+1), "\xff"} {
				if _, err := answer(t, agent, q, said); !errors.Is(err, toolbox.ErrAnswer) {
					t.Errorf("the answer %.10q: %v, want that it will not do", said, err)
				}
			}
			ends(t, belay.EndParked)(belay.Await(session.Resume(t.Context()))) // the invalid answers did not count
			if _, err := answer(t, agent, q, "2"); err != nil {
				t.Fatal(err)
			}
			stands, err := answer(t, agent, q, "staging")
			if !errors.Is(err, belay.ErrDecided) || stands.Decided == nil || stands.Decided.Reason != "production" {
				t.Errorf("a second answer: %v, and %+v stands, want the first", err, stands.Decided)
			}
			ends(t, belay.EndTurn)(belay.Await(session.Resume(t.Context())))
			wantTold(t, session, "production")
			if _, err := belay.Await(session.Resume(t.Context())); !errors.Is(err, belay.ErrNoTurn) {
				t.Errorf("resumed once more: %v, want that there is nothing to go on with", err)
			}
			wantTold(t, session, "production")
		})
	}
}

// A store on disk keeps the longest allowed answer completely, even if another process
// gives the answer. A longer answer is rejected, not cut.
//
// SPEC E-07
func TestAskUserKeepsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "belay.db")
	open := func(do func(*belay.Agent)) { // like a process that starts and ends
		t.Helper()
		store, err := sqlite.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		model := scripted.New([]scripted.Step{asks(when), {Text: "Done."}}, &scripted.Options{FollowTranscript: true})
		agent, err := belay.New(model, &belay.Options{Store: store, OnAsk: belay.AskPark, Extensions: []belay.Extension{toolbox.AskUser()}})
		if err != nil {
			t.Fatal(err)
		}
		do(agent)
		if err := errors.Join(agent.Close(t.Context()), store.Close()); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("語", toolbox.LongestAnswer)
	var q belay.Question
	open(func(agent *belay.Agent) {
		q = ends(t, belay.EndParked)(agent.Session("s").Turn(t.Context(), "go")).Waits[0]
	})
	open(func(agent *belay.Agent) {
		for _, said := range []string{long + "語", "\xff", " "} {
			if _, err := answer(t, agent, q, said); !errors.Is(err, toolbox.ErrAnswer) {
				t.Errorf("the answer %.10q: %v, want that it will not do", said, err)
			}
		}
		if _, err := answer(t, agent, q, long); err != nil {
			t.Fatal(err)
		}
	})
	open(func(agent *belay.Agent) {
		ends(t, belay.EndTurn)(belay.Await(agent.Session("s").Resume(t.Context())))
		wantTold(t, agent.Session("s"), long)
	})
}

// Two questions in one message have different ids. They can be answered in any order.
//
// SPEC E-07
func TestAskUserTwice(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		agent := asking(t, &belay.Options{OnAsk: belay.AskPark}, asks(when, where))
		session := agent.Session("s")
		turn := ends(t, belay.EndParked)(session.Turn(t.Context(), "go"))
		if len(turn.Waits) != 2 || turn.Waits[0].ID == turn.Waits[1].ID {
			t.Fatalf("the turn waits for %+v, want two questions", turn.Waits)
		}
		says := []string{"Thursday", "1"}
		if _, err := answer(t, agent, turn.Waits[order[0]], says[order[0]]); err != nil {
			t.Fatal(err)
		}
		still := ends(t, belay.EndParked)(belay.Await(session.Resume(t.Context())))
		if len(still.Waits) != 1 || still.Waits[0].ID != turn.Waits[order[1]].ID {
			t.Errorf("answered in the order %v, the turn waits for %+v, want the other question as it was", order, still.Waits)
		}
		if _, err := answer(t, agent, turn.Waits[order[1]], says[order[1]]); err != nil {
			t.Fatal(err)
		}
		ends(t, belay.EndTurn)(belay.Await(session.Resume(t.Context())))
		wantTold(t, session, "Thursday", "staging")
	}
}

// A question without an answer expires, in a parked turn and in a waiting turn.
//
// SPEC E-07
func TestAskUserExpires(t *testing.T) {
	t.Parallel()
	const expired = `denied: Denied by "expiry": nobody decided before the approval expired`
	synctest.Test(t, func(t *testing.T) {
		agent := asking(t, &belay.Options{OnAsk: belay.AskPark, ApprovalExpiry: time.Hour}, asks(when))
		session := agent.Session("s")
		turn := ends(t, belay.EndParked)(session.Turn(t.Context(), "go"))
		<-time.After(time.Hour)
		if _, err := answer(t, agent, turn.Waits[0], "Thursday"); !errors.Is(err, belay.ErrExpired) {
			t.Errorf("an answer after the expiry: %v", err)
		}
		ends(t, belay.EndTurn)(belay.Await(session.Resume(t.Context())))
		wantTold(t, session, expired)
	})
	synctest.Test(t, func(t *testing.T) {
		agent := asking(t, &belay.Options{Approver: toolbox.Answering("ann", silent{}, nil), ApprovalExpiry: time.Hour}, asks(when))
		session := agent.Session("s")
		ends(t, belay.EndTurn)(session.Turn(t.Context(), "go"))
		wantTold(t, session, expired)
	})
}

// silent is an asker that never answers.
type silent struct{}

func (silent) Ask(ctx context.Context, _ belay.Inquiry) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// If there is no one to ask, the model gets an error.
func TestAskUserWithNobodyThere(t *testing.T) {
	t.Parallel()
	agent := asking(t, &belay.Options{}, asks(when))
	session := agent.Session("s")
	ends(t, belay.EndTurn)(session.Turn(t.Context(), "go"))
	wantTold(t, session, `denied: Denied by "belay": When shall it go out? (ask_user asks for approval, but no approver is available)`)
}

// An approval without a text is not an answer. An approval for the whole session is not
// one either.
func TestAskUserTakesNoYesForAnAnswer(t *testing.T) {
	t.Parallel()
	agent := asking(t, &belay.Options{OnAsk: belay.AskPark}, asks(when), asks(where), asks(when))
	session := agent.Session("s")
	turn := ends(t, belay.EndParked)(session.Turn(t.Context(), "go"))
	yes := func(q belay.Question, reason string, scope belay.ScopeKind) {
		t.Helper()
		if _, err := agent.Decide(t.Context(), belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann", Reason: reason, Scope: belay.ApprovalScope{Kind: scope}}); err != nil {
			t.Fatal(err)
		}
	}
	yes(turn.Waits[0], "", belay.ScopeOnce)
	turn = ends(t, belay.EndParked)(belay.Await(session.Resume(t.Context())))
	yes(turn.Waits[0], "the moon", belay.ScopeSession)
	ends(t, belay.EndTurn)(belay.Await(session.Resume(t.Context())))
	wantTold(t, session,
		`failed: The user answered "", but it is empty. Ask again, or continue without an answer.`,
		`failed: The user answered "the moon", but it is none of the options: staging, production, or a number from 1 to 2. Ask again, or continue without an answer.`,
		`unavailable: Nobody answered the question. Continue as well as you can without an answer.`)
}

// failing is a store that fails from a certain moment on, as if the process had ended.
type failing struct {
	*memstore.Store

	now atomic.Bool
}

func (f *failing) Commit(ctx context.Context, c *belay.Commit) error {
	if f.now.Load() {
		return errors.New("the power is gone")
	}
	return f.Store.Commit(ctx, c)
}

// An answer stays valid even if the process ends before the model gets it. The next
// process reads the answer from the store, and does not ask again.
//
// SPEC E-07
func TestAskUserRemembersAcrossAnEnd(t *testing.T) {
	t.Parallel()
	store := &failing{Store: memstore.New(nil)}
	cut := belay.ToolPost.On("cut", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
		store.now.Store(true)
		return belay.ToolReaction{}, nil
	}, nil)
	first := asking(t, &belay.Options{Store: store, Approver: toolbox.Answering("ann", &answers{says: []string{"Thursday"}}, nil), Hooks: []hook.Subscription{cut}}, asks(when))
	if _, err := first.Session("s").Turn(t.Context(), "go"); err == nil {
		t.Fatal("the turn did not fail")
	}
	_ = first.Close(t.Context())
	store.now.Store(false)

	again := &answers{}
	second := asking(t, &belay.Options{Store: store, Approver: toolbox.Answering("ann", again, nil)})
	ends(t, belay.EndTurn)(belay.Await(second.Session("s").Resume(t.Context())))
	wantTold(t, second.Session("s"), "Thursday")
	if len(again.asked) > 0 {
		t.Errorf("the question was put again: %q", again.asked)
	}
}

// Outside a turn, a call of the tool has no answer.
func TestAskUserToolAlone(t *testing.T) {
	t.Parallel()
	brings, ok := toolbox.AskUser().(belay.ToolExtension)
	if !ok || len(brings.Tools()) != 1 {
		t.Fatal("it brings no tool")
	}
	r, err := brings.Tools()[0].Call(t.Context(), &belay.Invocation{Tool: toolbox.AskUserTool, Input: []byte(when)})
	if err != nil || r.Class != belay.ClassUnavailable {
		t.Errorf("the result is %+v, %v", r, err)
	}
}
