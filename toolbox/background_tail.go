package toolbox

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// tail keeps the last bytes that are written to it. It accepts any amount, and is safe for
// concurrent use.
type tail struct {
	mu      sync.Mutex
	data    []byte
	most    int
	dropped int64         // bytes before data
	changed chan struct{} // closed at the next write, or at the end
	over    bool
}

func newTail(most int) *tail { return &tail{most: most, changed: make(chan struct{})} }

// Write never returns an error.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - t.most; over > t.most { // trim rarely, so that each byte is moved about once
		t.dropped += int64(over)
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.wake()
	return len(p), nil
}

func (t *tail) wake() {
	if !t.over {
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// end says that nothing more will be written. news is then always closed.
func (t *tail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		close(t.changed)
		t.over = true
	}
}

func (t *tail) size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped + int64(len(t.data))
}

// news returns a channel that is closed if there is something after a position, or when
// there is.
func (t *tail) news(position int64) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped+int64(len(t.data)) > position {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return t.changed
}

// after returns the output after a position, how many bytes of it were not kept, and the
// position of its end.
func (t *tail) after(position int64) (text string, lost, end int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end = t.dropped + int64(len(t.data))
	from := max(position, end-int64(min(t.most, len(t.data))))
	lost = from - position
	data := t.data[from-t.dropped:]
	if lost > 0 { // it may begin with half a character
		for i := 0; i < utf8.UTFMax && len(data) > 0 && !utf8.RuneStart(data[0]); i++ {
			data = data[1:]
		}
	}
	return strings.ToValidUTF8(string(data), "\ufffd"), lost, end
}
