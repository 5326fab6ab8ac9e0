package proc

import (
	"io"
	"os"
	"sync"
)

// chunk is the size of a read. The first reads use firstChunk, because most children write
// little.
const (
	chunk      = 32 << 10
	firstChunk = 2 << 10
)

// stream copies the output of a child to a writer.
type stream struct {
	from    *os.File
	refused chan<- error
	done    chan struct{} // closed when copy returns

	mu sync.Mutex // held while the writer is in use
	to io.Writer  // nil when the writer must no longer be used
}

func newStream(from *os.File, to io.Writer, refused chan<- error) *stream {
	return &stream{from: from, to: to, refused: refused, done: make(chan struct{})}
}

// copy copies the output until it ends or the writer returns an error.
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

// put passes bytes to the writer. It reports false if the writer returned an error.
func (s *stream) put(p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		return false
	}
	if _, err := s.to.Write(p); err != nil {
		s.to = nil
		s.refused <- err // never blocks: the channel has space for one error per stream
		return false
	}
	return true
}

// finish ends a stream that did not end in time, because another process has it open or the
// writer is slow. Output that the child has already written is in the pipe, and finish
// still reads it. held is true if another process has the stream open, or if that is
// unknown.
func (s *stream) finish() (held bool) {
	if !interrupt(s.from) {
		return true
	}
	<-s.done
	return !drain(s.from, s.put)
}

// close stops the use of the writer, and closes the pipe.
func (s *stream) close() {
	s.mu.Lock()
	s.to = nil
	s.mu.Unlock()
	closePipe(s.from)
}
