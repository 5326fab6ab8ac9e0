package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// found is the stored state at the end of a story.
type found struct {
	info       belay.SessionInfo
	messages   []*belay.Message
	transcript []string // as text, without values that differ between runs
	approvals  []belay.Approval
	runs       map[string]hook.Run
	effects    map[string]int
}

// interruption is the beginning of the result of an interrupted call.
const interruption = "The process ended during this call"

// look reads the whole stored state.
func look(t testing.TB, open Open, dir string) *found {
	t.Helper()
	s, err := open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	f := &found{runs: make(map[string]hook.Run), effects: make(map[string]int)}
	for info, err := range s.Sessions(t.Context(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		f.info = info
	}
	for m, err := range s.Read(t.Context(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		f.messages = append(f.messages, m)
		f.transcript = append(f.transcript, words(m)...)
	}
	for a, err := range s.Approvals(t.Context(), belay.ApprovalFilter{Session: session}) {
		if err != nil {
			t.Fatal(err)
		}
		f.approvals = append(f.approvals, a)
	}
	for run, err := range s.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		f.runs[run.ID] = run
	}
	done, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for what := range strings.Lines(string(done)) {
		f.effects[strings.TrimSpace(what)]++
	}
	return f
}

// words describes the parts of a message as text.
func words(m *belay.Message) []string {
	var all []string
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			all = append(all, fmt.Sprintf("%s calls %s(%s) as %s", m.Kind, p.Call.Tool, p.Call.Input, p.Call.ID))
		case p.Result != nil:
			all = append(all, fmt.Sprintf("%s of %s by %s: %s %s", m.Kind, p.Result.Call, p.Result.Tool, p.Result.Class, p.Result.Text))
		default:
			all = append(all, fmt.Sprintf("%s says %s", m.Kind, p.Text))
		}
	}
	return all
}

// check compares the final state with the requirements. said has the acknowledged writes.
// undisturbed is the transcript of a run without a kill. Both are nil when check is
// called for the run without a kill.
func (f *found) check(t testing.TB, said *child, undisturbed []string) {
	t.Helper()
	if f.info.Held || f.info.State.Turn != nil || f.info.State.Last != belay.EndTurn {
		t.Errorf("the session is not at rest: %+v", f.info)
	}
	f.checkApprovals(t)
	f.checkAcknowledged(t, said)
	f.checkTranscript(t, undisturbed)
	f.checkTools(t)
	for _, name := range []string{"learn", "index", "recall"} {
		f.checkJob(t, name, true)
	}
	for _, name := range []string{"mail", "bill"} {
		f.checkJob(t, name, false)
	}
	for _, run := range f.runs {
		if !run.State.Final() {
			t.Errorf("a record is not final: %+v", run)
		}
	}
}

// checkApprovals checks the two questions. A person decided the first question for the
// whole session, and this decision also answered the second question.
func (f *found) checkApprovals(t testing.TB) {
	t.Helper()
	if len(f.approvals) != 2 || len(f.info.State.Grants) != 1 {
		t.Errorf("two questions were asked and a grant was given, and these are on record: %+v, %+v", f.approvals, f.info.State.Grants)
		return
	}
	first, second, grant := f.approvals[0], f.approvals[1], f.info.State.Grants[0]
	for _, d := range []*belay.Decision{first.Decided, second.Decided} {
		if d == nil || !d.Allow || d.By != "ann" {
			t.Errorf("a question was decided as %+v, want a yes by ann", d)
			return
		}
	}
	if grant.Approval != first.ID || grant.Asker != "ask" || grant.Tool != "deploy" || !strings.HasSuffix(second.Decided.Reason, first.ID) {
		t.Errorf("the grant is %+v and the second question was decided as %+v, want both to name %s", grant, second.Decided, first.ID)
	}
}

func (f *found) checkAcknowledged(t testing.TB, said *child) {
	t.Helper()
	if said == nil {
		return
	}
	for _, m := range said.messages {
		if m.Seq > int64(len(f.messages)) {
			t.Errorf("message %d was acknowledged and is lost", m.Seq)
			continue
		}
		want, errWant := json.Marshal(m)
		got, err := json.Marshal(f.messages[m.Seq-1])
		if !bytes.Equal(want, got) {
			t.Errorf("message %d was acknowledged as\n%s\nand is now\n%s", m.Seq, want, got)
		}
		if err := errors.Join(err, errWant); err != nil {
			t.Error(err)
		}
	}
	for _, run := range said.runs {
		if got, ok := f.runs[run.ID]; !ok || run.State.Final() && got.State != run.State {
			t.Errorf("record %s was acknowledged as %s and is now %q", run.ID, run.State, got.State)
		}
	}
}

func (f *found) checkTranscript(t testing.TB, undisturbed []string) {
	t.Helper()
	if undisturbed == nil {
		if len(f.transcript) != 13 {
			t.Fatalf("the undisturbed run has another story:\n%s", strings.Join(f.transcript, "\n"))
		}
		return
	}
	if len(f.transcript) != len(undisturbed) {
		t.Fatalf("the transcript has %d parts, not %d:\n%s", len(f.transcript), len(undisturbed), strings.Join(f.transcript, "\n"))
	}
	for i, got := range f.transcript {
		if got != undisturbed[i] && !strings.Contains(got, interruption) {
			t.Errorf("the transcript says\n%s\nwhere an undisturbed one says\n%s", got, undisturbed[i])
		}
	}
}

// checkTools checks the effects of the tools, and the results for the model.
func (f *found) checkTools(t testing.TB) {
	t.Helper()
	all := strings.Join(f.transcript, "\n")
	for _, call := range []string{"send a", "write c", "deploy d", "deploy e"} {
		name, id, _ := strings.Cut(call, " ")
		told := strings.Contains(all, " of "+id+" by "+name+": aborted "+interruption)
		switch n := f.effects["tool "+call]; {
		case n > 1:
			t.Errorf("%s is not idempotent and ran %d times", call, n)
		case n == 0 && !told:
			t.Errorf("%s never ran, and the model was not told", call)
		}
	}
	if f.effects["tool look b"] == 0 || strings.Contains(all, " by look: aborted") {
		t.Error("look is idempotent and was not run again")
	}
}

// checkJob checks background work: its attempts and its effects.
func (f *found) checkJob(t testing.TB, name string, idempotent bool) {
	t.Helper()
	states := make(map[hook.State]int)
	for _, run := range f.runs {
		if run.Attempt > 0 && (run.JobHandler == name || run.JobHandler == "" && run.Subscription == name) {
			states[run.State]++
		}
	}
	n := f.effects["run "+name]
	switch {
	case states[hook.Completed] > 1 || states[hook.Failed]+states[hook.TimedOut] > 0:
		t.Errorf("the attempts at %s ended %v: one success, or interrupted", name, states)
	case idempotent && (states[hook.Completed] != 1 || n == 0):
		t.Errorf("%s is idempotent, ended %v and had its effect %d times", name, states, n)
	case !idempotent && (n > 1 || states[hook.Completed]+states[hook.Interrupted] != 1 || states[hook.Completed] == 1 && n != 1):
		t.Errorf("%s is not idempotent, ended %v and had its effect %d times", name, states, n)
	}
}
