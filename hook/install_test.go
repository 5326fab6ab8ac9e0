package hook_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// gateWith returns a gate subscription "a" with the options.
func gateWith(o hook.Options) hook.Subscription { return gatePhase.On("a", says(verdict{}), &o) }

// observeWith returns an observe subscription "a" with the options.
func observeWith(o hook.Options) hook.Subscription { return observePhase.On("a", says(remark{}), &o) }

// Install finds mistakes in options, and its error names the subscription and the field.
//
// SPEC H-02, H-03, H-09, H-10
func TestInstallRefusesBadOptions(t *testing.T) {
	t.Parallel()
	foreign := hook.Define(hook.Definition[call, remark]{Name: "test.foreign", Kind: hook.Observe})
	var noHandler hook.Handler[call, verdict]
	for _, test := range []struct {
		rule  string
		sub   hook.Subscription
		field string // the wrong field; empty: the options are accepted
	}{
		{"a phase the runtime has", gateWith(hook.Options{}), ""},
		{"a phase the runtime does not have is refused", foreign.On("a", says(remark{}), nil), "phase"},
		{"there is no subscription without a handler", gatePhase.On("a", noHandler, nil), "handler"},
		{"every known handler kind is accepted", gateWith(hook.Options{Kind: hook.HandlerWebhook}), ""},
		{"an unknown handler kind is refused", gateWith(hook.Options{Kind: "wasm"}), "kind"},
		{"an unknown execution is refused", gateWith(hook.Options{Execution: 9}), "execution"},
		{"an unknown visibility is refused", gateWith(hook.Options{Visibility: 9}), "visibility"},
		{"an unknown origin is refused", gateWith(hook.Options{Origin: hook.Origin{Kind: 9}}), "origin"},

		{"a blocking handler needs no timeout", gateWith(hook.Options{}), ""},
		{"a blocking handler may have a timeout", gateWith(hook.Options{Timeout: time.Second}), ""},
		{"deadline execution needs a timeout", gateWith(hook.Options{Execution: hook.Deadline}), "timeout"},
		{"a deadline with a timeout is accepted", gateWith(hook.Options{Execution: hook.Deadline, Timeout: 1}), ""},
		{"a negative timeout is refused", gateWith(hook.Options{Timeout: -1}), "timeout"},
		{"a negative deadline is refused", gateWith(hook.Options{Execution: hook.Deadline, Timeout: math.MinInt64}), "timeout"},
		{"a negative timeout is refused for work that is not waited for", observeWith(hook.Options{Execution: hook.FireAndRecord, Timeout: -time.Second}), "timeout"},

		{"concurrent goes with blocking", gateWith(hook.Options{Concurrent: true}), ""},
		{"concurrent contradicts deadline", gateWith(hook.Options{Concurrent: true, Execution: hook.Deadline, Timeout: 1}), "concurrent"},
		{"concurrent contradicts fire_and_record", observeWith(hook.Options{Concurrent: true, Execution: hook.FireAndRecord}), "concurrent"},
		{"concurrent contradicts background", observeWith(hook.Options{Concurrent: true, Execution: hook.Background}), "concurrent"},
		{"concurrent contradicts rewriting", rewritePhase.On("a", says(edit{}), rewriter(hook.Options{Concurrent: true})), "concurrent"},
		{"a rewriter may have a deadline", rewritePhase.On("a", says(edit{}), rewriter(hook.Options{Execution: hook.Deadline, Timeout: 1})), ""},

		{"a gate waits: fire_and_record is refused", gateWith(hook.Options{Execution: hook.FireAndRecord, Failure: hook.Open}), "execution"},
		{"a gate waits: background is refused", gateWith(hook.Options{Execution: hook.Background, Failure: hook.Open}), "execution"},
		{"an observer may use fire_and_record", observeWith(hook.Options{Execution: hook.FireAndRecord}), ""},
		{"an observer may run in the background", observeWith(hook.Options{Execution: hook.Background}), ""},
		{"background needs inputs that can be found again", pagePhase.On("a", says[*page](nil), &hook.Options{Execution: hook.Background}), "execution"},

		{"an observe phase refuses closed", observeWith(hook.Options{Failure: hook.Closed}), "failure"},
		{"fire_and_record cannot fail closed", collectPhase.On("a", says(findings{}), &hook.Options{Execution: hook.FireAndRecord, Failure: hook.Closed}), "failure"},
		{"a background job that cannot be stored may end the turn", collectPhase.On("a", says(findings{}), &hook.Options{Execution: hook.Background, Failure: hook.Closed}), ""},
		{"a fallback needs blocking or deadline execution", collectPhase.On("a", says(findings{}), &hook.Options{Execution: hook.FireAndRecord, Failure: collectPhase.Fallback(findings{})}), "failure"},
		{"a fallback of another phase is refused", gateWith(hook.Options{Failure: collectPhase.Fallback(note("x"))}), "failure"},
		{"a fallback of another phase is refused, even if the types are equal", collectPhase.On("a", says(findings{}), &hook.Options{Failure: withholdPhase.Fallback(note("x"))}), "failure"},
		{"a fallback with jobs is refused", gateWith(hook.Options{Failure: gatePhase.Fallback(verdict{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}})}), "failure"},

		{"only background work is retried", observeWith(hook.Options{Idempotent: true, Retry: hook.Retry{Attempts: 2}}), "retry"},
		{"only idempotent work is retried: set Idempotent if running it twice does no harm", observeWith(hook.Options{Execution: hook.Background, Retry: hook.Retry{Attempts: 2}}), "retry"},
		{"idempotent background work may be retried", observeWith(hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Attempts: 2}}), ""},
		{"a retry without attempts is refused", observeWith(hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Delay: 1}}), "retry"},
		{"a negative delay of a retry is refused", observeWith(hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Attempts: 2, Delay: -1}}), "retry"},
		{"a jitter above 1 is refused", observeWith(hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Attempts: 2, Jitter: 1.5}}), "retry"},
		{"a jitter that is not a number is refused", observeWith(hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Attempts: 2, Jitter: math.NaN()}}), "retry"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, &hook.RuntimeOptions{Queue: hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)})
			_, err := rt.Install(test.sub)
			if test.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			problems := installProblems(t, err)
			refused, ok := errors.AsType[*hook.OptionError](problems[0])
			if len(problems) != 1 || !ok || refused.Field != test.field || refused.Subscription != "a" {
				t.Fatalf("got %v, want one problem, with %s of subscription a", err, test.field)
			}
			for _, part := range []string{`"a"`, test.field, refused.Phase} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not name %s: %v", part, err)
				}
			}
			if rt.Subscriptions() != nil {
				t.Error("it was installed all the same")
			}
		})
	}
}

// SPEC H-09
func TestBackgroundNeedsAQueue(t *testing.T) {
	t.Parallel()
	_, err := newRuntime(t, nil).Install(observeWith(hook.Options{Execution: hook.Background}))
	if problem, ok := errors.AsType[*hook.OptionError](err); !ok || problem.Field != "execution" {
		t.Errorf("got %v, want an *OptionError about the execution", err)
	}
}

// SPEC H-03
func TestIDs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, id string
		ok       bool
	}{
		{"one character is enough", "a", true},
		{"all of the alphabet", "azAZ09._:/-", true},
		{"punctuation alone", "..", true},
		{"128 characters", strings.Repeat("x", 128), true},
		{"129 characters are too many", strings.Repeat("x", 129), false},
		{"the empty id", "", false},
		{"a space", "no prod", false},
		{"a space at the end", "no-prod ", false},
		{"a newline", "no-prod\n", false},
		{"a letter of another alphabet", "größe", false},
		{"a letter that only looks the same", "аbc", false}, // begins with a Cyrillic letter
		{"a character outside the alphabet", "no@prod", false},
		{"a null byte", "no\x00prod", false},
		{"bytes that are no text", "no\xffprod", false},
	} {
		_, err := newRuntime(t, nil).Install(gatePhase.On(test.id, says(verdict{}), nil))
		if problem, ok := errors.AsType[*hook.OptionError](err); test.ok != (err == nil) || err != nil && (!ok || problem.Field != "id" || problem.Subscription != test.id) {
			t.Errorf("%s: install %q: got %v", test.rule, test.id, err)
		}
	}
}

// SPEC H-03
func FuzzID(f *testing.F) {
	for _, id := range []string{"", "a", "no-prod", "a b", "ä", strings.Repeat("x", 128), strings.Repeat("x", 129), "\x00", "a\n"} {
		f.Add(id)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-"
	f.Fuzz(func(t *testing.T, id string) {
		_, err := newRuntime(t, nil).Install(gatePhase.On(id, says(verdict{}), nil))
		want := id != "" && len(id) <= 128 && strings.Trim(id, alphabet) == ""
		for _, r := range id {
			want = want && strings.ContainsRune(alphabet, r)
		}
		if (err == nil) != want {
			t.Errorf("install %q: got %v, want it accepted: %t", id, err, want)
		}
	})
}

// SPEC H-03
func TestDuplicateIDs(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("a", says(verdict{}), nil))
	install(t, rt, collectPhase.On("a", says(findings{}), nil)) // An id may exist on several phases.
	for rule, subs := range map[string][]hook.Subscription{
		"an id that is installed":               {gatePhase.On("a", says(verdict{}), nil)},
		"an id twice in one call":               {gatePhase.On("b", says(verdict{}), nil), gatePhase.On("b", says(verdict{}), nil)},
		"an id that is installed, disabled now": {gatePhase.On("a", says(verdict{}), &hook.Options{Disabled: true})},
	} {
		_, err := rt.Install(subs...)
		problem, ok := errors.AsType[*hook.OptionError](err)
		if !ok || problem.Field != "id" || problem.Subscription != subs[0].ID() || problem.Phase != "test.gate" {
			t.Errorf("%s: got %v, want an *OptionError about the id", rule, err)
		}
	}
	same(t, "plan", planOf(t, rt, gatePhase), []string{"a"})
}

// SPEC H-03
func TestInstallIsAllOrNothing(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("here", says(verdict{}), nil))
	_, err := rt.Install(
		gatePhase.On("fine", says(deny("never")), nil),
		gatePhase.On("no good", says(verdict{}), nil),
		collectPhase.On("fine", says(findings{}), nil),
		gatePhase.On("slow", says(verdict{}), &hook.Options{Execution: hook.Deadline, Origin: hook.Origin{Kind: hook.OriginProject, File: "hooks/slow.yaml", Line: 4}}),
	)
	problems := installProblems(t, err)
	var got []string
	for _, p := range problems {
		if refused, ok := errors.AsType[*hook.OptionError](p); ok {
			got = append(got, refused.Subscription+" "+refused.Field)
		}
	}
	same(t, "problems", got, []string{"no good id", "slow timeout"})
	if !strings.Contains(err.Error(), "hooks/slow.yaml:4: ") {
		t.Errorf("the error does not say where the subscription was declared: %v", err)
	}
	same(t, "plan of the gate", planOf(t, rt, gatePhase), []string{"here"})
	same(t, "plan of the collect phase", planOf(t, rt, collectPhase), []string{})
	s := snapshot(t, rt)
	equal(t, "collect phase active", collectPhase.Active(s), false)
	equal(t, "verdict", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityPass)
	equal(t, "subscriptions", len(rt.Subscriptions()), 1)
}

// Install reports all mistakes at once, so that users need not fix them one by one.
//
// SPEC H-03
func TestInstallReportsEveryField(t *testing.T) {
	t.Parallel()
	_, err := newRuntime(t, nil).Install(gatePhase.On("", says(verdict{}), &hook.Options{
		Kind: "wasm", Timeout: -1, Visibility: 7, Match: hook.Match{Tools: []string{}},
		Capabilities: hook.CanApprove, Failure: collectPhase.Fallback(findings{}),
	}))
	fields := map[string]bool{}
	for _, p := range installProblems(t, err) {
		if refused, ok := errors.AsType[*hook.OptionError](p); ok {
			fields[refused.Field] = true
		}
	}
	want := map[string]bool{"id": true, "kind": true, "timeout": true, "visibility": true, "match.tools": true, "capabilities": true, "failure": true}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("got %v, want %v", fields, want)
	}
}

// SPEC H-03
func TestUnknownPhaseIsNamed(t *testing.T) {
	t.Parallel()
	near := hook.Define(hook.Definition[call, remark]{Name: "test.obsreve", Kind: hook.Observe})
	rt := newRuntime(t, nil)
	_, err := rt.Install(near.On("a", says(remark{}), nil))
	if err == nil || !strings.Contains(err.Error(), `did you mean "test.observe"`) {
		t.Errorf("got %v, want a suggestion", err)
	}
	if _, err := rt.Plan("test.obsreve"); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("plan: got %v, want ErrNotFound", err)
	}
}
