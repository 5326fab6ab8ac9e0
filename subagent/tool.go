package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/listing"
)

// unbounded are the traits of both tools. They set no timeout, because each subagent has
// its own.
var unbounded = &belay.ToolTraits{Timeout: -1}

var (
	invokeSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","description":"the subagent's name"},` +
		`"prompt":{"type":"string","description":"the task, with everything that the subagent needs to know"}},` +
		`"required":["name","prompt"],"additionalProperties":false}`)
	delegateSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"tasks":{"type":"array","minItems":1,"description":"the tasks, which run in parallel","items":` + string(invokeSchema) + `}},` +
		`"required":["tasks"],"additionalProperties":false}`)
)

// invokeTool makes the tool that runs one task. Its declaration contains the list of
// subagents, so a new tool is made when the subagents change.
func (s *scoped) invokeTool(own []*Subagent) belay.Tool { //nolint:ireturn // a tool is used through the interface
	list, leftOut := s.list(own)
	return &tool{belay.NewRawTool(belay.ToolDeclaration{
		Name: InvokeTool, Description: description + list, InputSchema: invokeSchema,
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
	}, unbounded), s.abandonInvoke, leftOut}
}

// description is the beginning of the description of invoke_subagent. The list of
// subagents follows it.
const description = "Gives a task to a subagent, which works on its own and returns the result. It sees nothing of this conversation: put everything it needs to know into the prompt. " +
	"Calls in one message run in parallel.\n\n"

// list renders subagents in the given order. leftOut says what did not fit.
func (s *scoped) list(own []*Subagent) (text, leftOut string) {
	entries := make([]listing.Entry, len(own))
	for i, one := range own {
		entries[i] = listing.Entry{Name: one.Name, Description: one.Description}
	}
	budget := cmp.Or(s.opts.Budget, listing.Budget(s.reach.Window))
	text, left := listing.Render("subagent", entries, budget)
	return text, left.Message("subagent", budget)
}

// encoded returns a result whose text is JSON.
func encoded(value any) (belay.Result, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return belay.Result{}, fmt.Errorf("subagents: %w", err)
	}
	return belay.Result{Text: string(text)}, nil
}

const delegateDescription = "Gives several tasks to the subagents of " + InvokeTool + ". The tasks run in parallel. Returns a list of the results, in the order of the tasks. " +
	"A failed task has an error in its place and does not stop the others."

// delegateTool makes the tool that runs several tasks.
func (s *scoped) delegateTool() belay.Tool { //nolint:ireturn // see invokeTool
	return &tool{belay.NewRawTool(belay.ToolDeclaration{
		Name: DelegateTool, Description: delegateDescription, InputSchema: delegateSchema,
	}, s.delegate, unbounded), s.abandonDelegate, ""}
}

type delegated struct {
	Tasks []task
}

// delegate runs tasks in parallel. If some tasks are parked, the answers of the finished
// tasks are stored until the call is resumed.
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
		result.IsError, result.Class = true, classOf(done)
	}
	return result, err
}

// classOf returns the class of the failed tasks. If their classes differ, it returns
// failed.
func classOf(all []*answer) belay.ResultClass {
	class := belay.ClassFailed
	for i, a := range all {
		if i > 0 && a.Class != class {
			return belay.ClassFailed
		}
		class = a.Class
	}
	return class
}
