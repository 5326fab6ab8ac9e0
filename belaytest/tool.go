package belaytest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
)

// Tool is a tool that records its calls and answers from a list. Make one with [NewTool].
// Set its fields before you give it to an agent.
type Tool struct {
	// Description and Schema are for the model. Schema defaults to a schema that accepts
	// any object.
	Description string
	Schema      json.RawMessage
	// How has the traits of the tool.
	How belay.ToolTraits
	// Answer, if set, replaces the list of results. number is the number of the call,
	// counted from 1 in the order in which calls start.
	Answer func(ctx context.Context, call *belay.Invocation, number int) (belay.Result, error)

	name    string
	results []string

	mu    sync.Mutex
	calls []belay.Invocation
}

var _ belay.TraitTool = (*Tool)(nil)

// NewTool makes a tool that returns these results, one for each call. After the last result
// it returns that result again. Without results it returns "ok".
func NewTool(name string, results ...string) *Tool {
	return &Tool{name: name, results: slices.Clone(results), Description: "A tool for tests."}
}

// Declaration returns the declaration for the model.
func (tool *Tool) Declaration() belay.ToolDeclaration {
	return belay.ToolDeclaration{Name: tool.name, Description: tool.Description, InputSchema: tool.Schema}
}

// Traits returns the field How.
func (tool *Tool) Traits() belay.ToolTraits { return tool.How }

// Call records the call and returns its result.
func (tool *Tool) Call(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
	tool.mu.Lock()
	tool.calls = append(tool.calls, *call)
	number := len(tool.calls)
	tool.mu.Unlock()
	switch {
	case tool.Answer != nil:
		return tool.Answer(ctx, call, number)
	case len(tool.results) == 0:
		return belay.Result{Text: "ok"}, nil
	default:
		return belay.Result{Text: tool.results[min(number, len(tool.results))-1]}, nil
	}
}

// Calls returns the calls that the tool got, in the order in which they started.
func (tool *Tool) Calls() []belay.Invocation {
	tool.mu.Lock()
	defer tool.mu.Unlock()
	return slices.Clone(tool.calls)
}

// Ran asserts the inputs of the calls that the tool got, as JSON, in the order in which
// they started. Without inputs it asserts that the tool never ran.
func (tool *Tool) Ran(t testing.TB, inputs ...string) {
	t.Helper()
	calls := tool.Calls()
	same := len(calls) == len(inputs)
	got := make([]string, len(calls))
	for i := range calls {
		got[i] = string(calls[i].Input)
		same = same && sameJSON(calls[i].Input, []byte(inputs[i]))
	}
	if !same {
		t.Errorf("want %s to run with %s, it ran with %s", tool.name, list(inputs), list(got))
	}
}
