package providertest_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// probe is a test that may fail without failing the test that runs it.
type probe struct {
	testing.TB

	mu       sync.Mutex
	failures []string
}

// probed runs f as a test of its own and returns what it reported.
func probed(t testing.TB, f func(t testing.TB)) []string {
	t.Helper()
	p := &probe{TB: t}
	ended := make(chan struct{})
	go func() { // ends with f, or when f gives up
		defer close(ended)
		f(p)
	}()
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures
}

func (p *probe) Helper() {}

func (p *probe) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}

func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}
