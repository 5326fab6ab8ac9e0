package belaytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
)

// Approver is an approver that answers from a list. Make one with [NewApprover].
type Approver struct {
	answers []belay.Decision

	mu        sync.Mutex
	questions []belay.Question
}

var _ belay.Approver = (*Approver)(nil)

// NewApprover returns an approver that gives these answers, one for each question, in
// order: see [Yes] and [No]. The questions about calls of one response come in any order.
// If there are more questions than answers, Approve returns an error, which denies the
// call.
func NewApprover(answers ...belay.Decision) *Approver {
	return &Approver{answers: slices.Clone(answers)}
}

// Yes allows a call. The decision is made by "test".
func Yes() belay.Decision { return belay.Decision{Allow: true, By: "test"} }

// No denies a call with a reason. The decision is made by "test".
func No(reason string) belay.Decision { return belay.Decision{By: "test", Reason: reason} }

// Approve records the question and returns the next answer.
func (a *Approver) Approve(_ context.Context, question belay.Question) (belay.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.questions = append(a.questions, question)
	if n := len(a.questions); n > len(a.answers) {
		return belay.Decision{}, fmt.Errorf("belaytest: this is question %d, but there are only %d answers", n, len(a.answers))
	}
	return a.answers[len(a.questions)-1], nil
}

// Questions returns the questions so far.
func (a *Approver) Questions() []belay.Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.questions)
}

// Asked asserts which tools the questions were about, in order. Without tools it asserts
// that there were no questions.
func (a *Approver) Asked(t testing.TB, tools ...string) {
	t.Helper()
	var got []string
	for _, q := range a.Questions() {
		got = append(got, q.Tool)
	}
	if !slices.Equal(got, tools) {
		t.Errorf("want questions about %s, got %s", list(tools), list(got))
	}
}
