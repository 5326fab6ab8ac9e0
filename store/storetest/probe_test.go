package storetest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// probe is a test that may fail without failing the test that runs it.
type probe struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	skipped  bool
}

// probed runs f as a test of its own and returns what it reported.
func probed(t testing.TB, f func(t testing.TB)) *probe {
	t.Helper()
	p := &probe{TB: t}
	ended := make(chan struct{})
	go func() { // ends with f, or when f gives up
		defer close(ended)
		f(p)
	}()
	<-ended
	return p
}

// wantFailure fails the test unless the probe failed, with a message that
// contains all the texts.
func (p *probe) wantFailure(t testing.TB, texts ...string) {
	t.Helper()
	if len(p.failures) == 0 {
		t.Errorf("no failure was reported, want one with %q", texts)
		return
	}
	for _, text := range texts {
		if all := strings.Join(p.failures, "\n"); !strings.Contains(all, text) {
			t.Errorf("the failure does not say %q:\n%s", text, all)
		}
	}
}

// wantSuccess fails the test if the probe failed.
func (p *probe) wantSuccess(t testing.TB) {
	t.Helper()
	for _, failure := range p.failures {
		t.Errorf("a failure was reported: %s", failure)
	}
}

func (p *probe) report(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, text)
}

func (p *probe) Helper()                           {}
func (p *probe) Error(args ...any)                 { p.report(fmt.Sprint(args...)) }
func (p *probe) Errorf(format string, args ...any) { p.report(fmt.Sprintf(format, args...)) }
func (p *probe) Fail()                             { p.report("failed") }

func (p *probe) FailNow() {
	p.Fail()
	runtime.Goexit()
}

func (p *probe) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *probe) Skip(...any) { p.SkipNow() }

func (p *probe) SkipNow() {
	p.mu.Lock()
	p.skipped = true
	p.mu.Unlock()
	runtime.Goexit()
}
