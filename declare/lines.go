package declare

import (
	"bytes"
	"log/slog"
	"sync"
)

// longestLine is how much of a line that a worker prints is logged.
const longestLine = 8 << 10

// lines logs what a worker prints to standard error, line by line, and keeps the last.
type lines struct {
	logger       *slog.Logger
	redact       *redactor
	subscription string

	mu      sync.Mutex
	partial []byte
	last    string
}

// Write never fails.
func (l *lines) Write(chunk []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(chunk)
	for {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			break
		}
		l.partial = l.add(chunk[:i])
		l.flush()
		chunk = chunk[i+1:]
	}
	l.partial = l.add(chunk)
	return n, nil
}

// add keeps as much of a line as is logged.
func (l *lines) add(part []byte) []byte {
	return append(l.partial, part[:min(len(part), longestLine-len(l.partial))]...)
}

func (l *lines) flush() {
	if text := bytes.TrimSpace(l.partial); len(text) > 0 {
		l.last = firstBytes(text, longestLine)
		l.logger.Info("worker", "subscription", l.subscription, "line", l.redact.text(l.last))
	}
	l.partial = l.partial[:0]
}

// lastLine is the last thing that was said.
func (l *lines) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return l.last
}
