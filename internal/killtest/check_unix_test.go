//go:build unix

package killtest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// invariant is a rule that must hold, whenever and however often a process is killed.
type invariant struct {
	name  string
	holds func(w *world) []string // returns the violations
}

// invariants are all rules that are checked. Each is a subtest.
var invariants = []invariant{
	{"turns end", (*world).turnsEnd},
	{"no acknowledged message is lost", (*world).messagesStay},
	{"no call is left without its result", (*world).callsAnswered},
	{"what is not idempotent runs once", (*world).runsOnce},
	{"a finished result is kept after 50 ms", (*world).resultsKept},
	{"a call that never began is not said to have run", (*world).toldExactly},
	{"each outside hook that began has a record", (*world).hooksRecorded},
	{"every record is final", (*world).recordsFinal},
	{"background work succeeds once", (*world).jobsOnce},
	{"a response behind a slow gate is paid once", (*world).paidOnce},
	{"every response that is stored is counted in the usage", (*world).usageAdds},
}

// interruption is the beginning of the result of a call whose process was killed.
const interruption = "The process ended during this call"

// check reads the store with SQL and compares it with the log.
func (l *lane) check(t *testing.T) {
	t.Helper()
	w := l.look(t)
	for _, one := range invariants {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			broken := one.holds(w)
			if len(broken) > 0 {
				const most = 10
				t.Errorf("after %d kills this breaks it %d times:\n  %s", l.kills, len(broken), strings.Join(broken[:min(len(broken), most)], "\n  "))
			}
		})
	}
}

// turnsEnd checks that at the end no turn is open, and that the last turn of each session
// ended normally.
func (w *world) turnsEnd() (broken []string) {
	if len(w.sessions) == 0 {
		broken = append(broken, "there is no session")
	}
	for id, s := range w.sessions {
		if s.turn != "" || s.state.Turn != nil || s.state.Last != belay.EndTurn {
			broken = append(broken, fmt.Sprintf("session %s: its turn is %q and the last one ended %q", id, s.turn, s.state.Last))
		}
	}
	return broken
}

// messagesStay checks that each submitted message is in its session once. If a reader of
// the stream saw a response or the end of a turn, this must be stored.
func (w *world) messagesStay() (broken []string) {
	said, final := make(map[string]int), make(map[string]int)
	for _, messages := range w.messages {
		for _, m := range messages {
			switch m.Kind {
			case belay.KindUser:
				said[m.Text()]++
			case belay.KindAssistant:
				final[strings.TrimPrefix(m.Text(), "done ")]++
			default:
			}
		}
	}
	for _, e := range w.log {
		switch e.Kind {
		case logSubmitted:
			if said[e.Task] != 1 {
				broken = append(broken, fmt.Sprintf("the message %s was accepted and is there %d times", e.Task, said[e.Task]))
			}
		case logResponse:
			all := w.messages[e.Session]
			if e.Seq > int64(len(all)) || all[e.Seq-1].Kind != belay.KindAssistant {
				broken = append(broken, fmt.Sprintf("the response %d of session %s was shown and is not there", e.Seq, e.Session))
			}
		case logEnded:
			if final[e.Task] != 1 {
				broken = append(broken, fmt.Sprintf("turn %s was reported as ended, and its last response is there %d times", e.Task, final[e.Task]))
			}
		}
	}
	return broken
}

// callsAnswered checks that each call is done, and that the next message has exactly one
// result for the call.
func (w *world) callsAnswered() (broken []string) {
	for id, messages := range w.messages {
		for i, m := range messages {
			parts := m.Calls()
			if len(parts) == 0 {
				continue
			}
			var got []string
			if i+1 < len(messages) {
				for _, p := range messages[i+1].Parts {
					if p.Result != nil {
						got = append(got, p.Result.Call)
					}
				}
			}
			for _, p := range parts {
				if n := len(got) - len(slices.DeleteFunc(slices.Clone(got), func(c string) bool { return c == p.ID })); n != 1 {
					broken = append(broken, fmt.Sprintf("session %s: call %s has %d results", id, p.ID, n))
				}
				if c := w.calls[p.ID]; c.state != string(belay.CallDone) {
					broken = append(broken, fmt.Sprintf("session %s: call %s is %q", id, p.ID, c.state))
				}
			}
		}
	}
	return broken
}

// runsOnce checks that no call of a tool that is not idempotent began twice, and that
// every call with a result of its tool did begin.
func (w *world) runsOnce() (broken []string) {
	began := make(map[string]int)
	for _, e := range w.log {
		if e.Kind == logToolBegin {
			began[e.Call]++
		}
	}
	for id, n := range began {
		if n > 1 && !strings.HasSuffix(id, "-"+toolLook) {
			broken = append(broken, fmt.Sprintf("call %s began %d times", id, n))
		}
	}
	for id, r := range w.results {
		if r.Text == resultOf(id) && began[id] == 0 {
			broken = append(broken, fmt.Sprintf("call %s has a result and never began", id))
		}
	}
	return broken
}

// enough is the number of ticks after which a finished result must be stored. A tick
// takes at least 10 ms plus a write to the disk. Belay promises to store a result after
// 50 ms plus a commit.
const enough = 15

// resultsKept checks that a result that tool.post has seen is stored, if the process then
// lived for enough ticks.
func (w *world) resultsKept() (broken []string) {
	for i, e := range w.log {
		if e.Kind != logToolEnd {
			continue
		}
		seen, ticks := false, 0
		for _, later := range w.log[i+1:] {
			switch {
			case later.Kind == logHookEnd && later.Hook == post && later.callID() == e.Call:
				seen = true
			case later.Kind == logTick && later.Life == e.Life && seen:
				ticks++
			}
		}
		if ticks < enough {
			continue
		}
		if r := w.results[e.Call]; r == nil || r.Text != resultOf(e.Call) {
			broken = append(broken, fmt.Sprintf("call %s had returned %d ticks before life %d was killed, and the result for the model is %+v", e.Call, ticks, e.Life, r))
		} else if c := w.calls[e.Call]; c.state != string(belay.CallDone) || !strings.Contains(c.result, resultOf(e.Call)) {
			broken = append(broken, fmt.Sprintf("call %s had returned %d ticks before life %d was killed, and its record is %+v", e.Call, ticks, e.Life, c))
		}
	}
	return broken
}

// toldExactly checks that no result says that a call may have run, although the call
// certainly never began. See neverBegan.
func (w *world) toldExactly() (broken []string) {
	for _, messages := range w.messages {
		for _, m := range messages {
			for _, c := range m.Calls() {
				if r := w.results[c.ID]; r != nil && strings.HasPrefix(r.Text, interruption) && w.neverBegan(m, c.ID) {
					broken = append(broken, fmt.Sprintf("call %s never began, but its result says that it may have run", c.ID))
				}
			}
		}
	}
	return broken
}

// neverBegan reports whether a call certainly never began: the log has no start of its
// tool, and the only process that could have run the call was killed in model.post, which
// runs before all calls.
func (w *world) neverBegan(m *belay.Message, id string) bool {
	task, step := origin(id)
	asked, killed, seen := 0, 0, false
	for i := range w.log {
		switch e := &w.log[i]; {
		case e.Kind == logToolBegin && e.Call == id:
			return false
		case e.Kind == logAsked && e.Task == task && e.Step == step:
			asked, killed, seen = i+1, 0, false
		case e.Kind == logKilled && asked > 0:
			killed++
		case e.Kind == logHookEnd && e.Hook == observer && e.Envelope.Turn == m.Turn && e.Envelope.Step == m.Step && killed == 0:
			seen = true
		case e.Kind == logHookBegin && e.Hook == post && e.callID() == id: // the call has its result, so it began
			return asked > 0 && killed == 1 && !seen
		}
	}
	return false
}

// place identifies a hook in a turn and step.
type place struct {
	hook, turn string
	step       int
}

// hooksRecorded checks hooks that run outside the process. For each start of a hook in
// the log, the journal must have a record.
func (w *world) hooksRecorded() (broken []string) {
	began, known := make(map[place]int), make(map[place]int)
	for _, e := range w.log {
		if e.Kind == logHookBegin {
			began[place{e.Hook, e.Envelope.Turn, e.Envelope.Step}]++
		}
	}
	background := make(map[string]bool)
	for _, h := range hooks {
		background[h.id] = h.execution == hook.Background
	}
	for _, r := range w.runs {
		if !background[r.hook] || r.job != "" { // a record of background work without a job only says that the work was queued
			known[place{r.hook, r.turn, r.step}]++
		}
	}
	for at, n := range began {
		if known[at] < n {
			broken = append(broken, fmt.Sprintf("hook %s began %d times in step %d of turn %s, and has %d records", at.hook, n, at.step, at.turn, known[at]))
		}
	}
	return broken
}

// recordsFinal checks that every record is in a final state.
func (w *world) recordsFinal() (broken []string) {
	for _, r := range w.runs {
		if r.state == hook.Started.String() {
			broken = append(broken, fmt.Sprintf("hook %s in step %d of turn %s is %s", r.hook, r.step, r.turn, r.state))
		}
	}
	return broken
}

// jobsOnce checks that idempotent background work succeeded once for each turn.
func (w *world) jobsOnce() (broken []string) {
	queued, done := make(map[string]int), make(map[string]int)
	for _, r := range w.runs {
		switch {
		case r.hook != "command-job":
		case r.job == "":
			queued[r.turn]++
		case r.state == hook.Completed.String():
			done[r.turn]++
		}
	}
	for turn := range queued {
		if done[turn] != 1 {
			broken = append(broken, fmt.Sprintf("the background work of turn %s succeeded %d times", turn, done[turn]))
		}
	}
	return broken
}

// paidOnce checks that a response is not requested again after a slow gate has begun to
// check it, and that one process does not request a response twice.
func (w *world) paidOnce() (broken []string) {
	type answer struct {
		task string
		step int
	}
	type request struct {
		answer
		life int
	}
	judged, asked := make(map[answer]bool), make(map[request]bool)
	for _, e := range w.log {
		switch {
		case e.Kind == logHookBegin && (e.Hook == gate || e.Hook == stop):
			task, step := origin(e.callID() + e.endText())
			judged[answer{task, step}] = true
		case e.Kind == logAsked:
			of := answer{e.Task, e.Step}
			if judged[of] {
				broken = append(broken, fmt.Sprintf("step %d of %s: life %d asks the model again, and a gate had begun to judge its response", e.Step, e.Task, e.Life))
			}
			if asked[request{of, e.Life}] {
				broken = append(broken, fmt.Sprintf("step %d of %s: life %d asks the model twice", e.Step, e.Task, e.Life))
			}
			asked[request{of, e.Life}] = true
		}
	}
	return broken
}

// usageAdds checks that the usage of a session is at least the usage of its responses, and
// at most the usage of all requests.
func (w *world) usageAdds() (broken []string) {
	asked := make(map[string]int)
	for _, e := range w.log {
		if e.Kind == logAsked {
			id, _, _ := strings.Cut(e.Task, "-")
			asked[id]++
		}
	}
	for id, s := range w.sessions {
		stored := 0
		for _, m := range w.messages[id] {
			if m.Kind == belay.KindAssistant {
				stored++
			}
		}
		if counted := s.state.Usage.In / usage.In; counted < stored || counted > asked[id] {
			broken = append(broken, fmt.Sprintf("session %s counts %d responses: %d are stored and %d were asked for", id, counted, stored, asked[id]))
		}
	}
	return broken
}

// callID returns the id of the call in the hook's input.
func (e *entry) callID() string { return e.input().ID }

// endText returns the last response of a task in the form of a call's id, if the entry is
// from a hook of turn.stop. Otherwise it returns "".
func (e *entry) endText() string {
	if text, ok := strings.CutPrefix(e.input().Text, "done "); ok && e.Envelope.Phase == belay.TurnStop.Name() {
		return text + "-0-end"
	}
	return ""
}

// hookInput has the fields of a phase's input that the checks use.
type hookInput struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (e *entry) input() (in hookInput) {
	if e.Envelope != nil {
		_ = json.Unmarshal(e.Envelope.Input, &in) // a missing field is empty
	}
	return in
}
