package demo

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Recording is what the store has of the tour's turn.
type Recording struct {
	// Runs are the records of the hooks, the oldest first.
	Runs []hook.Run
	// Messages are the transcript.
	Messages []*belay.Message
	// Killed is when the first process was killed.
	Killed time.Time
}

// Record runs the tour as [Run] does, and returns the recording of its turn. In the process
// that is killed it returns nil.
func Record(ctx context.Context, w io.Writer, opts Options) (*Recording, error) {
	t := &Tour{opts: opts, w: w, recording: new(Recording)}
	if dir := os.Getenv(victimDir); dir != "" && t.kills() {
		return nil, t.beVictim(ctx, dir)
	}
	err := t.inScratch(ctx)
	return t.recording, err
}

// keep fills the recording, if there is one.
func (t *Tour) keep(ctx context.Context) {
	if t.recording == nil {
		return
	}
	t.recording.Runs, t.recording.Killed = t.runs(ctx), t.cutAt
	for m, err := range t.agent.Session("demo").Messages(ctx) {
		if t.Failed(err) {
			return
		}
		t.recording.Messages = append(t.recording.Messages, m)
	}
}
