package chat

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// drawnMsg means that the view is on the screen. Text that is printed earlier
// would land at the top of the screen, among older output, because the loop uses
// the whole screen for its view until then.
type drawnMsg struct{}

// canvas is a terminal that reports when the view is first drawn.
type canvas struct {
	*os.File

	once   sync.Once
	drawn  func() // called when it is first drawn
	frames atomic.Int64
}

// Write writes to the terminal. The first view contains the request to enable
// bracketed paste.
func (c *canvas) Write(p []byte) (int, error) {
	n, err := c.File.Write(p)
	c.frames.Add(1)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		c.once.Do(c.drawn)
	}
	return n, err //nolint:wrapcheck // it replaces the file
}

// slack is how long a view keeps its height when there is less to show.
const slack = 100 * time.Millisecond

// height is the height of the view. When a view becomes lower than the cursor's
// line, the renderer assumes that the cursor is in its last line, and leaves
// lines of the old view behind. So a smaller view keeps its height, with blank
// lines at its end, until it was drawn that way and the cursor has moved up.
// The blank lines are not visible, because the screen below the view is blank.
type height struct {
	lines  int       // as drawn
	want   int       // the smallest height since it waits
	since  time.Time // when it began to wait; zero if it does not
	frames int64     // how many frames had been drawn then
}

// fit returns the height of a view with so many lines to show.
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

// waits reports whether the height will change by itself.
func (h *height) waits() bool { return !h.since.IsZero() }
