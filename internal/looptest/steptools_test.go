package looptest_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
)

// shifting is an extension whose tools can be changed with set.
type shifting struct{ tools atomic.Pointer[[]belay.Tool] }

func (*shifting) Name() string { return "shifting" }

func (c *shifting) StepTools(string) []belay.Tool {
	if now := c.tools.Load(); now != nil {
		return *now
	}
	return nil
}

func (c *shifting) set(tools ...belay.Tool) { c.tools.Store(&tools) }

// toolNames returns the tools of each request.
func toolNames(model *scripted.Model) []string {
	var all []string
	for _, r := range model.Requests() {
		var names []string
		for _, d := range r.Tools {
			names = append(names, d.Name)
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

// SPEC T-12: if an extension adds or removes tools, the change applies from the next
// request on.
func TestStepToolsFollowTheirSet(t *testing.T) {
	t.Parallel()
	ext := new(shifting)
	grow := anyTool("grow", func(context.Context, *belay.Invocation) (belay.Result, error) {
		ext.set(echoTool("more"))
		return belay.Result{Text: "grown"}, nil
	}, nil)
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{grow}, Extensions: []belay.Extension{ext}}, calls("grow"), calls("more"), says("one"))
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	ext.set()
	takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the tools of the requests", toolNames(model), []string{"grow", "grow more", "grow more", "grow"})
	for _, r := range storedResults(t, s) {
		if r.IsError {
			t.Errorf("%s: %s", r.Tool, r.Text)
		}
	}
}

// SPEC T-12: a tool name has one owner. If a tool of an extension has the name of another
// tool, New returns an error. If this happens later, the tool of the extension is left out,
// with a diagnostic.
func TestStepToolsThatClash(t *testing.T) {
	t.Parallel()
	ext := new(shifting)
	ext.set(echoTool("own"))
	_, err := belay.New(scripted.New(nil, nil), &belay.Options{Tools: []belay.Tool{echoTool("own")}, Extensions: []belay.Extension{ext}})
	if err == nil || !strings.Contains(err.Error(), `"own"`) || !strings.Contains(err.Error(), "shifting") {
		t.Errorf("two owners of a name: %v", err)
	}
	ext.set()
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("own")}, Extensions: []belay.Extension{ext}}, calls("own"))
	ext.set(anyTool("own", nil, nil), echoTool("fine"), echoTool("bad name"))
	turn := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the tools of the requests", toolNames(model), []string{"own fine", "own fine"})
	var found []codes.Code
	for _, d := range turn.Diagnostics {
		found = append(found, d.Code)
	}
	slices.Sort(found)
	wantEqual(t, "the diagnostics", found, []codes.Code{codes.ToolConflict, codes.BundleUnrouted})
}

// If the tools do not change, a step uses the bound tools of the previous step.
func TestStepToolsAreBoundOnce(t *testing.T) {
	t.Parallel()
	declared := 0
	ext := new(shifting)
	ext.set(&countedTool{Tool: echoTool("more"), declared: &declared})
	agent, _ := newAgent(t, &belay.Options{Extensions: []belay.Extension{ext}}, calls("more"), calls("more"))
	before := declared
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if declared != before {
		t.Errorf("the tool was asked %d times more what it is", declared-before)
	}
}

// countedTool counts the calls of Declaration.
type countedTool struct {
	belay.Tool
	declared *int
}

func (c *countedTool) Declaration() belay.ToolDeclaration {
	*c.declared++
	return c.Tool.Declaration()
}
