package probetest_test

import (
	"slices"
	"testing"

	"github.com/belay-run/belay/internal/probetest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule     string
		run      func(t testing.TB)
		failures []string
		skipped  bool
	}{
		{"a test that reports nothing has passed", func(testing.TB) {}, nil, false},
		{"failures are kept in order", func(t testing.TB) {
			t.Helper()
			t.Error("one ", 1)
			t.Errorf("two %d", 2)
			t.Fail()
		}, []string{"one 1", "two 2", "failed"}, false},
		{"a fatal failure ends the test", then(func(t testing.TB) { t.Helper(); t.Fatal("one") }), []string{"one"}, false},
		{"a formatted one too", then(func(t testing.TB) { t.Helper(); t.Fatalf("%d", 1) }), []string{"1"}, false},
		{"and one without a message", then(func(t testing.TB) { t.Helper(); t.FailNow() }), []string{"failed"}, false},
		{"a skip ends the test", then(func(t testing.TB) { t.Helper(); t.Skip("later") }), nil, true},
		{"a formatted skip too", then(func(t testing.TB) { t.Helper(); t.Skipf("%d", 1) }), nil, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p := probetest.Run(t, test.run)
			if got := p.Failures(); !slices.Equal(got, test.failures) || p.Failed() != (len(test.failures) > 0) || p.Skipped() != test.skipped {
				t.Errorf("failures %q, failed %t, skipped %t; want %q, skipped %t", got, p.Failed(), p.Skipped(), test.failures, test.skipped)
			}
		})
	}
}

// then returns a test that calls end and fails if end returns.
func then(end func(t testing.TB)) func(t testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		end(t)
		t.Error("it went on")
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	passed := probetest.Run(t, func(testing.TB) {})
	failed := probetest.Run(t, func(t testing.TB) { t.Helper(); t.Error("the lid is open"); t.Error("the light is on") })
	passed.WantSuccess(t)
	failed.WantFailure(t)
	failed.WantFailure(t, "lid", "light")
	for rule, run := range map[string]func(t testing.TB){
		"a success is no failure":           func(t testing.TB) { t.Helper(); passed.WantFailure(t) },
		"a failure is no success":           func(t testing.TB) { t.Helper(); failed.WantSuccess(t) },
		"a failure says what it is to say":  func(t testing.TB) { t.Helper(); failed.WantFailure(t, "lid", "door") },
		"a success does not say what it is": func(t testing.TB) { t.Helper(); passed.WantFailure(t, "lid") },
	} {
		if p := probetest.Run(t, run); !p.Failed() {
			t.Errorf("%s: it was not noticed", rule)
		}
	}
}
