package sandbox_test

import (
	"bytes"
	"strings"
	"sync"
)

// signal is a writer that closes a channel when a certain word has been written to it.
type signal struct {
	mu   sync.Mutex
	seen bytes.Buffer
	word string
	come chan struct{}
}

func newSignal(word string) *signal { return &signal{word: word, come: make(chan struct{})} }

func (s *signal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.seen.String(), s.word)
	s.seen.Write(p)
	if !before && strings.Contains(s.seen.String(), s.word) {
		close(s.come)
	}
	return len(p), nil
}

func (s *signal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}
