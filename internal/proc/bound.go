package proc

import (
	"fmt"
	"sync"
)

// TooMuchError is the error that [Cap.Write] returns if the bytes do not fit.
type TooMuchError struct {
	// Max is the size of the Cap in bytes.
	Max int
}

func (e *TooMuchError) Error() string { return fmt.Sprintf("the output is more than %d bytes", e.Max) }

// Cap keeps the bytes that are written to it, up to a limit. After that, Write returns an
// error, and Run ends the child. It is safe for concurrent use.
type Cap struct {
	mu   sync.Mutex
	data []byte
	max  int
}

// NewCap returns a Cap of this many bytes.
func NewCap(most int) *Cap { return &Cap{max: most} }

// Write keeps p. If p does not fit, it keeps the part that fits and returns an error.
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

// Bytes returns the bytes. The caller may change them after the child has ended.
func (c *Cap) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data
}

// Window keeps the first and the last bytes that are written to it, and drops the bytes
// between them. It accepts any amount. It needs at most about three times its size in
// memory. It is safe for concurrent use.
type Window struct {
	mu         sync.Mutex
	head, tail []byte
	size       int // the size of head, and of tail
	forgotten  int64
}

// NewWindow returns a Window of this many bytes, half for each end.
func NewWindow(most int) *Window { return &Window{size: max(most/2, 1)} }

// Write never returns an error.
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
	if len(w.tail) >= 2*w.size { // trim rarely, so that each byte is moved about once
		w.trim()
	}
	return n, nil
}

// trim shortens the tail to its size.
func (w *Window) trim() {
	if over := len(w.tail) - w.size; over > 0 {
		w.forgotten += int64(over)
		w.tail = append(w.tail[:0], w.tail[over:]...)
	}
}

// Ends returns the first bytes, how many bytes were dropped, and the last bytes. The caller
// may change the slices after the child has ended.
func (w *Window) Ends() (head []byte, forgotten int64, tail []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trim()
	return w.head, w.forgotten, w.tail
}
