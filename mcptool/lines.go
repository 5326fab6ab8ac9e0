package mcptool

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

const (
	// longestLine is the maximum length of a logged line. looked is how many bytes of a
	// line are searched for secrets. looked is larger than longestLine. Otherwise the end
	// of a cut line could be a part of a secret, which the search would not find.
	longestLine = 4 << 10
	looked      = 64 << 10
	// mostLogged is how many bytes are logged between one start of a server and its end.
	mostLogged = 256 << 10
)

// lines logs a server's standard error line by line, and the server's log messages, up to
// a limit for both together. It keeps the last line of standard error.
type lines struct {
	logger *slog.Logger
	server string
	spec   *spec

	mu      sync.Mutex
	partial []byte
	last    string
	logged  int
}

// Write returns no error.
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

// add appends to the current line, up to looked bytes.
func (l *lines) add(part []byte) {
	l.partial = append(l.partial, part[:min(len(part), looked-len(l.partial))]...)
}

func (l *lines) flush() {
	text := l.spec.known.Replace(strings.ToValidUTF8(string(bytes.TrimSpace(l.partial)), "?"))
	if l.partial = l.partial[:0]; cap(l.partial) > 2*longestLine {
		l.partial = nil // free the large buffer: long lines are rare
	}
	if text == "" {
		return
	}
	if len(text) > mostHidden {
		text = text[:mostHidden] // a line may be very long
	}
	if l.last = text; l.logged >= mostLogged {
		return
	}
	text = l.shown()
	l.logger.Info("mcp server stderr", "server", l.server, "line", text)
	l.count(text)
}

// count adds a logged text to the limit.
func (l *lines) count(text string) {
	if l.logged += len(text); l.logged >= mostLogged {
		l.logger.Warn("mcp server logs too much: the rest is not logged", "server", l.server)
	}
}

// lastLine returns the last line, cleaned as in shown.
func (l *lines) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	return l.shown()
}

// shown returns the last line without secrets, at most longestLine bytes.
func (l *lines) shown() string { return l.clean(l.last) }

// clean returns a text without secrets, at most longestLine bytes.
func (l *lines) clean(text string) string {
	text = l.spec.hide(text)
	if len(text) > longestLine {
		text = strings.ToValidUTF8(text[:longestLine], "") // remove half a character at the end
	}
	return text
}
