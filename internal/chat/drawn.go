package chat

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// drawnMsg says that the view is on the screen. What is printed before that would
// go to the top of the screen, among what was there before the chat: the loop
// takes the whole screen for its view until then.
type drawnMsg struct{}

// canvas is a terminal that tells when the view is drawn on it.
type canvas struct {
	*os.File

	once   sync.Once
	drawn  func() // is called when it is drawn first
	frames atomic.Int64
}

// Write writes to the terminal. The first view comes with the request to mark
// what is pasted.
func (c *canvas) Write(p []byte) (int, error) {
	n, err := c.File.Write(p)
	c.frames.Add(1)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		c.once.Do(c.drawn)
	}
	return n, err //nolint:wrapcheck // it stands for the file
}

// slack is how long a view keeps its height when there is less to show.
const slack = 100 * time.Millisecond

// height is that of the view. When a view gets lower than where the cursor was,
// the renderer takes the cursor to be in its last line, and leaves lines of the
// old view behind. So a view that has less to show keeps its height, with blank
// lines at its end, until it was drawn that way and the cursor is where it will
// be. Below the view the screen is blank: nobody sees the difference.
type height struct {
	lines  int       // as drawn
	want   int       // the least there was to show since it waits
	since  time.Time // when it began to wait; zero if it does not
	frames int64     // how many had been drawn then
}

// fit returns how many lines a view with so many to show takes.
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
