package chat

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// drawnMsg means that the view is on the screen for the first time. Nothing may be
// printed before that. Until then, the loop uses the whole screen for its view, so
// printed text would appear at the top of the screen, among older output.
type drawnMsg struct{}

// canvas is a terminal that reports when the view is drawn for the first time.
type canvas struct {
	*os.File

	once   sync.Once
	drawn  func() // called once, when the view is drawn for the first time
	frames atomic.Int64
}

// Write writes to the terminal. It detects the first view, because that view enables
// bracketed paste.
func (c *canvas) Write(p []byte) (int, error) {
	n, err := c.File.Write(p)
	c.frames.Add(1)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		c.once.Do(c.drawn)
	}
	return n, err //nolint:wrapcheck // it replaces the file
}

// slack is the least time that a view keeps its height when it has less to show.
const slack = 100 * time.Millisecond

// height is the height of the view. It works around a fault of the renderer. When a view
// ends above the line of the cursor, the renderer assumes that the cursor is in the last
// line of the view. It then leaves lines of the old view on the screen. So a smaller view
// first keeps its height, with blank lines at its end. It shrinks after it was drawn like
// this and the cursor has moved up. The blank lines are not visible, because the screen
// below the view is blank.
type height struct {
	lines  int       // the height as drawn
	want   int       // the smallest height requested while waiting to shrink
	since  time.Time // when the waiting began; zero if the height does not wait
	frames int64     // how many frames had been drawn at that time
}

// fit returns the height of the view. natural is how many lines there are to show, and most
// is the limit.
func (h *height) fit(natural, most int, now time.Time, frames int64) int {
	switch {
	case natural >= h.lines || h.lines > most:
		*h = height{lines: natural}
	case h.since.IsZero() || natural < h.want:
		h.want, h.since, h.frames = natural, now, frames
	case now.Sub(h.since) >= slack && frames > h.frames:
		*h = height{lines: natural}
	}
	return h.lines
}

// waits reports whether the height will shrink later.
func (h *height) waits() bool { return !h.since.IsZero() }
