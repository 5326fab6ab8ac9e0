package toolbox

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
)

const (
	// progressEvery is how long a command collects output before it reports it, and
	// progressLater the same for a command that runs for longer than progressLong.
	progressEvery = 100 * time.Millisecond
	progressLater = 500 * time.Millisecond
	progressLong  = 5 * time.Second
	// maxProgress is the length of a report in bytes. Of a longer output, the last lines are
	// reported.
	maxProgress = 4 << 10
)

// liveOutput passes the output of a command on, and reports its whole lines as the progress
// of the call. It is safe for concurrent use.
type liveOutput struct {
	to    io.Writer
	tell  func(text string)
	began time.Time

	mu    sync.Mutex
	lines []byte      // whole lines that were not reported yet, and the beginning of another
	left  int         // lines that were dropped from lines
	timer *time.Timer // nil if no report is due, and while one is made
	busy  bool        // a report is being made
	over  bool
}

func newLiveOutput(to io.Writer, call *belay.Invocation) *liveOutput {
	return &liveOutput{to: to, tell: call.Progress, began: time.Now()}
}

// Write passes p on. It never waits for the report.
func (o *liveOutput) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return n, err //nolint:wrapcheck // io.Copy compares it
	}
	o.lines = append(o.lines, p...)
	if len(o.lines) > 2*maxProgress {
		o.trim()
	}
	o.schedule()
	return n, err //nolint:wrapcheck // io.Copy compares it
}

// schedule schedules a report, unless there is one already. The caller holds the lock.
func (o *liveOutput) schedule() {
	if o.timer != nil || o.busy || o.over || len(o.lines) == 0 {
		return
	}
	wait := progressEvery
	if time.Since(o.began) > progressLong {
		wait = progressLater
	}
	o.timer = time.AfterFunc(wait, o.report)
}

// trim drops the oldest lines.
func (o *liveOutput) trim() {
	cut := len(o.lines) - maxProgress
	if at := bytes.IndexAny(o.lines[cut:], "\r\n"); at >= 0 {
		cut += at + 1
	}
	o.left += max(bytes.Count(o.lines[:cut], []byte("\n")), 1)
	o.lines = append(o.lines[:0], o.lines[cut:]...)
}

// report reports the whole lines.
func (o *liveOutput) report() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	if o.over {
		return
	}
	if len(o.lines) > maxProgress {
		o.trim()
	}
	whole := bytes.LastIndexAny(o.lines, "\r\n") + 1
	if whole == 0 {
		return
	}
	text := strings.ToValidUTF8(string(o.lines[:whole]), "\ufffd")
	o.lines = append(o.lines[:0], o.lines[whole:]...)
	if o.left > 0 {
		text, o.left = fmt.Sprintf("[... %s left out ...]\n", plural(o.left, "line", "lines"))+text, 0
	}
	o.busy = true
	o.mu.Unlock()
	o.tell(text) // a slow reader of the events must not stop the command
	o.mu.Lock()
	o.busy = false
	o.schedule()
}

// stop ends the reports. The result of the call has the whole output.
func (o *liveOutput) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	if o.timer != nil {
		o.timer.Stop()
	}
}
