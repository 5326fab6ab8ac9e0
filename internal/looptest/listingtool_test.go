package looptest_test

import (
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
)

// shortList is a ListingTool whose list is incomplete.
type shortList struct {
	belay.Tool
	leftOut func() string
}

func (s *shortList) LeftOut() string { return s.leftOut() }

// Belay reports the incomplete list of a tool only once, even if the tool changes. It
// does not report tools that the agent must not use.
//
// SPEC K-16
func TestShortListsAreToldOnce(t *testing.T) {
	t.Parallel()
	short := func(name, leftOut string) belay.Tool {
		return &shortList{echoTool(name), func() string { return leftOut }}
	}
	ext := new(shifting)
	agent, _ := newAgent(t, &belay.Options{Scope: []string{"a", "b", "complete", "breaks"}, Extensions: []belay.Extension{ext}}, says("1"), says("2"), says("3"), says("4"))
	var got [][]string
	for _, tools := range [][]belay.Tool{
		{short("complete", ""), &shortList{echoTool("breaks"), func() string { panic("oops") }}, short("hidden", "out of scope")},
		{short("a", "2 of a")},
		{short("a", "3 of a")},
		{short("a", "4 of a"), short("b", "1 of b")},
	} {
		ext.set(tools...)
		var told []string
		for _, d := range takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn).Diagnostics {
			if d.Code != codes.ListingTruncated || d.Level != codes.LevelWarn || d.Phase != "turn.pre_tool_materialization" {
				t.Errorf("the diagnostic is %+v", d)
			}
			told = append(told, d.Subscription+": "+d.Message)
		}
		got = append(got, told)
	}
	if want := [][]string{nil, {"a: 2 of a"}, nil, {"b: 1 of b"}}; !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("the turns tell %q, want %q", got, want)
	}
}
