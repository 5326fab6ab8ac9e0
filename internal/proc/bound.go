package proc

import (
	"fmt"
	"sync"
)

// TooMuchError is the error of a [Cap] that is full.
type TooMuchError struct {
	// Max is its size in bytes.
	Max int
}

func (e *TooMuchError) Error() string { return fmt.Sprintf("it wrote more than %d bytes", e.Max) }

// Cap keeps written bytes up to a limit and rejects the rest, which ends the
// child. It is safe for concurrent use.
type Cap struct {
	mu   sync.Mutex
	data []byte
	max  int
}

// NewCap makes a Cap of that many bytes.
func NewCap(most int) *Cap { return &Cap{max: most} }

// Write keeps p, or as much of it as fits.
func (c *Cap) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.max - len(c.data)
	if len(p) > room {
		c.data = append(c.data, p[:room]...)
		return room, &TooMuchError{c.max}
	}
	c.data = append(c.data, p...)
	return len(p), nil
}

// Bytes returns the kept bytes. They belong to the caller once the child has
// ended.
func (c *Cap) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data
}

// Window keeps the beginning and the end of the written bytes, and drops the
// middle. It accepts any amount, needs memory of at most about three times its
// size, and is safe for concurrent use.
type Window struct {
	mu         sync.Mutex
	head, tail []byte
	size       int // of each
	forgotten  int64
}

// NewWindow makes a Window of that many bytes, half for each end.
func NewWindow(most int) *Window { return &Window{size: max(most/2, 1)} }

// Write never fails.
func (w *Window) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	room := min(w.size-len(w.head), n)
	w.head = append(w.head, p[:room]...)
	p = p[room:]
	if len(p) > w.size {
		w.forgotten += int64(len(p) - w.size)
		p = p[len(p)-w.size:]
	}
	w.tail = append(w.tail, p...)
	if len(w.tail) >= 2*w.size { // rarely, so that each byte is moved about once
		w.trim()
	}
	return n, nil
}

// trim drops bytes before the end.
func (w *Window) trim() {
	if over := len(w.tail) - w.size; over > 0 {
		w.forgotten += int64(over)
		w.tail = append(w.tail[:0], w.tail[over:]...)
	}
}

// Ends returns the beginning, the number of dropped bytes, and the end. The
// slices belong to the caller once the child has ended.
func (w *Window) Ends() (head []byte, forgotten int64, tail []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trim()
	return w.head, w.forgotten, w.tail
}
