package toolbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

const (
	// startWait is how long shell waits for a command in the background, so that its result
	// says if the command fails at once.
	startWait = 500 * time.Millisecond
	// maxOutputWait is the longest time that shell_output waits.
	maxOutputWait = 60 * time.Second
)

type backgroundInput struct {
	ID          string `json:"id"`
	WaitSeconds int    `json:"wait_seconds"`
}

// Tools returns shell_list, shell_output and shell_stop. Each sees only the commands of its
// own session.
func (b *Background) Tools() []belay.Tool {
	const id = `"id": {"type": "string", "minLength": 1, "description": "the id that shell returned"}`
	return []belay.Tool{
		newTool(ShellListTool, "Lists the commands that this session has started in the background, with their states.",
			`{"type": "object", "additionalProperties": false, "properties": {}}`, lookOnly, b.doList),
		newTool(ShellOutputTool, "Returns the new output of a command in the background since the last call, and whether it is still running.",
			fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": ["id"], "properties": {%s,
				"wait_seconds": {"type": "integer", "minimum": 0, "maximum": %d, "description": "how long to wait for new output or for the end; default 0"}}}`, id, int(maxOutputWait/time.Second)),
			belay.ToolTraits{MaxResult: maxShown}, b.doOutput),
		newTool(ShellStopTool, "Stops a command in the background, and returns its last output.",
			fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": ["id"], "properties": {%s}}`, id),
			belay.ToolTraits{Idempotent: true, MaxResult: maxShown}, b.doStop),
	}
}

func (b *Background) doList(_ context.Context, call *belay.Invocation, _ *struct{}) (belay.Result, error) {
	all := b.List(call.Session)
	if len(all) == 0 {
		return answer("There are no commands in the background.", BackgroundView{Kind: "background", Commands: []BackgroundCommand{}})
	}
	var lines []string
	for _, about := range all {
		if c, err := b.find(call.Session, about.ID); err == nil {
			lines = append(lines, c.state()+"; command: "+inText(about.Command))
		}
	}
	return answer(strings.Join(lines, "\n"), BackgroundView{Kind: "background", Commands: all})
}

func (b *Background) doOutput(ctx context.Context, call *belay.Invocation, in *backgroundInput) (belay.Result, error) {
	c, err := b.find(call.Session, in.ID)
	if err != nil {
		return belay.Result{}, b.unknown(call.Session, in.ID)
	}
	if in.WaitSeconds > 0 {
		c.mu.Lock()
		read := c.read
		c.mu.Unlock()
		timer := time.NewTimer(time.Duration(in.WaitSeconds) * time.Second)
		defer timer.Stop()
		select {
		case <-c.output.news(read):
		case <-c.done:
		case <-timer.C:
		case <-ctx.Done():
			return belay.Result{}, context.Cause(ctx)
		}
	}
	return c.result()
}

func (b *Background) doStop(ctx context.Context, call *belay.Invocation, in *backgroundInput) (belay.Result, error) {
	if err := b.Stop(ctx, call.Session, in.ID); err != nil {
		if ctx.Err() != nil {
			return belay.Result{}, err
		}
		return belay.Result{}, b.unknown(call.Session, in.ID)
	}
	c, err := b.find(call.Session, in.ID)
	if err != nil {
		return belay.Result{}, b.unknown(call.Session, in.ID)
	}
	return c.result()
}

// unknown returns the failure for an id that the session does not have.
func (b *Background) unknown(session, id string) error {
	var ids []string
	for _, c := range b.List(session) {
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 {
		return failf(belay.ClassNotFound, "There is no command %q in the background: this session has started none, or they ended with an earlier process.", id)
	}
	return failf(belay.ClassNotFound, "There is no command %q in the background: this session has %s.", id, words(ids))
}

// result returns the new output of a command, and its state.
func (c *backgroundCommand) result() (belay.Result, error) {
	state := c.state() // before the output, so that the last output is not missed
	c.mu.Lock()
	text, lost, end := c.output.after(c.read)
	c.read = end
	c.mu.Unlock()
	if lost > 0 {
		text = fmt.Sprintf("[... %s left out here ...]\n", size(lost)) + text
	}
	if text == "" {
		text = "[no new output]"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return answer(text+"["+state+"]", BackgroundView{Kind: "background", Commands: []BackgroundCommand{c.describe()}})
}

// inBackground starts a command and returns its id. It waits a moment, so that the result
// says if the command fails at once.
func (s *shell) inBackground(ctx context.Context, call *belay.Invocation, in *shellInput, run *ShellRun) (belay.Result, error) {
	c, err := s.background.start(call, in, s.opts.Dir, run, time.Duration(in.TimeoutSeconds)*time.Second)
	if err != nil {
		if run.Settle != nil {
			run.Settle()
		}
		return belay.Result{}, err
	}
	timer := time.NewTimer(startWait)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	case <-ctx.Done(): // the command continues; the user can stop it
	}
	result, err := c.result()
	if about := c.describe(); err == nil && about.Running {
		result.Text += fmt.Sprintf("\nRead its output with %s, stop it with %s. It ends with the session.", ShellOutputTool, ShellStopTool)
	} else if about.ExitCode != 0 {
		result.IsError, result.Class = true, belay.ClassFailed
	}
	return result, err
}
