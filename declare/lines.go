package declare

import (
	"bytes"
	"log/slog"
	"sync"
)

// longestLine is the maximum length of a logged line in bytes.
const longestLine = 8 << 10

// lines logs the standard error of a worker line by line, and keeps the last part of it.
type lines struct {
	logger       *slog.Logger
	redact       *redactor
	subscription string

	mu      sync.Mutex
	partial []byte
	tail    tail
}

// Write returns no error.
func (l *lines) Write(chunk []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(chunk)
	l.tail.add(chunk)
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

// add appends to the current line, up to longestLine bytes.
func (l *lines) add(part []byte) []byte {
	return append(l.partial, part[:min(len(part), longestLine-len(l.partial))]...)
}

func (l *lines) flush() {
	if text := bytes.TrimSpace(l.partial); len(text) > 0 {
		l.logger.Info("worker", "subscription", l.subscription, "line", l.redact.text(firstBytes(text, longestLine)))
	}
	l.partial = l.partial[:0]
}

// shown returns the last part of the output for users, without secrets.
func (l *lines) shown() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return l.tail.shown(l.redact)
}
