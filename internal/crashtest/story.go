package crashtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

const session = "story"

// effect appends a line to the file "effects". It writes the line with one call of write,
// so that lines do not mix.
func effect(dir, what string) error {
	f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the directory is the test's own
	if err != nil {
		return fmt.Errorf("effect: %w", err)
	}
	_, err = f.WriteString(what + "\n")
	return errors.Join(err, f.Close())
}

// model gives an answer that depends only on the transcript, so that every process gets the
// same answer for a step.
type model []belay.Response

var script = model{
	{Parts: []belay.Part{belay.Text("Two at once."), callOf("send", "a"), callOf("look", "b")}, StopReason: belay.StopToolUse},
	{Parts: []belay.Part{callOf("write", "c")}, StopReason: belay.StopToolUse},
	{Parts: []belay.Part{callOf("deploy", "d")}, StopReason: belay.StopToolUse},
	{Parts: []belay.Part{callOf("deploy", "e")}, StopReason: belay.StopToolUse},
	{Parts: []belay.Part{belay.Text("All done.")}, StopReason: belay.StopEnd},
}

func callOf(tool, id string) belay.Part {
	return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: []byte(`{"id":"` + id + `"}`)}}
}

// Stream implements belay.Model.
func (script model) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		step := 0
		for _, m := range req.Messages {
			if m.Role == belay.RoleAssistant {
				step++
			}
		}
		if step >= len(script) {
			yield(belay.Chunk{}, fmt.Errorf("the story has %d steps and was asked for one more", len(script)))
			return
		}
		answer := script[step]
		answer.Parts = slices.Clone(answer.Parts)
		for i, p := range answer.Parts {
			if p.Call != nil {
				call := *p.Call
				answer.Parts[i].Call = &call
			}
		}
		answer.Usage = belay.Usage{In: 10, Out: 5}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// cast makes the agent of the story.
func cast(dir string, s belay.Store, wire *tripwire) (*belay.Agent, error) {
	tool := func(name string, traits belay.ToolTraits) belay.Tool {
		return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "does something in the world"}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			wire.pass("before " + name)
			if err := effect(dir, "tool "+name+" "+call.ID); err != nil {
				return belay.Result{}, err
			}
			wire.pass("after " + name)
			return belay.Result{Text: name + " is done"}, nil
		}, &traits)
	}
	background := func(idempotent bool) *hook.Options {
		o := &hook.Options{Execution: hook.Background, Idempotent: idempotent}
		if idempotent {
			o.Retry = hook.Retry{Attempts: 3, Delay: time.Millisecond}
		}
		return o
	}
	work := func(name string) func(context.Context, belay.TurnEnded) (belay.Note, error) {
		return func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
			wire.pass("before " + name)
			if in.Reason() != belay.EndTurn {
				return belay.Note{}, fmt.Errorf("%s got the end %q of the turn", name, in.Reason())
			}
			if err := effect(dir, "run "+name); err != nil {
				return belay.Note{}, err
			}
			wire.pass("after " + name)
			if name == "learn" { // this work schedules more work
				return belay.Note{Jobs: []hook.Job{{Handler: "recall", Reference: in.Turn(), Key: "recall/" + in.Turn()}}}, nil
			}
			return belay.Note{}, nil
		}
	}
	agent, err := belay.New(script, &belay.Options{
		Store: s,
		OnAsk: belay.AskPark,
		Tools: []belay.Tool{
			tool("send", belay.ToolTraits{}), tool("look", belay.ToolTraits{Idempotent: true}), tool("write", belay.ToolTraits{Serial: true}),
			tool("deploy", belay.ToolTraits{}),
		},
		Hooks: []hook.Subscription{
			belay.UserPromptSubmit.On("welcome", pass[belay.UserPrompt, belay.PromptVerdict], nil),
			belay.ToolPre.On("gate", pass[belay.ToolCall, belay.ToolVerdict], nil),
			belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Ask("it goes out into the world"), nil
			}, &hook.Options{Match: hook.Match{Tools: []string{"deploy"}}}),
			belay.ToolPost.On("note", pass[belay.ToolResult, belay.ToolReaction], nil),
			belay.ModelPost.On("count", pass[belay.ModelResponse, belay.Note], nil),
			belay.TurnPostTurn.On("learn", work("learn"), background(true)),
			belay.TurnPostTurn.On("mail", work("mail"), background(false)),
			belay.TurnPostTurn.On("plan", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
				return belay.Note{Jobs: []hook.Job{
					{Handler: "index", Reference: in.Turn(), Key: "index/" + in.Turn()}, {Handler: "bill", Reference: in.Turn(), Key: "bill/" + in.Turn()},
				}}, nil
			}, nil),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("crashtest: %w", err)
	}
	job := func(name string) func(context.Context, hook.Job) ([]hook.Audit, error) {
		return func(context.Context, hook.Job) ([]hook.Audit, error) {
			wire.pass("before " + name)
			if err := effect(dir, "run "+name); err != nil {
				return nil, err
			}
			wire.pass("after " + name)
			return nil, nil
		}
	}
	_, err = agent.Hooks().InstallJobs(
		hook.JobHandler{Name: "index", Run: job("index"), Idempotent: true, Retry: hook.Retry{Attempts: 3, Delay: time.Millisecond}},
		hook.JobHandler{Name: "recall", Run: job("recall"), Idempotent: true},
		hook.JobHandler{Name: "bill", Run: job("bill")},
	)
	return agent, err
}

func pass[In any, Out hook.Output](context.Context, In) (out Out, err error) { return out, err }
