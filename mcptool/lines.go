package mcptool

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

const (
	// longestLine is how much of a line that a server prints is logged, and looked how much
	// of it is looked at before it is cut: otherwise a part of a secret would be left.
	longestLine = 4 << 10
	looked      = 64 << 10
	// mostLogged is how many bytes of one life of a server are logged.
	mostLogged = 256 << 10
)

// lines logs what a server prints to standard error, line by line and up to a bound, and
// keeps the last.
type lines struct {
	logger *slog.Logger
	server string
	spec   *spec

	mu      sync.Mutex
	partial []byte
	last    string
	logged  int
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
		l.add(chunk[:i])
		l.flush()
		chunk = chunk[i+1:]
	}
	l.add(chunk)
	return n, nil
}

// add keeps as much of a line as is looked at.
func (l *lines) add(part []byte) {
	l.partial = append(l.partial, part[:min(len(part), looked-len(l.partial))]...)
}

func (l *lines) flush() {
	text := l.spec.known.Replace(strings.ToValidUTF8(string(bytes.TrimSpace(l.partial)), "?"))
	if l.partial = l.partial[:0]; cap(l.partial) > 2*longestLine {
		l.partial = nil // seldom, and not worth keeping
	}
	if text == "" {
		return
	}
	if len(text) > mostHidden {
		text = text[:mostHidden] // a server may print for ever
	}
	if l.last = text; l.logged >= mostLogged {
		return
	}
	text = l.shown()
	l.logger.Info("mcp server says", "server", l.server, "line", text)
	if l.logged += len(text); l.logged >= mostLogged {
		l.logger.Warn("mcp server says too much: the rest is not logged", "server", l.server)
	}
}

// lastLine is the last thing that was said.
func (l *lines) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return l.shown()
}

// shown is the last line as people see it.
func (l *lines) shown() string {
	text := l.spec.hide(l.last)
	if len(text) > longestLine {
		text = strings.ToValidUTF8(text[:longestLine], "") // without half a character at the end
	}
	return text
}
