// Package probetest is for tests of test kits: it runs a test that may fail, without failing
// the real test.
package probetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Probe is a test that may fail. It keeps its failures, and does not report them to the
// real test. All methods that are not listed here, such as Cleanup and TempDir, call the
// real test.
type Probe struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	skipped  bool
}

// Run calls f with a new probe, waits until f has ended, and returns the probe.
func Run(t testing.TB, f func(t testing.TB)) *Probe {
	t.Helper()
	p := &Probe{TB: t}
	ended := make(chan struct{})
	go func() { // ends when f returns or calls FailNow
		defer close(ended)
		f(p)
	}()
	<-ended
	return p
}

// Failures returns the failures that the probe has kept.
func (p *Probe) Failures() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.failures)
}

// WantFailure fails the test t if the probe did not fail, or if its messages do not
// contain all texts.
func (p *Probe) WantFailure(t testing.TB, texts ...string) {
	t.Helper()
	failures := p.Failures()
	if len(failures) == 0 {
		t.Errorf("no failure was reported, want one with %q", texts)
		return
	}
	for _, text := range texts {
		if all := strings.Join(failures, "\n"); !strings.Contains(all, text) {
			t.Errorf("the failure does not say %q:\n%s", text, all)
		}
	}
}

// WantSuccess fails the test t if the probe failed.
func (p *Probe) WantSuccess(t testing.TB) {
	t.Helper()
	for _, failure := range p.Failures() {
		t.Errorf("a failure was reported: %s", failure)
	}
}

func (p *Probe) report(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, text)
}

// The following methods implement testing.TB.

// Error keeps a failure.
func (p *Probe) Error(args ...any) { p.report(fmt.Sprint(args...)) }

// Errorf keeps a failure.
func (p *Probe) Errorf(format string, args ...any) { p.report(fmt.Sprintf(format, args...)) }

// Fail keeps a failure that has no message.
func (p *Probe) Fail() { p.report("failed") }

// Failed reports whether the probe failed.
func (p *Probe) Failed() bool { return len(p.Failures()) > 0 }

// FailNow keeps a failure and ends the probe.
func (p *Probe) FailNow() {
	p.Fail()
	runtime.Goexit()
}

// Fatal keeps a failure and ends the probe.
func (p *Probe) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

// Fatalf keeps a failure and ends the probe.
func (p *Probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// Skip ends the probe as skipped.
func (p *Probe) Skip(...any) { p.SkipNow() }

// Skipf ends the probe as skipped.
func (p *Probe) Skipf(string, ...any) { p.SkipNow() }

// SkipNow ends the probe as skipped.
func (p *Probe) SkipNow() {
	p.mu.Lock()
	p.skipped = true
	p.mu.Unlock()
	runtime.Goexit()
}

// Skipped reports whether the probe was skipped.
func (p *Probe) Skipped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.skipped
}
