package belaytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Request is a request to the model. Its methods are assertions.
type Request struct {
	belay.Request

	turn   *Turn
	number int
}

// Request returns the nth request of the turn, counted from 1. -1 is the last request, -2
// the one before it. If there is no such request, the test ends.
func (turn *Turn) Request(n int) *Request {
	turn.t.Helper()
	at := n - 1
	if n < 0 {
		at = len(turn.Requests) + n
	}
	if at < 0 || at >= len(turn.Requests) {
		turn.t.Fatalf("want request %d of the turn, but the turn has sent only %d\n%s", n, len(turn.Requests), turn)
		return &Request{turn: turn, number: n}
	}
	return &Request{turn.Requests[at], turn, at + 1}
}

// SystemSays asserts that the system prompt contains text.
func (r *Request) SystemSays(text string) {
	r.turn.t.Helper()
	if !strings.Contains(r.System, text) {
		r.failf("want a system prompt that says %q, got %q", text, r.System)
	}
}

// UserSays asserts that the user's last message contains text.
func (r *Request) UserSays(text string) {
	r.turn.t.Helper()
	got := ""
	for _, m := range slices.Backward(r.Messages) {
		if m.Kind == belay.KindUser {
			got = m.Text()
			break
		}
	}
	if !strings.Contains(got, text) {
		r.failf("want a newest user message that says %q, got %q", text, got)
	}
}

// Offers asserts which tools the model may call, in any order. Without names it asserts
// that there are no tools.
func (r *Request) Offers(tools ...string) {
	r.turn.t.Helper()
	var got []string
	for i := range r.Tools {
		got = append(got, r.Tools[i].Name)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(tools))
	if !slices.Equal(got, want) {
		r.failf("want the request to offer %s, but it offers %s", list(want), list(got))
	}
}

// Reminds asserts that each of these texts is in a reminder of the request. The request
// also has the reminders of earlier turns. Without texts it asserts that there are no
// reminders.
func (r *Request) Reminds(texts ...string) {
	r.turn.t.Helper()
	var got []string
	for _, m := range r.Messages {
		got = append(got, reminders(m)...)
	}
	if problem := missing("reminder", got, texts); problem != "" {
		r.failf("%s", problem)
	}
}

// failf reports a failed assertion and prints the whole request.
func (r *Request) failf(format string, args ...any) {
	r.turn.t.Helper()
	r.turn.t.Errorf("request %d: %s\n--- its messages\n%s", r.number, fmt.Sprintf(format, args...), Render(r.Messages))
}
