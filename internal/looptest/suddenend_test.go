package looptest_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// A turn calls code that can panic or end its goroutine: a model, a planner, an
// extension, a floor, an approver, an interceptor, a tool, a store. The turn must still
// end in an orderly way, the stream must return the reason, and the session must be able
// to run another turn.
//
// SPEC H-12, L-05
func TestSuddenEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"panics", "exits"} {
		end := func() {
			if how == "exits" {
				runtime.Goexit()
			}
			panic("panicked on purpose")
		}
		for _, test := range []struct {
			rule   string
			reason belay.EndReason
			change func(o *belay.Options, first func() bool)
		}{
			{"a planner ends the turn", belay.EndError, func(o *belay.Options, first func() bool) {
				o.Planner = plannerFunc(func(belay.TurnSoFar) (belay.PreflightPlan, error) {
					if first() {
						end()
					}
					return belay.PreflightPlan{Queries: []string{"x"}}, nil
				})
			}},
			{"an extension that expands ends the turn", belay.EndError, func(o *belay.Options, first func() bool) {
				o.Extensions = append(o.Extensions, expandFunc(func() (belay.Expansion, error) {
					if first() {
						end()
					}
					return belay.Expansion{}, nil
				}))
			}},
			{"a tool fails its call", belay.EndTurn, func(o *belay.Options, first func() bool) {
				o.Tools = append(o.Tools[1:], anyTool("read", func(context.Context, *belay.Invocation) (belay.Result, error) {
					if first() {
						end()
					}
					return belay.Result{Text: "read"}, nil
				}, nil))
			}},
			{"a floor refuses the call", belay.EndTurn, func(o *belay.Options, first func() bool) {
				o.Authorizer = floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
					if first() {
						end()
					}
					return belay.Authorization{}, nil
				})
			}},
			{"an interceptor refuses the call", belay.EndTurn, func(o *belay.Options, first func() bool) {
				o.Interceptors = []belay.Interceptor{{Name: "i", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
					if first() {
						end()
					}
					return belay.Interception{}, nil
				}}}
			}},
			{"an interceptor withholds the result", belay.EndTurn, func(o *belay.Options, first func() bool) {
				o.Interceptors = []belay.Interceptor{{Name: "i", Tool: "*", After: func(_ context.Context, _ *belay.Invocation, r belay.Result) (belay.Result, error) {
					if first() {
						end()
					}
					return r, nil
				}}}
			}},
			{"a store ends the turn when it opens", belay.EndError, func(o *belay.Options, first func() bool) {
				o.Store = &suddenStore{riding{o.Store.(*memstore.Store)}, end, func(at string) bool { return at == "open" && first() }}
			}},
		} {
			t.Run(test.rule+" when it "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRich(t, func(o *belay.Options) { test.change(o, once()) })
					suddenly(t, r, test.reason)
				})
			})
		}
		for n := 1; n <= 10; n++ {
			for _, when := range []string{"before", "after"} {
				t.Run(fmt.Sprintf("a store ends the turn when it %s %s commit %d", how, when, n), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						count := 0
						r := newRich(t, func(o *belay.Options) {
							o.Store = &suddenStore{riding{o.Store.(*memstore.Store)}, end, func(at string) bool {
								if at == "before" {
									count++
								}
								return at == when && count == n
							}}
						})
						suddenly(t, r, belay.EndError)
					})
				})
			}
		}
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprintf("a model ends the turn when it %s in request %d", how, n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRich(t, nil)
					r.model.Model = &suddenModel{Model: r.model.Model, end: end, at: n}
					suddenly(t, r, belay.EndError)
				})
			})
		}
	}
}

// suddenly runs a turn in which some code panics or ends its goroutine.
func suddenly(t *testing.T, r *rich, reason belay.EndReason) {
	t.Helper()
	all := take(r.session.Run(t.Context(), richWork))
	if all.Turn == nil || all.Reason != reason {
		t.Fatalf("the turn is %+v, %v, want it to end %s", all.Turn, all.err, reason)
	}
	if failed := reason == belay.EndError; failed != (all.err != nil) || failed && !strings.Contains(all.err.Error(), "the turn panicked") {
		t.Errorf("the error is %v", all.err)
	}
	if got := r.phases.ends(); len(got) != 1 && all.ID != "" {
		t.Errorf("turn.post_turn got %v", got)
	}
	told := len(r.phases.ends())
	r.goesOn(t)
	r.recorded(t)
	if got := r.phases.ends(); len(got) != told+1 {
		t.Errorf("turn.post_turn got %v, want each turn once", got)
	}
}

// If an approver panics or ends its goroutine, the call is denied.
//
// SPEC H-12
func TestAnApproverThatComesToASuddenEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRich(t, func(o *belay.Options) {
			o.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) { panic("panicked on purpose") })
		})
		turn, err := r.session.Turn(t.Context(), richWork)
		if err != nil || turn.Reason != belay.EndTurn {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		if got := storedResults(t, r.session)[2]; got.Class != belay.ClassDenied {
			t.Errorf("the call was answered %+v", got)
		}
		r.goesOn(t)
	})
}

// once returns a function that reports true only the first time.
func once() func() bool {
	asked := make(chan struct{}, 1)
	return func() bool {
		select {
		case asked <- struct{}{}:
			return true
		default:
			return false
		}
	}
}

// expandFunc is an extension whose Expand method calls the function.
type expandFunc func() (belay.Expansion, error)

func (expandFunc) Name() string { return "expand" }

func (f expandFunc) Expand(context.Context, belay.Submission) (belay.Expansion, error) { return f() }

// suddenModel is a model that panics or ends its goroutine in request number at.
type suddenModel struct {
	belay.Model

	end      func()
	at, seen int
}

func (m *suddenModel) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	m.seen++
	if m.seen != m.at {
		return m.Model.Stream(ctx, req)
	}
	return func(yield func(belay.Chunk, error) bool) {
		if yield(belay.Chunk{Text: "so far"}, nil) {
			m.end()
		}
	}
}

// suddenStore is a store that panics or ends its goroutine when now reports true.
type suddenStore struct {
	riding

	end func()
	now func(at string) bool
}

func (s *suddenStore) Open(ctx context.Context, session string) (*belay.Stored, error) {
	if s.now("open") {
		s.end()
	}
	return s.Store.Open(ctx, session)
}

func (s *suddenStore) Commit(ctx context.Context, c *belay.Commit) error {
	if s.now("before") {
		s.end()
	}
	err := s.Store.Commit(ctx, c)
	if s.now("after") {
		s.end()
	}
	return err
}
