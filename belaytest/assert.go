package belaytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// Ended asserts how the turn ended.
func (turn *Turn) Ended(want belay.EndReason) {
	turn.t.Helper()
	if want == belay.EndError || want == belay.EndAborted {
		turn.expected = true
	}
	if turn.Reason != want {
		turn.failf("want a turn that ends %s, but it %s", want, turn.ending())
	}
}

// Failed asserts that the turn returned an error that contains text. An empty text matches
// any error.
func (turn *Turn) Failed(text string) {
	turn.t.Helper()
	turn.expected = true
	if turn.Err == nil {
		turn.failf("want the turn to fail, but it %s", turn.ending())
	} else if !strings.Contains(turn.Err.Error(), text) {
		turn.failf("want an error that says %q, got %q", text, turn.Err)
	}
}

// EndedBy asserts who ended a blocked turn, and that the reason contains text. An empty
// text matches any reason.
func (turn *Turn) EndedBy(who, text string) {
	turn.t.Helper()
	if turn.By != who || !strings.Contains(turn.Why, text) {
		turn.failf("want a turn that is ended by %q because of %q, but it %s", who, text, turn.ending())
	}
}

// Said asserts that the model's last text contains text.
func (turn *Turn) Said(text string) {
	turn.t.Helper()
	if !strings.Contains(turn.Text, text) {
		turn.failf("want a last text that says %q, got %q", text, turn.Text)
	}
}

// Called asserts all calls that the model made, in order. Each string is the name of a
// tool, or a name and the JSON of the input that the model sent:
//
//	turn.Called("read", `write {"path": "notes.md", "text": "milk"}`)
//
// Without arguments it asserts that there were no calls.
func (turn *Turn) Called(calls ...string) {
	turn.t.Helper()
	got := turn.Calls()
	same := len(got) == len(calls)
	for i := 0; same && i < len(got); i++ {
		tool, input, given := strings.Cut(calls[i], " ")
		same = got[i].Tool == tool && (!given || sameJSON(got[i].Input, []byte(input)))
	}
	if !same {
		turn.failf("want the calls %s, got %s", list(calls), list(spoken(got)))
	}
}

func spoken(calls []Call) []string {
	all := make([]string, len(calls))
	for i := range calls {
		all[i] = calls[i].Tool + " " + string(calls[i].Input)
	}
	return all
}

func list(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// Rewritten asserts that a call of the tool was rewritten: by is who rewrote it last, and
// input is the JSON of the final input.
func (turn *Turn) Rewritten(tool, by, input string) {
	turn.t.Helper()
	turn.some(tool, fmt.Sprintf("a call of %s that %s rewrote to %s", tool, by, input), func(c *Call) bool {
		n := len(c.RewrittenBy)
		return n > 0 && c.RewrittenBy[n-1] == by && sameJSON(c.Final, []byte(input))
	})
}

// Result asserts that a call of the tool succeeded, and that its result contains text.
func (turn *Turn) Result(tool, text string) {
	turn.t.Helper()
	turn.some(tool, fmt.Sprintf("a result of %s that says %q", tool, text), func(c *Call) bool {
		return c.Result != nil && !c.Result.IsError && strings.Contains(c.Result.Text, text)
	})
}

// ResultFailed asserts that a call of the tool failed with this class, and that its
// result contains text. An empty class matches any class, and an empty text matches any
// text.
func (turn *Turn) ResultFailed(tool string, class belay.ResultClass, text string) {
	turn.t.Helper()
	turn.some(tool, fmt.Sprintf("a failure of %s with the class %q that says %q", tool, class, text), func(c *Call) bool {
		return c.Result != nil && c.Result.IsError && (class == "" || c.Result.Class == class) && strings.Contains(c.Result.Text, text)
	})
}

// Denied asserts that a call of the tool was denied, and that the reason contains text.
// by is the hook, person, interceptor or rule of the floor that denied it. An empty by
// matches anybody, and an empty text matches any reason.
func (turn *Turn) Denied(tool, by, text string) {
	turn.t.Helper()
	start := "Denied by "
	if by != "" {
		start = fmt.Sprintf("Denied by %q: ", by)
	}
	turn.some(tool, fmt.Sprintf("a call of %s that %q denies because of %q", tool, by, text), func(c *Call) bool {
		return c.Result != nil && c.Result.Class == belay.ClassDenied && strings.HasPrefix(c.Result.Text, start) && strings.Contains(c.Result.Text, text)
	})
}

// some asserts that the function is reports true for at least one call of a tool.
func (turn *Turn) some(tool, want string, is func(*Call) bool) {
	turn.t.Helper()
	var got []string
	for _, c := range turn.Calls() {
		if c.Tool != tool {
			continue
		}
		if is(&c) {
			return
		}
		got = append(got, describe(&c))
	}
	if got == nil {
		turn.failf("want %s, but %s was not called", want, tool)
		return
	}
	turn.failf("want %s, got: %s", want, strings.Join(got, "; "))
}

// describe returns a call and its result in one line.
func describe(c *Call) string {
	text := fmt.Sprintf("%s %s", c.Tool, c.Ran())
	if len(c.RewrittenBy) > 0 {
		text += " (rewritten by " + strings.Join(c.RewrittenBy, ", ") + ")"
	}
	switch {
	case c.Result == nil:
		return text + " has no result yet"
	case c.Result.IsError:
		return fmt.Sprintf("%s failed with the class %q: %q", text, c.Result.Class, c.Result.Text)
	default:
		return fmt.Sprintf("%s gave %q", text, c.Result.Text)
	}
}

// Reminded asserts that each of these texts was in a reminder that the model got in this
// turn. Without texts it asserts that the model got no reminders.
func (turn *Turn) Reminded(texts ...string) {
	turn.t.Helper()
	if problem := missing("reminder", turn.Reminders(), texts); problem != "" {
		turn.failf("%s", problem)
	}
}

// HasContext asserts that the prompt context of the turn has entries with each of these
// texts. A text can also be an attribute: id="user" or from="my-hook". Without texts it
// asserts that there is no prompt context.
func (turn *Turn) HasContext(texts ...string) {
	turn.t.Helper()
	var got []string
	for _, m := range turn.Messages {
		if m.Kind == belay.KindContext {
			for i := range m.Parts {
				got = append(got, m.Parts[i].Text)
			}
		}
	}
	if problem := missing("context entry", got, texts); problem != "" {
		turn.failf("%s", problem)
	}
}

// Answered asserts that the turn gave structured output, and that the output is equal to
// this JSON.
func (turn *Turn) Answered(want string) {
	turn.t.Helper()
	switch {
	case len(turn.Turn.Answer) == 0:
		turn.failf("want the answer %s, but the turn %s without one", want, turn.ending())
	case !sameJSON(turn.Turn.Answer, []byte(want)):
		turn.failf("want the answer %s, got %s", want, turn.Turn.Answer)
	}
}

// missing returns a text that says what is wrong, or "". It is wrong if one of texts occurs
// in no element of got, or if texts is empty and got is not.
func missing(kind string, got, texts []string) string {
	if len(texts) == 0 && len(got) > 0 {
		return fmt.Sprintf("want no %s, got %q", kind, got)
	}
	for _, text := range texts {
		if !slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, text) }) {
			return fmt.Sprintf("want a %s that says %q, got %q", kind, text, got)
		}
	}
	return ""
}

// Emitted asserts that there were events of these kinds in this order. Other events may
// come between them.
func (turn *Turn) Emitted(kinds ...belay.EventKind) {
	turn.t.Helper()
	var got []belay.EventKind
	next := 0
	for i := range turn.Events {
		kind := turn.Events[i].Kind
		got = append(got, kind)
		if next < len(kinds) && kinds[next] == kind {
			next++
		}
	}
	if next < len(kinds) {
		turn.failf("want the events %v in this order, but %s is missing or too early in %v", kinds, kinds[next], slices.Compact(got))
	}
}

// HookRan asserts that a run of this subscription in this turn ended in this state.
func (turn *Turn) HookRan(subscription string, state hook.State) {
	turn.t.Helper()
	var got []string
	for _, run := range turn.Runs() {
		if run.Subscription != subscription {
			continue
		}
		if run.State == state {
			return
		}
		got = append(got, run.State.String())
	}
	turn.failf("want a run of %s that is %s, got %s", subscription, state, list(got))
}

// HookNotAsked asserts that a subscription's handler was not called in this turn.
func (turn *Turn) HookNotAsked(subscription string) {
	turn.t.Helper()
	for _, run := range turn.Runs() {
		if run.Subscription == subscription && run.State != hook.Skipped {
			turn.failf("want %s not to be called, got a run at %s that is %s", subscription, run.Phase, run.State)
			return
		}
	}
}

// Diagnosed asserts that the turn has a diagnostic with that code.
func (turn *Turn) Diagnosed(code codes.Code) {
	turn.t.Helper()
	var got []string
	for _, d := range turn.Diagnostics {
		if d.Code == code {
			return
		}
		got = append(got, string(d.Code))
	}
	turn.failf("want the diagnostic %s, got %s", code, list(got))
}

// failf reports a failed assertion and prints the whole turn.
func (turn *Turn) failf(format string, args ...any) {
	turn.t.Helper()
	turn.t.Errorf("%s\n%s", fmt.Sprintf(format, args...), turn)
}
