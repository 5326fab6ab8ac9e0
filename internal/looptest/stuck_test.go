package looptest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

const circling = "You repeat the same calls and get the same results."

// warnings returns the numbers of the requests whose newest reminder warns the model about
// repeated calls.
func warnings(model *scripted.Model) []int {
	var all []int
	for i, req := range model.Requests() {
		last := req.Messages[len(req.Messages)-1]
		for _, p := range last.Parts {
			if last.Kind == belay.KindReminder && strings.Contains(p.Text, circling) {
				all = append(all, i+1)
			}
		}
	}
	return all
}

// plan makes steps from words that are separated by commas. Each word is a step with a
// call of echo, whose input is the word. Words that are joined by a plus are calls of one
// step.
func plan(words string) []scripted.Step {
	var steps []scripted.Step
	for word := range strings.SplitSeq(words, ",") {
		var step scripted.Step
		for w := range strings.SplitSeq(word, "+") {
			step.Calls = append(step.Calls, scripted.Call{Tool: "echo", Input: fmt.Sprintf(`{"w":%q}`, w)})
		}
		steps = append(steps, step)
	}
	return steps
}

// SPEC T-11
func TestModelThatGoesInCircles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, words string
		warned      []int // the requests that have the reminder
		end         belay.EndReason
	}{
		{"twice is no circle", "A,A,B", nil, belay.EndTurn},
		{"three times in a row gives a reminder", "A,A,A,B", []int{4}, belay.EndTurn},
		{"a fourth time ends the turn", "A,A,A,A", []int{4}, belay.EndStuck},
		{"two calls that alternate give a reminder", "A,B,A,B,C", []int{5}, belay.EndTurn},
		{"and if they go on, end the turn", "A,B,A,B,A", []int{5}, belay.EndStuck},
		{"ABA is no circle", "A,B,A,C,A", nil, belay.EndTurn},
		{"ABBA is no circle", "A,B,B,A", nil, belay.EndTurn},
		{"the reminder comes once in a turn: the next circle ends it", "A,A,A,B,C,D,D,D", []int{4}, belay.EndStuck},
		{"what is done side by side counts in call order", "A+B,A+B,C", []int{3}, belay.EndTurn},
		{"and ends the turn too", "A+B,A+B,A+B", []int{3}, belay.EndStuck},
		{"calls of one message are made at one time", "A+A+A,A+A,B", nil, belay.EndTurn},
		{"and count when it is made again and again", "A+A,A+A,A+A,B", []int{4}, belay.EndTurn},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("echo")}}, plan(test.words)...)
			session := agent.Session("s")
			all := takeTurn(t, session.Run(t.Context(), "go"), test.end)
			if diff := cmp.Diff(test.warned, warnings(model)); diff != "" {
				t.Errorf("the reminders (-want +got):\n%s", diff)
			}
			if stuck := test.end == belay.EndStuck; stuck != (all.Why != "") {
				t.Errorf("the turn says why: %q", all.Why)
			}
			storedResults(t, session) // fails unless every call has a result
		})
	}
}

// If the results of equal calls differ in any way, the calls are not a repetition.
//
// SPEC T-11
func TestCallWithOtherResultsIsNoCircle(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		result func(n int64) belay.Result
		end    belay.EndReason
	}{
		{"the text differs", func(n int64) belay.Result { return belay.Result{Text: fmt.Sprint(n)} }, belay.EndTurn},
		{"only the picture differs", func(n int64) belay.Result {
			return belay.Result{Media: []belay.Media{{MIME: "image/png", Data: []byte{byte(n)}}}}
		}, belay.EndTurn},
		{"only the address of the picture differs", func(n int64) belay.Result {
			return belay.Result{Media: []belay.Media{{MIME: "image/png", URL: fmt.Sprintf("https://example.com/%d.png", n)}}}
		}, belay.EndTurn},
		{"the picture is the same", func(int64) belay.Result {
			return belay.Result{Media: []belay.Media{{MIME: "image/png", Data: []byte("same")}}}
		}, belay.EndStuck},
		{"a result too long for the model is the same", func(int64) belay.Result { return belay.Result{Text: strings.Repeat("x", 1000)} }, belay.EndStuck},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			tool := anyTool("look", func(context.Context, *belay.Invocation) (belay.Result, error) { return test.result(n.Add(1)), nil }, nil)
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Limits: belay.Limits{ResultCharacters: 100}, SpillDir: t.TempDir()},
				calls("look"), calls("look"), calls("look"), calls("look"), calls("look"), calls("look"))
			takeTurn(t, agent.Session("s").Run(t.Context(), "go"), test.end)
		})
	}
}

// Calls with different inputs are not a repetition, whatever their results are.
//
// SPEC T-11
func TestCallsWithOtherInputsAreNoCircle(t *testing.T) {
	t.Parallel()
	same := anyTool("echo", func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: "no matches"}, nil
	}, nil)
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{same}}, plan("A,B,C,D,E,F")...)
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if got := warnings(model); len(got) > 0 {
		t.Errorf("the requests %d warned the model about repeated calls", got)
	}
}

// If another process resumes a turn, it still detects repetitions of calls from before.
//
// SPEC T-11
func TestCirclesAreSeenAcrossAResume(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		parks  int64 // the number of the call that parks
		warned int   // number of requests with the reminder, in both processes
	}{
		{"parked before the reminder", 3, 1},
		{"parked after the reminder", 4, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			var n atomic.Int64
			tool := anyTool("look", func(context.Context, *belay.Invocation) (belay.Result, error) {
				if n.Add(1) == test.parks {
					return belay.Result{}, belay.Park("a while")
				}
				return belay.Result{Text: "nothing new"}, nil
			}, nil)
			opts := belay.Options{Tools: []belay.Tool{tool}, Store: store}
			model := scripted.New([]scripted.Step{calls("look")}, &scripted.Options{Repeat: true})
			first, err := belay.New(model, &opts)
			if err != nil {
				t.Fatal(err)
			}
			takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked)
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := agentOf(t, model, &opts)
			session := second.Session("s")
			takeTurn(t, session.Resume(t.Context()), belay.EndStuck)
			if got := len(storedResults(t, session)); got != 4 {
				t.Errorf("the turn ended after %d calls, not 4", got)
			}
			if got := len(warnings(model)); got != test.warned {
				t.Errorf("%d requests carried the reminder", got)
			}
		})
	}
}

// Repetitions are also found if the process ended after the results were stored and before
// the next request.
//
// SPEC T-11
func TestCirclesAreSeenAfterACrash(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	opts := belay.Options{Tools: []belay.Tool{echoTool("look")}, Store: store}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broken := scripted.New([]scripted.Step{calls("look"), calls("look"), {Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
		panic("the process ends here")
	}}}, nil)
	dead, err := belay.New(broken, &belay.Options{Tools: opts.Tools, Store: &stoppedStore{Store: store, after: 5}})
	if err != nil {
		t.Fatal(err)
	}
	all := take(dead.Session("s").Run(ctx, "go"))
	if all.Reason != belay.EndError {
		t.Fatalf("the turn ended %s", all.Reason)
	}
	model := scripted.New([]scripted.Step{calls("look"), calls("look"), says("done")}, nil)
	session := agentOf(t, model, &opts).Session("s")
	takeTurn(t, session.Resume(t.Context()), belay.EndStuck)
	if got := len(storedResults(t, session)); got != 4 {
		t.Errorf("the turn ended after %d calls, not 4", got)
	}
}

// stoppedStore accepts some commits and rejects all later ones, as if the process had
// ended.
type stoppedStore struct {
	belay.Store

	after, commits int
}

func (s *stoppedStore) Commit(ctx context.Context, c *belay.Commit) error {
	if s.commits++; s.commits > s.after {
		return fmt.Errorf("commit %d: the process has ended", s.commits)
	}
	return s.Store.Commit(ctx, c)
}
