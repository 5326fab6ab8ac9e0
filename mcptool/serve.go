package mcptool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// serveHere runs a server in this process, and returns why it ended. If the server does
// not end when it should, serveHere stops waiting for it after a while.
func (p *pipe) serveHere(in *os.File) error {
	returned := make(chan error, 1)
	out := &served{pipe: p}
	go func() { // ends with the server
		defer func() {
			if panicked := recover(); panicked != nil {
				returned <- fmt.Errorf("it panicked: %v", panicked)
			}
		}()
		returned <- p.serve(p.life, in, out)
	}()
	var err error
	select {
	case err = <-returned:
	case <-p.life.Done():
		timer := time.NewTimer(p.grace)
		defer timer.Stop()
		select {
		case err = <-returned:
		case <-timer.C:
		}
	}
	closed := p.isClosed()
	_ = in.Close() // also ends a server that still reads, and makes the client's next message fail: that closes the pipe, but is not why it ended
	switch cause := context.Cause(p.life); {
	case cause != nil:
		return cause
	case closed:
		return errClosed
	case err != nil:
		return fmt.Errorf("it ended: %w", err)
	default:
		return errors.New("it ended the session")
	}
}

// served takes the output of a server in this process.
type served struct {
	*pipe

	mu sync.Mutex
}

// Write takes a part of the output. An error ends the server.
func (s *served) Write(chunk []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := output{s.pipe}.Write(chunk)
	if err != nil {
		s.stop(err)
	}
	return n, err
}

// Close does nothing: a server ends when Serve returns.
func (*served) Close() error { return nil }
