package scripted_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// systems sends requests with the system prompts 1 to n and returns the recorded prompts.
func systems(t *testing.T, keep, n int) string {
	t.Helper()
	model := scripted.New(says(""), &scripted.Options{Repeat: true, Keep: keep})
	for i := range n {
		answer(t, model, &belay.Request{System: strconv.Itoa(i + 1)})
	}
	var all []string
	for _, req := range model.Requests() {
		all = append(all, req.System)
	}
	return strings.Join(all, " ")
}

func TestRequestsKeepsTheNewest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		keep, n int
		want    string
	}{
		{"none asked, none kept", 3, 0, ""},
		{"fewer than the limit", 3, 2, "1 2"},
		{"as many as the limit", 3, 3, "1 2 3"},
		{"the oldest go first", 3, 5, "3 4 5"},
		{"around and around", 3, 9, "7 8 9"},
		{"one", 1, 4, "4"},
		{"a negative limit keeps none", -1, 4, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := systems(t, test.keep, test.n); got != test.want {
				t.Errorf("on record are %q, want %q", got, test.want)
			}
		})
	}
	if got := len(strings.Fields(systems(t, 0, 1001))); got != 1000 {
		t.Errorf("%d requests are on record by default, want 1000", got)
	}
}

func TestRequestsHasThoseThatFailed(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Expect: &scripted.Expect{User: "x"}}}, nil)
	fails(t, model, &belay.Request{System: "s", MaxTokens: 5}, belay.ModelInvalid)
	if got := model.Requests(); len(got) != 1 || got[0].System != "s" || got[0].MaxTokens != 5 {
		t.Errorf("on record is %+v, want the request that failed", got)
	}
}

func TestRequestsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	model := scripted.New(says(""), &scripted.Options{Repeat: true, Keep: 2})
	a, b, c := user("a"), user("b"), user("c")
	messages := []*belay.Message{a, b}
	answer(t, model, ask(messages...))
	messages[1] = c // the caller may reuse its slice
	answer(t, model, ask(messages...))
	before := model.Requests()
	if before[0].Messages[0] != a || before[0].Messages[1] != b || before[1].Messages[1] != c {
		t.Errorf("on record are %s, want [a b] [a c]", texts(before))
	}
	answer(t, model, ask(c))
	if got := texts(before); got != "[a b] [a c]" {
		t.Errorf("a later request changed what was read from the record into %s", got)
	}
	if got := texts(model.Requests()); got != "[a c] [c]" {
		t.Errorf("on record are %s, want [a c] [c]", got)
	}
}

func texts(requests []belay.Request) string {
	all := make([]string, len(requests))
	for i, req := range requests {
		var words []string
		for _, m := range req.Messages {
			words = append(words, m.Text())
		}
		all[i] = fmt.Sprint(words)
	}
	return strings.Join(all, " ")
}
