package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/belay-run/belay"
)

// victimDir is the variable that makes a process the one that will be killed. Its value is
// the directory of the tour.
const victimDir = "BELAY_DEMO_DIR"

// stepsBeforeTheKill is how many steps of the script the killed process runs.
const stepsBeforeTheKill = 7

// ready is the byte that the victim prints when it can be killed.
const ready = 0

// scissors marks where the process is killed: the tool has written the news, but its result
// is not stored yet.
type scissors struct{ reached chan struct{} }

// cut blocks until the process is killed, if path is the file with the news.
func (s *scissors) cut(ctx context.Context, path string) error {
	if s == nil || path != news {
		return nil
	}
	close(s.reached)
	<-ctx.Done() // returns only if the tour is cancelled
	return context.Cause(ctx)
}

// beVictim runs the turn up to the point where the process is killed.
func (t *Tour) beVictim(ctx context.Context, dir string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // if the parent has ended, nobody kills this process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel(errors.New("demo: the parent process has ended"))
	}()
	t.dir = dir
	cut := &scissors{make(chan struct{})}
	err := t.enter(ctx, 0, cut)
	if err == nil {
		s := &story{Tour: t}
		s.line("user", prompt)
		t.tell(s, t.agent.Session("demo").Run(ctx, prompt), func(e *belay.Event) {
			if e.Kind == belay.EventToolUse && bytes.Contains(e.Call.Input, []byte(news)) {
				select {
				case <-cut.reached:
					t.write(string(rune(ready)))
				case <-ctx.Done():
				}
			}
		})
		err = t.err
	}
	return errors.Join(err, t.leave(context.WithoutCancel(ctx)))
}

// turn runs the turn in a second process, and kills that process during the turn.
func (t *Tour) turn(ctx context.Context) {
	t.Heading("A turn, as it happens")
	self, err := os.Executable()
	if t.Failed(err) {
		return
	}
	cmd := exec.CommandContext(ctx, self, "demo") //nolint:gosec // this program itself
	cmd.Env = append(os.Environ(), victimDir+"="+t.dir)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	life, err := cmd.StdinPipe()
	if t.Failed(err) {
		return
	}
	told, err := cmd.StdoutPipe()
	if t.Failed(err) || t.Failed(cmd.Start()) {
		return
	}
	cut, err := t.repeat(told)
	if cut {
		t.Heading("The process is killed: " + news + " is written, but the result is not stored")
		t.cutAt = time.Now()
		err = errors.Join(t.err, cmd.Process.Kill())
	}
	_ = life.Close()
	ended := cmd.Wait()
	switch {
	case t.Failed(context.Cause(ctx)) || t.Failed(err):
	case !cut || ended == nil:
		t.Failed(fmt.Errorf("demo: the turn did not reach the point where the demo kills its process: %w: %s", ended, complaint.String()))
	default:
		t.Sayf("  killed    process %d, without any cleanup: %v", cmd.Process.Pid, ended)
	}
}

// repeat prints the output of the victim. cut is true if the victim can be killed now.
func (t *Tour) repeat(told io.Reader) (cut bool, err error) {
	part := make([]byte, 4096)
	for !cut && t.err == nil {
		n, err := told.Read(part)
		text := part[:n]
		if at := bytes.IndexByte(text, ready); at >= 0 {
			text, cut = text[:at], true
		}
		t.write(string(text))
		if err != nil {
			return cut, nil //nolint:nilerr // the process has ended, and its state says how
		}
	}
	return cut, t.err
}
