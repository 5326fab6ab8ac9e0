package looptest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// This test tries every misbehaviour that hooktest knows, at every phase of a turn, in each
// failure mode, as a blocking handler and with a deadline. The turn must end as the failure
// mode says, and the journal must have the run. No goroutine may be left, because that
// fails the synctest bubble. The session must be able to run another turn.
//
// SPEC H-10, H-11, H-12
func TestMisbehaviourInATurn(t *testing.T) {
	t.Parallel()
	misbehaveInTurn(t, belay.SessionStart)
	misbehaveInTurn(t, belay.UserPromptSubmit)
	misbehaveInTurn(t, belay.TurnPrePolicy)
	misbehaveInTurn(t, belay.TurnPrePromptContext)
	misbehaveInTurn(t, belay.TurnPostPreflightPromptContext)
	misbehaveInTurn(t, belay.TurnPreToolMaterialization)
	misbehaveInTurn(t, belay.TurnPrePromptCompile)
	misbehaveInTurn(t, belay.TurnPostPromptCompile)
	misbehaveInTurn(t, belay.ModelPre)
	misbehaveInTurn(t, belay.ModelPost)
	misbehaveInTurn(t, belay.ToolPre)
	misbehaveInTurn(t, belay.ApprovalRequest)
	misbehaveInTurn(t, belay.ApprovalDecided)
	misbehaveInTurn(t, belay.ToolPost)
	misbehaveInTurn(t, belay.ToolDenied)
	misbehaveInTurn(t, belay.TurnStop)
	misbehaveInTurn(t, belay.TurnPreCompaction)
	misbehaveInTurn(t, belay.TurnPostCompaction)
	misbehaveInTurn(t, belay.TurnPostTurn)
	misbehaveInTurn(t, belay.Error)
}

// misbehaved is one misbehaviour in a turn, with a phase, a failure mode and an execution.
type misbehaved[In any, Out hook.Output] struct {
	hooktest.Misbehaviour[In, Out]

	phase     hook.Phase[In, Out]
	mode      hook.Failure
	execution hook.Execution
	rewrites  bool
}

const saidNevertheless = "said nevertheless"

func misbehaveInTurn[In any, Out hook.Output](t *testing.T, p hook.Phase[In, Out]) {
	t.Helper()
	answer := withNote(p, belay.Note{Output: saidNevertheless, Audit: []hook.Audit{{Code: "test.said"}}}).(Out)
	modes := []hook.Failure{hook.Open, p.Fallback(answer)}
	if p.Info().Kind != hook.Observe {
		modes = append(modes, hook.Closed)
	}
	t.Run(p.Name(), func(t *testing.T) {
		t.Parallel()
		tried := make(map[codes.Code]bool)
		for i, m := range hooktest.Misbehaviours(p, answer) {
			again := tried[m.Code] && !m.Deadline
			tried[m.Code] = true
			for _, mode := range modes {
				if again && mode != modes[len(modes)-1] {
					continue // misbehaviours with the same code are tried only in the strictest mode
				}
				for _, execution := range []hook.Execution{hook.Blocking, hook.Deadline} {
					if m.Abandoned && execution == hook.Blocking {
						continue // the dispatch would wait for the handler forever
					}
					if execution == hook.Deadline && !m.Deadline && m.Code != codes.Panic && m.Code != codes.Goexit {
						continue // it makes no difference on which goroutine the handler runs
					}
					if mode.String() == "fallback" && m.Capabilities == hook.NoCapability {
						continue // Install rejects this fallback
					}
					t.Run(strings.Join([]string{m.Name, mode.String(), execution.String()}, " "), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							one := hooktest.Misbehaviours(p, answer)[i] // it must be made in the bubble that uses it
							misbehaved[In, Out]{one, p, mode, execution, false}.try(t)
						})
					})
				}
			}
		}
	})
}

// try runs a turn in which the handler misbehaves, and one without the handler.
func (m misbehaved[In, Out]) try(t *testing.T) {
	r := newRich(t, nil)
	defer m.Release()
	m.Bind(r.agent.Hooks())
	capabilities := m.Capabilities
	if m.rewrites {
		capabilities = hook.CanRewriteOutput | hook.CanAudit
	}
	lease, err := r.agent.Hooks().Install(m.phase.On("misbehaves", m.Handler, &hook.Options{
		Execution: m.execution, Failure: m.mode, Capabilities: capabilities, Timeout: time.Second, Priority: -500,
	}))
	if err != nil {
		t.Fatal(err)
	}
	says := richWork
	if m.phase.Name() == belay.Error.Name() {
		says = richFail
	}
	turn, err, returned := onAGoroutine(func() (*belay.Turn, error) { return r.session.Turn(t.Context(), says) })
	m.judge(t, r, turn, err, returned)
	reentered := m.Code == "" && m.phase.Name() == belay.TurnPostTurn.Name() // the handler itself fired the phase a second time
	if got := r.phases.ends(); len(got) != 1 && m.phase.Name() != belay.SessionStart.Name() && !reentered {
		t.Errorf("turn.post_turn got %v, want one turn", got)
	}
	r.sound(t)
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	r.goesOn(t)
	m.journal(t, r)
	if m.mode.String() == "fallback" && m.Code != "" && returned && m.Code != codes.Goexit && !r.model.told(saidNevertheless) {
		t.Error("no request carries what the fallback shows")
	}
}

// onAGoroutine calls take on its own goroutine. It reports whether take returned, or ended
// the goroutine.
func onAGoroutine(take func() (*belay.Turn, error)) (turn *belay.Turn, err error, returned bool) { //nolint:revive // the error is what take returned
	done := make(chan struct{})
	go func() {
		defer close(done)
		turn, err = take()
		returned = true
	}()
	<-done
	return turn, err, returned
}

// kills reports whether the handler ends the goroutine of the turn. It cannot do so at
// the phases in perCall, which run on goroutines of the calls.
func (m misbehaved[In, Out]) kills() bool {
	perCall := []string{belay.ToolPre.Name(), belay.ApprovalRequest.Name(), belay.ToolPost.Name(), belay.ToolDenied.Name()}
	return m.Code == codes.Goexit && m.execution == hook.Blocking && !slices.Contains(perCall, m.phase.Name())
}

// judge checks that the turn ended as the failure mode says.
func (m misbehaved[In, Out]) judge(t *testing.T, r *rich, turn *belay.Turn, err error, returned bool) {
	t.Helper()
	if m.kills() == returned {
		t.Fatalf("the turn returned: %t (%+v, %v)", returned, turn, err)
	}
	if !returned {
		return
	}
	goexit := m.Code == codes.Goexit && m.execution == hook.Blocking
	failed := m.Code != "" && !goexit
	closed := failed && m.mode == hook.Closed
	gate, collect := m.phase.Info().Kind == hook.Gate, m.phase.Info().Kind == hook.Collect
	want := belay.EndTurn
	switch {
	case m.phase.Name() == belay.Error.Name():
		want = belay.EndError
	case closed && m.phase.Name() == belay.UserPromptSubmit.Name():
		want = belay.EndBlocked
	case closed && collect && !m.rewrites:
		want = belay.EndError
	}
	if turn.Reason != want {
		t.Errorf("the turn ended %s (%s: %s), want %s", turn.Reason, turn.By, turn.Why, want)
	}
	if (err != nil) != (want == belay.EndError) {
		t.Errorf("the error is %v", err)
	}
	if failure, ok := errors.AsType[*hook.FailureError](err); closed && collect && !m.rewrites && (!ok || failure.Subscription != "misbehaves") {
		t.Errorf("the error is %v, want one that names the hook", err)
	}
	if failed && !slices.ContainsFunc(turn.Diagnostics, func(d hook.Diagnostic) bool {
		return d.Subscription == "misbehaves" && d.Code == m.Code && d.Phase == m.phase.Name()
	}) {
		t.Errorf("the diagnostics are %v, want %s of the hook", turn.Diagnostics, m.Code)
	}
	results := make(map[string]belay.ResultPart)
	for _, result := range storedResults(t, r.session) {
		results[result.Call] = result
	}
	switch {
	case closed && gate && m.phase.Name() == belay.UserPromptSubmit.Name():
		if turn.By != "misbehaves" || len(transcript(t, r.session)) > 0 {
			t.Errorf("the message was blocked by %q and stored: %v", turn.By, transcript(t, r.session))
		}
	case closed && m.phase.Name() == belay.ToolPre.Name(), goexit && m.phase.Name() == belay.ToolPre.Name():
		m.refused(t, results, belay.ClassDenied, "c1", "c2", "c3", "c4", "c5", "c6")
	case closed && m.phase.Name() == belay.ApprovalRequest.Name(), goexit && m.phase.Name() == belay.ApprovalRequest.Name():
		m.refused(t, results, belay.ClassDenied, "c3")
	case goexit && m.phase.Name() == belay.ToolPost.Name():
		m.refused(t, results, belay.ClassFailed, "c1", "c3", "c4", "c5", "c6")
	case closed && m.phase.Name() == belay.ToolPost.Name() && !m.rewrites: // the turn ends after the results are stored
		if len(results) != 4 || results["c1"].IsError || results["c1"].Text != `{"path":"/a"}` {
			t.Errorf("the results are %v, want those of the first step", results)
		}
	case m.rewrites && failed:
		for _, id := range []string{"c1", "c3", "c4", "c5", "c6"} {
			if !strings.HasPrefix(results[id].Text, "[result withheld: misbehaves could not") {
				t.Errorf("call %s was answered %q, want its result withheld", id, results[id].Text)
			}
		}
	case closed && m.phase.Name() == belay.TurnStop.Name(): // a failure makes the turn continue, up to the limit
		if turn.Steps != 3+8 {
			t.Errorf("the turn took %d steps", turn.Steps)
		}
	case !closed && turn.Steps != 4 && m.phase.Name() != belay.Error.Name():
		t.Errorf("the turn took %d steps, want 4", turn.Steps)
	}
}

func (m misbehaved[In, Out]) refused(t *testing.T, results map[string]belay.ResultPart, class belay.ResultClass, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if got := results[id]; got.Class != class || !got.IsError {
			t.Errorf("call %s was answered %+v, want class %s", id, got.Result, class)
		}
	}
}

// journal checks that the run was recorded.
func (m misbehaved[In, Out]) journal(t *testing.T, r *rich) {
	t.Helper()
	runs := r.runsOf(t, "misbehaves")
	if len(runs) == 0 {
		t.Error("the journal does not tell")
	}
	for _, run := range runs {
		if run.Phase != m.phase.Name() || run.State != m.State() || run.Class != m.Code {
			t.Errorf("the record is %v (%s), want %s (%s)", run, run.Class, m.State(), m.Code)
		}
	}
}

// If a hook may rewrite results and fails closed, the results are withheld. So text that
// the hook should have removed does not reach the model.
//
// SPEC H-10
func TestAFailingRewriterWithholdsResults(t *testing.T) {
	t.Parallel()
	answer := belay.ToolReaction{Aside: belay.Aside{Note: belay.Note{Output: saidNevertheless}}}
	for i, m := range hooktest.Misbehaviours(belay.ToolPost, answer) {
		if m.Capabilities == hook.NoCapability || m.Abandoned {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := hooktest.Misbehaviours(belay.ToolPost, answer)[i]
				misbehaved[belay.ToolResult, belay.ToolReaction]{one, belay.ToolPost, hook.Closed, hook.Blocking, true}.try(t)
			})
		})
	}
}

// session.end fires after all turns. Whatever its hook does, the session is closed and
// released, and can be opened again.
//
// SPEC H-12
func TestMisbehaviourWhenASessionIsClosed(t *testing.T) {
	t.Parallel()
	answer := belay.Note{Output: saidNevertheless, Audit: []hook.Audit{{Code: "test.said"}}}
	for i, m := range hooktest.Misbehaviours(belay.SessionEnd, answer) {
		for _, execution := range []hook.Execution{hook.Blocking, hook.Deadline} {
			if m.Abandoned && execution == hook.Blocking {
				continue
			}
			t.Run(m.Name+" "+execution.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					one := hooktest.Misbehaviours(belay.SessionEnd, answer)[i]
					m := misbehaved[belay.SessionClosed, belay.Note]{one, belay.SessionEnd, hook.Open, execution, false}
					r := newRich(t, nil)
					defer m.Release()
					m.Bind(r.agent.Hooks())
					lease, err := r.agent.Hooks().Install(m.phase.On("misbehaves", m.Handler, &hook.Options{
						Execution: execution, Capabilities: m.Capabilities, Timeout: time.Second,
					}))
					if err != nil {
						t.Fatal(err)
					}
					r.goesOn(t)
					_, err, returned := onAGoroutine(func() (*belay.Turn, error) { return nil, r.session.Close(t.Context()) })
					if err != nil || returned == m.kills() {
						t.Errorf("close returned: %t, %v", returned, err)
					}
					if n := r.phases.count(belay.SessionEnd.Name()); n != 1 && m.Bind != nil && m.Code != "" {
						t.Errorf("session.end fired %d times", n)
					}
					if err := lease.Close(); err != nil {
						t.Fatal(err)
					}
					r.session = r.agent.Session("s")
					r.goesOn(t)
					m.journal(t, r)
				})
			})
		}
	}
}

// If a message has only one call, the call runs on the goroutine of the turn. If a
// handler ends this goroutine, the turn still ends in an orderly way: the stream returns
// the reason, and the call has its result.
//
// SPEC H-12
func TestGoexitOfAHookAtTheOnlyCall(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		if !slices.Contains([]string{"tool.pre", "approval.request", "approval.decided", "tool.post", "model.post"}, p.Name()) {
			continue
		}
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRich(t, nil)
				lease, err := r.agent.Hooks().Install(p.on("exits", func(context.Context, any) (any, error) {
					return hooktest.Goexits[any, belay.Note]()(t.Context(), nil)
				}, nil))
				if err != nil {
					t.Fatal(err)
				}
				all := take(r.session.Run(t.Context(), richOne))
				if all.err == nil || !strings.Contains(all.err.Error(), "Goexit") || all.Turn == nil || all.Reason != belay.EndError {
					t.Errorf("the turn is %+v, %v, want an error that says what happened", all.Turn, all.err)
				}
				if got := r.phases.ends(); !slices.Equal(got, []string{"1 error"}) {
					t.Errorf("turn.post_turn got %v", got)
				}
				r.sound(t)
				if err := lease.Close(); err != nil {
					t.Fatal(err)
				}
				r.goesOn(t)
			})
		})
	}
}
