package proc

import (
	"io"
	"os"
	"sync"
)

// chunk is how much is read at a time, and firstChunk how much at first: most
// children say little.
const (
	chunk      = 32 << 10
	firstChunk = 2 << 10
)

// stream is what a child writes, on its way to a writer.
type stream struct {
	from    *os.File
	refused chan<- error
	done    chan struct{} // closed when copy has ended

	mu sync.Mutex // held while the writer is used
	to io.Writer  // nil when it must no longer be used
}

func newStream(from *os.File, to io.Writer, refused chan<- error) *stream {
	return &stream{from: from, to: to, refused: refused, done: make(chan struct{})}
}

// copy hands on what comes, until it ends or the writer refuses it.
func (s *stream) copy() {
	defer close(s.done)
	buf := make([]byte, firstChunk)
	for {
		n, err := s.from.Read(buf)
		if n > 0 && !s.put(buf[:n]) {
			return
		}
		if err != nil {
			return
		}
		if n == firstChunk && len(buf) == firstChunk {
			buf = make([]byte, chunk)
		}
	}
}

// put hands bytes to the writer. It reports false if they were not wanted.
func (s *stream) put(p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		return false
	}
	if _, err := s.to.Write(p); err != nil {
		s.to = nil
		s.refused <- err // has room for one of each stream
		return false
	}
	return true
}

// finish ends a stream that did not end in time: something else holds it open, or the
// writer is slow. What the child wrote before it ended is in the pipe, and is not
// lost. It reports whether it is held open, and true if that is unknown.
func (s *stream) finish() (held bool) {
	if !interrupt(s.from) {
		return true
	}
	<-s.done
	return !drain(s.from, s.put)
}

// close ends the use of the writer and of the pipe.
func (s *stream) close() {
	s.mu.Lock()
	s.to = nil
	s.mu.Unlock()
	closePipe(s.from)
}
