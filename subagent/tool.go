package subagent

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

// unbounded are the traits of both tools: each subagent has a timeout of its own.
var unbounded = &belay.ToolTraits{Timeout: -1}

var (
	invokeSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","description":"the subagent's name"},` +
		`"prompt":{"type":"string","description":"the task, with everything that the subagent has to know"}},` +
		`"required":["name","prompt"],"additionalProperties":false}`)
	delegateSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"tasks":{"type":"array","minItems":1,"description":"the tasks, which are done at the same time","items":` + string(invokeSchema) + `}},` +
		`"required":["tasks"],"additionalProperties":false}`)
)

// invokeTool is the tool that hands over one task. It is made anew when the subagents
// change: what it is told to be is part of a tool.
func (s *scoped) invokeTool(own []*Subagent) belay.Tool { //nolint:ireturn // a tool is used through the interface
	return &tool{belay.NewRawTool(belay.ToolDeclaration{
		Name: InvokeTool, Description: description(own), InputSchema: invokeSchema,
	}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		var in task
		if err := call.Decode(&in); err != nil {
			return belay.Failed(belay.ClassInvalid, err.Error()), nil
		}
		a := s.ask(ctx, call, in.Name, in.Prompt, 0)
		switch {
		case a.parked != "":
			return belay.Result{}, belay.Park(a.parked)
		case a.Content == nil:
			return belay.Failed(a.Class, a.Error), nil
		default:
			return encoded(a)
		}
	}, unbounded), s.abandonInvoke}
}

// description is that of the tool invoke_subagent, with a list of subagents
// in the order given.
func description(subagents []*Subagent) string {
	var b strings.Builder
	b.WriteString("Hands a task to a subagent, which does it by itself and answers with what came of it. It sees nothing of this conversation: put everything that it has to know into the prompt. " +
		"Calls in one message are done at the same time.\n\n<available_subagents>\n")
	for _, s := range subagents {
		b.WriteString(`<subagent name="` + html.EscapeString(s.Name) + `"`)
		if text := described(s.Description); text != "" {
			b.WriteString(">" + text + "</subagent>\n")
		} else {
			b.WriteString(" />\n")
		}
	}
	b.WriteString("</available_subagents>")
	return b.String()
}

// longestDescription bounds a description in a list, in characters.
const longestDescription = 1024

// described is a description as a list has it: on one line, escaped, and not longer than
// one may be.
func described(text string) string {
	n := 0
	for i := range text {
		if n == longestDescription {
			text = text[:i] + "…"
			break
		}
		n++
	}
	return html.EscapeString(strings.Join(strings.Fields(text), " "))
}

// encoded is a result that is JSON.
func encoded(value any) (belay.Result, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return belay.Result{}, fmt.Errorf("subagents: %w", err)
	}
	return belay.Result{Text: string(text)}, nil
}

const delegateDescription = "Hands several tasks to subagents, those of " + InvokeTool + ", which do them at the same time, and answers with a list of what came of each, in the order of the tasks. " +
	"A task that fails has an error in its place and does not keep the others from being done."

// delegateTool is the tool that hands over several tasks.
func (s *scoped) delegateTool() belay.Tool { //nolint:ireturn // see invokeTool
	return &tool{belay.NewRawTool(belay.ToolDeclaration{
		Name: DelegateTool, Description: delegateDescription, InputSchema: delegateSchema,
	}, s.delegate, unbounded), s.abandonDelegate}
}

type delegated struct {
	Tasks []task
}

// delegate does tasks at the same time. If some of them have to wait, what came of the
// others is kept until the call is resumed.
func (s *scoped) delegate(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
	var in delegated
	if err := call.Decode(&in); err != nil {
		return belay.Failed(belay.ClassInvalid, err.Error()), nil
	}
	done := make([]*answer, len(in.Tasks))
	if call.Wait != "" && call.Controls() != nil {
		if err := recall(ctx, call, done); err != nil {
			return belay.Result{}, err
		}
	}
	room := make(chan struct{}, s.opts.Parallel)
	var wg sync.WaitGroup
	for i, task := range in.Tasks {
		if done[i] != nil {
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			a := s.ask(ctx, call, task.Name, task.Prompt, i+1)
			done[i] = &a
		})
	}
	wg.Wait()
	var waits []string
	good := false
	for _, a := range done {
		if a.parked != "" {
			waits = append(waits, a.parked)
		}
		good = good || a.Content != nil
	}
	if len(waits) > 0 {
		if err := remember(ctx, call, done); err != nil {
			return belay.Result{}, err
		}
		return belay.Result{}, belay.Park(strings.Join(waits, "; "))
	}
	result, err := encoded(done)
	if !good {
		result.IsError, result.Class = true, belay.ClassFailed
	}
	return result, err
}
