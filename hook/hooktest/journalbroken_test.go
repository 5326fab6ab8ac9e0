package hooktest_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

// brokenJournals lists faults, each with the rules that must detect it.
var brokenJournals = []struct {
	fault   string
	inflict func(s *slate)
	rules   []string
}{
	{"refuses an empty batch", func(s *slate) {
		s.append = func(_ context.Context, runs []hook.Run) error {
			if len(runs) == 0 {
				return errors.New("nothing to append")
			}
			return s.keep(runs)
		}
	}, []string{"appending nothing is harmless"}},
	{"stores nothing", func(s *slate) {
		s.append = func(context.Context, []hook.Run) error { return nil }
	}, []string{"appended runs are listed", "every field comes back", "concurrent appends lose nothing", "the oldest comes first"}},
	{"loses a batch now and then", func(s *slate) {
		n := 0
		s.append = func(_ context.Context, runs []hook.Run) error {
			if n++; n%7 == 0 {
				return nil
			}
			return s.keep(runs)
		}
	}, []string{"concurrent appends lose nothing", "the oldest comes first"}},
	{"keeps the caller's slice", func(s *slate) {
		s.append = func(_ context.Context, runs []hook.Run) error {
			s.runs = runs
			return nil
		}
	}, []string{"the journal does not keep the caller's slice"}},
	{"keeps the first record of an id", func(s *slate) {
		s.upsert = func(stored, _ hook.Run) (hook.Run, error) { return stored, nil }
	}, []string{
		"every final state replaces started", "a newer started replaces started",
		"a run may start and end in one batch", "the end of a run replaces every field of its start",
	}},
	{"keeps the last record of an id", func(s *slate) {
		s.upsert = func(_, run hook.Run) (hook.Run, error) { return run, nil }
	}, []string{
		"a started that arrives late is dropped", "the same final state again changes nothing",
		"another final state is ErrSettled and changes nothing", "a rejected batch stores nothing",
		"a batch that ends one run in two states is rejected as a whole", "if many end a run in different states, one wins",
	}},
	{"does not let a run that started be skipped", func(s *slate) {
		keep := s.upsert
		s.upsert = func(stored, run hook.Run) (hook.Run, error) {
			if run.State == hook.Skipped && !stored.State.Final() {
				return stored, hook.ErrSettled
			}
			return keep(stored, run)
		}
	}, []string{"every final state replaces started"}},
	{"lets a final state go back to started", func(s *slate) {
		keep := s.upsert
		s.upsert = func(stored, run hook.Run) (hook.Run, error) {
			if run.State == hook.Started {
				return run, nil
			}
			return keep(stored, run)
		}
	}, []string{"a started that arrives late is dropped"}},
	{"drops another final state in silence", func(s *slate) {
		s.upsert = func(stored, run hook.Run) (hook.Run, error) {
			if stored.State.Final() {
				return stored, nil
			}
			return run, nil
		}
	}, []string{"another final state is ErrSettled and changes nothing", "if many end a run in different states, one wins"}},
	{"refuses with an error of its own", func(s *slate) {
		keep := s.upsert
		s.upsert = func(stored, run hook.Run) (hook.Run, error) {
			kept, err := keep(stored, run)
			if err != nil {
				err = errors.New("constraint violated")
			}
			return kept, err
		}
	}, []string{"another final state is ErrSettled and changes nothing"}},
	{"refuses the same final state", func(s *slate) {
		s.upsert = func(stored, run hook.Run) (hook.Run, error) {
			if stored.State.Final() && run.State.Final() {
				return stored, hook.ErrSettled
			}
			return run, nil
		}
	}, []string{"the same final state again changes nothing"}},
	{"stores half of a refused batch", func(s *slate) { s.halves = true }, []string{
		"a rejected batch stores nothing", "a rejected batch replaces nothing",
		"a batch that ends one run in two states is rejected as a whole", "a run without an id or a known state is rejected with its batch",
	}},
	{"accepts whatever it is given", func(s *slate) {
		s.check = func(hook.Run) error { return nil }
	}, []string{"a run without an id or a known state is rejected with its batch"}},
	{"stores half when it is cancelled", func(s *slate) {
		s.append = func(ctx context.Context, runs []hook.Run) error {
			if err := ctx.Err(); err != nil {
				return errors.Join(s.keep(runs[:1]), err)
			}
			return s.keep(runs)
		}
	}, []string{"a cancelled append stores all or nothing"}},
	{"fills in empty fields", func(s *slate) {
		s.store = func(r *hook.Run) {
			if r.Ended.IsZero() {
				r.Ended = r.Started
			}
		}
	}, []string{"empty fields come back empty"}},
	{"keeps fields of the start", func(s *slate) {
		s.upsert = func(stored, run hook.Run) (hook.Run, error) {
			run.Audit = append(run.Audit, stored.Audit...)
			return run, nil
		}
	}, []string{"the end of a run replaces every field of its start", "a newer started replaces started"}},
	{"does not know the newest word", func(s *slate) {
		s.store = func(r *hook.Run) { r.Severity = min(r.Severity, hook.SeverityDeny) }
	}, []string{"every word of every enumeration comes back"}},
	{"knows ASCII only", func(s *slate) {
		s.store = func(r *hook.Run) {
			r.Scope.Session = strings.Map(func(c rune) rune { return min(c, 127) }, r.Scope.Session)
		}
	}, []string{"text of any language comes back"}},
	{"cuts text", func(s *slate) {
		s.store = func(r *hook.Run) { r.Key = r.Key[:min(len(r.Key), 255)] }
	}, []string{"text of the greatest length comes back"}},
	{"ignores time zones", func(s *slate) {
		s.store = func(r *hook.Run) {
			year, month, day := r.Started.Date()
			hour, minute, second := r.Started.Clock()
			r.Started = time.Date(year, month, day, hour, minute, second, r.Started.Nanosecond(), time.UTC)
		}
	}, []string{"a time comes back as the same moment, whatever its zone"}},
	{"does not look at the session", ignores(func(f *hook.Filter) { f.Session = "" }), []string{"a filter selects by session", "every field of a filter must match"}},
	{"does not look at the turn", ignores(func(f *hook.Filter) { f.Turn = "" }), []string{"a filter selects by turn"}},
	{"does not look at the phase", ignores(func(f *hook.Filter) { f.Phase = "" }), []string{"a filter selects by phase", "every field of a filter must match"}},
	{"does not look at the subscription", ignores(func(f *hook.Filter) { f.Subscription = "" }), []string{"a filter selects by subscription"}},
	{"does not look at the job", ignores(func(f *hook.Filter) { f.Job = "" }), []string{"a filter selects by job"}},
	{"looks at the first state alone", ignores(func(f *hook.Filter) { f.States = f.States[:min(len(f.States), 1)] }), []string{"a filter selects by any of several states"}},
	{"does not look at Since", ignores(func(f *hook.Filter) { f.Since = time.Time{} }), []string{"a filter selects by time of start, Until exclusive"}},
	{"takes Until as inclusive", ignores(func(f *hook.Filter) {
		if !f.Until.IsZero() {
			f.Until = f.Until.Add(1)
		}
	}), []string{"a filter selects by time of start, Until exclusive"}},
	{"does not look at the limit", ignores(func(f *hook.Filter) { f.Limit = 0 }), []string{"a limit counts only matches"}},
	{"does not look at Newest", ignores(func(f *hook.Filter) { f.Newest = false }), []string{"the newest comes first if the filter says so, and a limit counts from there"}},
	{"limits before it filters", func(s *slate) {
		keep := s.filter
		s.filter = func(f hook.Filter, runs []hook.Run) []hook.Run { return keep(f, limited(runs, f.Limit)) }
	}, []string{"a limit counts only matches"}},
	{"treats a filter as a pattern", func(s *slate) {
		keep := s.filter
		s.filter = func(f hook.Filter, runs []hook.Run) []hook.Run {
			if strings.HasSuffix(f.Session, "%") {
				f.Session = ""
			}
			return keep(f, runs)
		}
	}, []string{"every field of a filter must match"}},
	{"lists a run that does not exist", func(s *slate) {
		s.read = func(runs []hook.Run) []hook.Run { return append(runs, hook.Run{ID: "ghost"}) }
	}, []string{"an empty journal lists nothing"}},
	{"lists the newest first", func(s *slate) {
		s.read = func(runs []hook.Run) []hook.Run { slices.Reverse(runs); return runs }
	}, []string{"the oldest comes first", "runs with the same start keep the order in which they were appended", "a run keeps its place when it ends"}},
	{"lists by time and then by id", func(s *slate) {
		s.read = func(runs []hook.Run) []hook.Run {
			slices.SortFunc(runs, func(a, b hook.Run) int {
				return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
			})
			return runs
		}
	}, []string{"runs with the same start keep the order in which they were appended"}},
	{"moves a run that changes", func(s *slate) { s.moves = true }, []string{"a run keeps its place when it ends"}},
	{"lists once", func(s *slate) {
		keep := s.yield
		s.yield = func(ctx context.Context, runs []hook.Run) iter.Seq2[hook.Run, error] {
			listing, used := keep(ctx, runs), false
			return func(yield func(hook.Run, error) bool) {
				if !used {
					used = true
					listing(yield)
				}
			}
		}
	}, []string{"a listing can be abandoned and started again"}},
	{"ends a cancelled listing in silence", func(s *slate) {
		keep := s.yield
		s.yield = func(ctx context.Context, runs []hook.Run) iter.Seq2[hook.Run, error] {
			if ctx.Err() != nil {
				runs = nil
			}
			return keep(context.WithoutCancel(ctx), runs)
		}
	}, []string{"a cancelled listing ends with an error"}},
	{"lists all but the newest", func(s *slate) {
		s.read = func(runs []hook.Run) []hook.Run { return runs[:max(len(runs)-1, 0)] }
	}, []string{"a reader sees a batch completely or not at all", "a run that ends during a listing is seen in its old or its new state"}},
	{"lists half of what is new", func(s *slate) {
		s.read = func(runs []hook.Run) []hook.Run {
			for i := range runs {
				runs[i].Class = ""
			}
			return runs
		}
	}, []string{"a run that ends during a listing is seen in its old or its new state"}},
}

// ignores returns the fault of a journal that changes a filter before it uses the filter.
func ignores(change func(f *hook.Filter)) func(s *slate) {
	return func(s *slate) {
		keep := s.filter
		s.filter = func(f hook.Filter, runs []hook.Run) []hook.Run {
			change(&f)
			return keep(f, runs)
		}
	}
}

func TestJournalSuiteCatches(t *testing.T) {
	t.Parallel()
	caught := make(map[string]bool)
	for _, broken := range brokenJournals {
		for _, rule := range broken.rules {
			caught[rule] = true
		}
		t.Run(broken.fault, func(t *testing.T) {
			t.Parallel()
			for _, rule := range hooktest.JournalRules() {
				if !slices.Contains(broken.rules, rule.Name) {
					continue
				}
				s := newSlate()
				broken.inflict(s)
				if p := probetest.Run(t, func(t testing.TB) { rule.Check(t, s) }); len(p.Failures()) == 0 {
					t.Errorf("the rule %q holds for a journal that %s", rule.Name, broken.fault)
				}
			}
		})
	}
	for _, rule := range hooktest.JournalRules() {
		if !caught[rule.Name] {
			t.Errorf("nothing breaks the rule %q: it may be one that cannot fail", rule.Name)
		}
		delete(caught, rule.Name)
	}
	for rule := range caught {
		t.Errorf("there is no rule %q", rule)
	}
}

// The suite detects a journal that does not store one field of a Run, whichever field it
// is.
func TestJournalSuiteCatchesEveryForgottenField(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[hook.Run]().Fields() {
		if field.Name == "ID" || field.Name == "State" || field.Name == "Position" { // the journal rejects a run without the first two, and sets the position itself
			continue
		}
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			s := newSlate()
			s.store = func(r *hook.Run) { reflect.ValueOf(r).Elem().FieldByIndex(field.Index).SetZero() }
			for _, rule := range hooktest.JournalRules() {
				if rule.Name == "every field comes back" {
					probetest.Run(t, func(t testing.TB) { rule.Check(t, s) }).WantFailure(t, "differs from the stored one")
				}
			}
		})
	}
}

// The samples of the suites set every field, at any depth. So a new field of Run or Job
// cannot be forgotten.
func TestSamplesSetEveryField(t *testing.T) {
	t.Parallel()
	for path := range emptyFields("Run", reflect.ValueOf(hooktest.FullRun())) {
		if !strings.HasSuffix(path, ".Err") && path != "Run.Position" { // an Err is never stored, and the journal sets the position
			t.Errorf("%s is empty in the sample", path)
		}
	}
	for path := range emptyFields("Job", reflect.ValueOf(hooktest.FullJob(time.Now()))) {
		if path != "Job.Attempt" { // the queue counts the attempts
			t.Errorf("%s is empty in the sample", path)
		}
	}
}

// emptyFields yields the paths of the empty fields of a value.
func emptyFields(path string, v reflect.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		var walk func(path string, v reflect.Value) bool
		walk = func(path string, v reflect.Value) bool {
			if v.IsZero() {
				return yield(path)
			}
			switch v.Kind() {
			case reflect.Struct:
				if v.Type() == reflect.TypeFor[time.Time]() {
					return true
				}
				for i := range v.NumField() {
					if !walk(path+"."+v.Type().Field(i).Name, v.Field(i)) {
						return false
					}
				}
			case reflect.Slice:
				for i := range v.Len() {
					if !walk(path, v.Index(i)) {
						return false
					}
				}
			default:
			}
			return true
		}
		walk(path, v)
	}
}

// For a journal that cannot be listed, the suite still checks the errors.
func TestJournalSuiteWithoutListing(t *testing.T) {
	t.Parallel()
	for _, rule := range hooktest.JournalRules() {
		p := probetest.Run(t, func(t testing.TB) { rule.Check(t, blind{newSlate()}) })
		p.WantSuccess(t)
		if !p.Skipped() {
			t.Errorf("the rule %q does not say that it saw nothing", rule.Name)
		}
		if rule.Name == "another final state is ErrSettled and changes nothing" {
			loose := newSlate()
			loose.upsert = func(_, run hook.Run) (hook.Run, error) { return run, nil }
			probetest.Run(t, func(t testing.TB) { rule.Check(t, blind{loose}) }).WantFailure(t, "want it rejected")
		}
	}
}

// blind is a journal that cannot be listed.
type blind struct{ journal hook.Journal }

func (b blind) Append(ctx context.Context, runs []hook.Run) error { return b.journal.Append(ctx, runs) }
