package hooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// TestJournal checks that an implementation of [hook.Journal] does everything that the
// interface promises. open returns an empty journal with room for 2,000 runs. It may return
// the same database each time if it empties the database first. Clean up with t.Cleanup.
//
// Stored runs can be read only from a [hook.ListJournal]. For another journal, the suite
// checks the errors of Append and skips rules that have to read.
//
// Times and latencies may be rounded to a microsecond, as in SQL databases, and times may
// have another zone. All other values must be returned unchanged, except the Err of a
// diagnostic, which is never stored.
func TestJournal(t *testing.T, open func(t testing.TB) hook.Journal) {
	t.Helper()
	testRules(t, journalRules(), open)
}

// journalRules returns every rule of the suite.
func journalRules() []rule[hook.Journal] {
	return slices.Concat(appendRules, fieldRules, listRules, parallelJournalRules)
}

// appendRules describe what Append does, with one caller at a time.
var appendRules = []rule[hook.Journal]{
	{"appending nothing is harmless", func(t testing.TB, j hook.Journal) {
		appendRuns(t, j)
		wantRuns(t, j)
	}},
	{"appended runs are listed", func(t testing.TB, j hook.Journal) {
		one, two := sampleRun("one", hook.Completed, 1), sampleRun("two", hook.Started, 2)
		appendRuns(t, j, one)
		appendRuns(t, j, two)
		wantRuns(t, j, one, two)
	}},
	{"the journal does not keep the caller's slice", func(t testing.TB, j hook.Journal) {
		run := sampleRun("one", hook.Completed, 1)
		batch := []hook.Run{run}
		if err := j.Append(context.Background(), batch); err != nil {
			t.Fatalf("Append: %v", err)
		}
		batch[0] = sampleRun("other", hook.Failed, 2)
		wantRuns(t, j, run)
	}},
	{"every final state replaces started", func(t testing.TB, j hook.Journal) {
		for i, state := range finalStates {
			started, ended := sampleRun("run-"+state.String(), hook.Started, i), sampleRun("run-"+state.String(), state, i)
			ended.Class, ended.Audit = codes.Error, []hook.Audit{{Code: "ended"}}
			appendRuns(t, j, started)
			appendRuns(t, j, ended)
			wantRun(t, j, ended)
		}
	}},
	{"a newer started replaces started", func(t testing.TB, j hook.Journal) {
		older, newer := sampleRun("one", hook.Started, 1), sampleRun("one", hook.Started, 1)
		older.Audit, newer.Attempt = []hook.Audit{{Code: "older"}}, 2
		appendRuns(t, j, older)
		appendRuns(t, j, newer)
		wantRuns(t, j, newer)
	}},
	{"a run may start and end in one batch", func(t testing.TB, j hook.Journal) {
		ended := sampleRun("one", hook.TimedOut, 1)
		appendRuns(t, j, sampleRun("one", hook.Started, 1), ended)
		wantRuns(t, j, ended)
	}},
	{"a started that arrives late is dropped", func(t testing.TB, j hook.Journal) {
		for i, state := range finalStates {
			ended := sampleRun("run-"+state.String(), state, i)
			appendRuns(t, j, ended)
			appendRuns(t, j, sampleRun("run-"+state.String(), hook.Started, i))
			wantRun(t, j, ended)
		}
	}},
	{"the same final state again changes nothing", func(t testing.TB, j hook.Journal) {
		for i, state := range finalStates {
			ended := sampleRun("run-"+state.String(), state, i)
			again := ended
			again.Class, again.Ended, again.Audit = codes.Panic, again.Ended.Add(time.Hour), []hook.Audit{{Code: "again"}}
			appendRuns(t, j, ended)
			appendRuns(t, j, again)
			wantRun(t, j, ended)
		}
	}},
	{"another final state is ErrSettled and changes nothing", func(t testing.TB, j hook.Journal) {
		for i, state := range finalStates {
			ended := sampleRun("run-"+state.String(), state, i)
			appendRuns(t, j, ended)
			for _, other := range finalStates {
				if other != state {
					refuseRuns(t, j, hook.ErrSettled, sampleRun(ended.ID, other, i))
				}
			}
			wantRun(t, j, ended)
		}
	}},
	{"a rejected batch stores nothing", func(t testing.TB, j hook.Journal) {
		ended := sampleRun("ended", hook.Completed, 1)
		appendRuns(t, j, ended)
		refuseRuns(t, j, hook.ErrSettled,
			sampleRun("before", hook.Completed, 2), sampleRun("ended", hook.Failed, 1), sampleRun("after", hook.Completed, 3))
		wantRuns(t, j, ended)
	}},
	{"a rejected batch replaces nothing", func(t testing.TB, j hook.Journal) {
		running, ended := sampleRun("running", hook.Started, 1), sampleRun("ended", hook.Completed, 2)
		appendRuns(t, j, running, ended)
		refuseRuns(t, j, hook.ErrSettled, sampleRun("running", hook.Completed, 1), sampleRun("ended", hook.Interrupted, 2))
		wantRuns(t, j, running, ended)
		appendRuns(t, j, sampleRun("running", hook.Failed, 1)) // the run has not ended yet
	}},
	{"a batch that ends one run in two states is rejected as a whole", func(t testing.TB, j hook.Journal) {
		refuseRuns(t, j, hook.ErrSettled,
			sampleRun("other", hook.Completed, 1), sampleRun("one", hook.Completed, 2), sampleRun("one", hook.Failed, 2))
		wantRuns(t, j)
	}},
	{"a run without an id or a known state is rejected with its batch", func(t testing.TB, j hook.Journal) {
		refuseRuns(t, j, nil, sampleRun("good", hook.Completed, 1), sampleRun("", hook.Completed, 2))
		refuseRuns(t, j, nil, sampleRun("good", hook.Completed, 1), sampleRun("bad", 0, 2))
		refuseRuns(t, j, nil, sampleRun("good", hook.Completed, 1), sampleRun("bad", hook.Interrupted+1, 2))
		wantRuns(t, j)
	}},
	{"a cancelled append stores all or nothing", func(t testing.TB, j hook.Journal) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := j.Append(ctx, []hook.Run{sampleRun("one", hook.Completed, 1), sampleRun("two", hook.Completed, 2)})
		want := 2
		if err != nil {
			want = 0
		}
		if got := len(listRuns(t, j, hook.Filter{})); got != want {
			t.Errorf("Append returned %v and stored %d of 2 runs, want %d", err, got, want)
		}
	}},
}

// fieldRules check that the journal returns a run unchanged.
var fieldRules = []rule[hook.Journal]{
	{"every field comes back", func(t testing.TB, j hook.Journal) {
		appendRuns(t, j, fullRun())
		wantRuns(t, j, fullRun())
	}},
	{"empty fields come back empty", func(t testing.TB, j hook.Journal) {
		run := hook.Run{ID: "bare", State: hook.Started, Started: epoch}
		appendRuns(t, j, run)
		wantRuns(t, j, run)
	}},
	{"the end of a run replaces every field of its start", func(t testing.TB, j hook.Journal) {
		started, ended := fullRun(), hook.Run{ID: fullRun().ID, State: hook.Completed, Started: fullRun().Started}
		started.State = hook.Started
		appendRuns(t, j, started)
		appendRuns(t, j, ended)
		wantRuns(t, j, ended)
	}},
	{"every word of every enumeration comes back", func(t testing.TB, j hook.Journal) {
		for i, run := range enumeratedRuns() {
			run.ID = fmt.Sprintf("enumerated-%d", i)
			appendRuns(t, j, run)
			wantRun(t, j, run)
		}
	}},
	{"text of any language comes back", func(t testing.TB, j hook.Journal) {
		run := fullRun()
		run.Scope.Session, run.Scope.Turn, run.Scope.Agent, run.Origin.Name, run.Origin.File = foreign, foreign, foreign, foreign, foreign
		run.Version, run.Class, run.Key = foreign, codes.Code(foreign), foreign
		run.Contributed[0].Kind, run.Audit[0] = foreign, hook.Audit{Code: foreign, Message: foreign}
		run.Diagnostics[0].Message = foreign
		appendRuns(t, j, run)
		wantRuns(t, j, run)
		if got := listRuns(t, j, hook.Filter{Session: foreign, Turn: foreign}); len(got) != 1 {
			t.Errorf("a filter for %q selects %d runs, want 1", foreign, len(got))
		}
	}},
	{"text of the greatest length comes back", func(t testing.TB, j hook.Journal) {
		run := fullRun()
		run.ID, run.Subscription, run.Phase = strings.Repeat("i", 140), strings.Repeat("s", 128), strings.Repeat("p", 128)
		run.Key, run.Job = strings.Repeat("k", 256), strings.Repeat("j", 150)
		run.Audit[0].Message = strings.Repeat("🙂", 512)
		run.Diagnostics[0].Message = strings.Repeat("é", 512)
		for i := range 100 {
			run.Audit = append(run.Audit, hook.Audit{Code: fmt.Sprintf("note.%d", i), Message: strings.Repeat("x", 512)})
		}
		appendRuns(t, j, run)
		wantRuns(t, j, run)
	}},
	{"a time comes back as the same moment, whatever its zone", func(t testing.TB, j hook.Journal) {
		for i, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -11*3600-1800)} {
			run := sampleRun(fmt.Sprintf("zone-%d", i), hook.Completed, i)
			run.Started, run.Ended = run.Started.In(zone), run.Ended.In(zone)
			appendRuns(t, j, run)
			got := readRun(t, j, run.ID)
			if !got.Started.Equal(run.Started) || !got.Ended.Equal(run.Ended) {
				t.Errorf("stored %s to %s, read %s to %s", run.Started, run.Ended, got.Started, got.Ended)
			}
		}
	}},
}

// enumeratedRuns returns a run for each value of each enumeration in a Run.
func enumeratedRuns() []hook.Run {
	var runs []hook.Run
	add := func(change func(r *hook.Run)) {
		run := sampleRun("", hook.Completed, len(runs))
		change(&run)
		runs = append(runs, run)
	}
	for state := hook.Started; state <= hook.Interrupted; state++ {
		add(func(r *hook.Run) { *r = sampleRun("", state, len(runs)) })
	}
	for execution := hook.Blocking; execution <= hook.Background; execution++ {
		add(func(r *hook.Run) { r.Execution = execution })
	}
	for visibility := hook.VisibleInAudit; visibility <= hook.VisibleToUser; visibility++ {
		add(func(r *hook.Run) { r.Visibility = visibility })
	}
	for severity := hook.SeverityPass; severity <= hook.SeverityHalt; severity++ {
		add(func(r *hook.Run) { r.Severity = severity })
	}
	for kind := hook.OriginHost; kind <= hook.OriginSpace; kind++ {
		add(func(r *hook.Run) { r.Origin.Kind = kind })
	}
	for _, level := range []codes.Level{codes.LevelInfo, codes.LevelWarn, codes.LevelError} {
		add(func(r *hook.Run) { r.Diagnostics = []hook.Diagnostic{{Code: codes.Error, Level: level}} })
	}
	for _, info := range codes.All() {
		add(func(r *hook.Run) { r.Class = info.Code })
	}
	return runs
}

// appendRuns appends one batch that the journal must accept.
func appendRuns(t testing.TB, j hook.Journal, runs ...hook.Run) {
	t.Helper()
	if err := j.Append(context.Background(), slices.Clone(runs)); err != nil {
		t.Fatalf("Append(%s): %v", briefly(runs), err)
	}
}

// refuseRuns appends a batch that the journal must reject with the error want. If want is
// nil, any error is right.
func refuseRuns(t testing.TB, j hook.Journal, want error, runs ...hook.Run) {
	t.Helper()
	err := j.Append(context.Background(), slices.Clone(runs))
	switch {
	case err == nil:
		t.Errorf("Append(%s) was accepted, want it rejected", briefly(runs))
	case want != nil && !errors.Is(err, want):
		t.Errorf("Append(%s) returned the error %q, want an error that is %q", briefly(runs), err, want)
	}
}

// listRuns reads the runs that match. It skips the rule if the journal cannot be listed.
func listRuns(t testing.TB, j hook.Journal, filter hook.Filter) []hook.Run {
	t.Helper()
	lister, ok := j.(hook.ListJournal)
	if !ok {
		t.Skip("hooktest: the journal is not a hook.ListJournal, so the stored runs cannot be checked")
	}
	var runs []hook.Run
	for run, err := range lister.List(context.Background(), filter) {
		if err != nil {
			t.Fatalf("List(%+v): %v", filter, err)
		}
		runs = append(runs, run)
	}
	return runs
}

// wantRuns asserts that the journal has exactly these runs, in this order.
func wantRuns(t testing.TB, j hook.Journal, want ...hook.Run) {
	t.Helper()
	got := listRuns(t, j, hook.Filter{})
	if len(got) != len(want) {
		t.Errorf("the journal holds %s, want %s", briefly(got), briefly(want))
		return
	}
	for i := range want {
		if diff := differentRun(want[i], got[i]); diff != "" {
			t.Errorf("run %d differs from the stored one (- stored, + read):\n%s", i+1, diff)
		}
	}
}

// wantRun asserts that the journal has the run once, unchanged.
func wantRun(t testing.TB, j hook.Journal, want hook.Run) {
	t.Helper()
	if diff := differentRun(want, readRun(t, j, want.ID)); diff != "" {
		t.Errorf("run %s differs from the stored one (- stored, + read):\n%s", want.ID, diff)
	}
}

// readRun reads the run with an id. It fails unless the journal has exactly one.
func readRun(t testing.TB, j hook.Journal, id string) hook.Run {
	t.Helper()
	var found []hook.Run
	for _, run := range listRuns(t, j, hook.Filter{}) {
		if run.ID == id {
			found = append(found, run)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the journal holds %d runs with the id %q, want 1", len(found), id)
	}
	return found[0]
}

// briefly formats runs as [id:state ...].
func briefly(runs []hook.Run) string {
	words := make([]string, len(runs))
	for i, r := range runs {
		words[i] = fmt.Sprintf("%s:%s", r.ID, r.State)
	}
	return fmt.Sprint(words)
}
