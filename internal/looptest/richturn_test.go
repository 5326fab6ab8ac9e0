package looptest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// This test lists the inputs of every phase: in a turn that uses everything, in a turn that
// fails, and when the session is closed. The calls of a step run in parallel, so their
// lines are sorted by call. From turn.pre_prompt_context on, each line ends with the merged
// policy and context.
//
// SPEC H-20
func TestEveryPhaseOfARichTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRich(t, func(o *belay.Options) {
			together := make(chan struct{}) // read and write wait for each other here, so their calls must run in parallel
			o.Tools = append(o.Tools[2:], meets("write", together), meets("read", together))
		})
		turn, err := r.session.Turn(t.Context(), richWork)
		if err != nil || turn.Reason != belay.EndTurn || turn.Text != "done" || turn.Steps != 4 {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		if len(turn.Diagnostics) != 0 {
			t.Errorf("there are diagnostics: %v", turn.Diagnostics)
		}
		if turn, err := r.session.Turn(t.Context(), richFail); err == nil || turn.Reason != belay.EndError {
			t.Errorf("the turn that fails is %+v, %v", turn, err)
		}
		if err := r.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		fired := r.phases.all()
		for _, p := range belay.Phases() {
			never := p.Name() == belay.SubagentStart.Name() || p.Name() == belay.SubagentStop.Name()
			if fires := slices.ContainsFunc(fired, func(f firedPhase) bool { return f.name == p.Name() }); fires == never {
				t.Errorf("%s fired: %t", p.Name(), fires)
			}
		}
		if diff := cmp.Diff(richGolden, linesOf(fired)); diff != "" {
			t.Errorf("the phases differ (-want +got):\n%s", diff)
		}
		r.sound(t)
	})
}

var richGolden = strings.Split(strings.TrimSpace(`
session.start 0 messages=0 source=new
user.prompt.submit 0 original=do it text=please do it
turn.pre_policy 0 text=please do it
turn.pre_prompt_context 0 text=please do it tools=[shell broken write read] | max_steps:50
turn.post_preflight_prompt_context 0 plan=map[queries:[ada] source:planner] text=please do it tools=[shell broken write read] | max_steps:50 who
turn.pre_tool_materialization 0 text=please do it tools=[shell broken write read] | max_steps:50 who found
turn.pre_prompt_compile 0 text=please do it tools=[shell broken write read lookup] | max_steps:50 who found
turn.post_prompt_compile 0 parts=[agent::main section:tone:rich/section context:who:rich/context context:found:rich/preflight tools::] size=36 | max_steps:50 who found
model.pre 1 attempt=1 messages=2 model=test/rich tools=5 | max_steps:50 who found
tool.pre 1 id=c1 input=map[path:/a] original=map[path:a] tool=read | max_steps:50 who found
tool.pre 1 id=c2 input=map[run:rm] tool=shell | max_steps:50 who found
tool.denied 1 by=rich/gate class=denied id=c2 reason=no shells tool=shell | max_steps:50 who found
tool.pre 1 id=c3 input=map[path:a] tool=write | max_steps:50 who found
approval.request 1 by=rich/gate call=c3 input=map[path:a] reason=it writes tool=write | max_steps:50 who found
tool.pre 1 id=c4 input=map[name:ada] tool=lookup | max_steps:50 who found
model.post 1 model=test/rich stop_reason=tool_use tool_calls=4 usage=map[in:100 out:5] | max_steps:50 who found
approval.decided 1 by=ada call=c3 decision=allow tool=write | max_steps:50 who found
tool.post 1 id=c1 input=map[path:/a] text={"path":"/a"} tool=read | max_steps:50 who found
tool.post 1 id=c3 input=map[path:a] text={"path":"a"} tool=write | max_steps:50 who found
tool.post 1 id=c4 input=map[name:ada] text=looked up {"name":"ada"} tool=lookup | max_steps:50 who found
model.pre 2 attempt=1 messages=4 model=test/rich tools=5 | max_steps:50 who found
tool.pre 2 id=c5 input=map[] tool=broken | max_steps:50 who found
tool.pre 2 id=c6 input=map[path:/b] original=map[path:b] tool=read | max_steps:50 who found
model.post 2 model=test/rich stop_reason=tool_use tool_calls=2 usage=map[in:900 out:20] | max_steps:50 who found
tool.post 2 class=failed id=c5 input=map[] is_error=true text=it is [redacted] tool=broken | max_steps:50 who found
tool.post 2 id=c6 input=map[path:/b] text={"path":"/b"} tool=read | max_steps:50 who found
turn.pre_compaction 3 messages=6 tokens=927 trigger=window window=1000 | max_steps:50 who found
turn.post_compaction 3 after=30 before=927 trigger=window | max_steps:50 who found
model.pre 3 attempt=1 messages=3 model=test/rich tools=5 | max_steps:50 who found
turn.stop 3 continuations=0 text=done? | max_steps:50 who found
model.post 3 model=test/rich stop_reason=end_turn tool_calls=0 usage=map[in:100 out:5] | max_steps:50 who found
model.pre 4 attempt=1 messages=4 model=test/rich tools=5 | max_steps:50 who found
turn.stop 4 continuations=1 text=done | max_steps:50 who found
model.post 4 model=test/rich stop_reason=end_turn tool_calls=0 usage=map[in:100 out:5] | max_steps:50 who found
turn.post_turn 4 reason=end_turn steps=4 text=done usage=map[in:1700 out:85] user_text=please do it | max_steps:50 who found
user.prompt.submit 0 original=fail text=please fail
turn.pre_policy 0 text=please fail
turn.pre_prompt_context 0 text=please fail tools=[shell broken write read] | max_steps:50
turn.post_preflight_prompt_context 0 plan=map[queries:[ada] source:planner] text=please fail tools=[shell broken write read] | max_steps:50 who
turn.pre_tool_materialization 0 text=please fail tools=[shell broken write read] | max_steps:50 who found
turn.pre_prompt_compile 0 text=please fail tools=[shell broken write read lookup] | max_steps:50 who found
turn.post_prompt_compile 0 parts=[agent::main section:tone:rich/section context:who:rich/context context:found:rich/preflight tools::] size=36 | max_steps:50 who found
model.pre 1 attempt=1 messages=8 model=test/rich tools=5 | max_steps:50 who found
error 1 class=model.auth message=model: auth: no key | max_steps:50 who found
turn.post_turn 1 reason=error steps=1 usage=map[in:0 out:0] user_text=please fail | max_steps:50 who found
session.end 0 reason=error turns=2
`), "\n")

// meets returns a tool that waits, in the first step, until another such tool runs too.
func meets(name string, together chan struct{}) belay.Tool {
	return anyTool(name, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		if call.Step == 1 {
			select {
			case together <- struct{}{}:
			case <-together:
			}
		}
		return belay.Result{Text: string(call.Input)}, nil
	}, nil)
}

// linesOf describes the fired phases, one line for each, without values that differ between
// runs. Lines about the same call are together.
func linesOf(fired []firedPhase) []string {
	perCall := []string{
		belay.ToolPre.Name(), belay.ToolDenied.Name(), belay.ApprovalRequest.Name(), belay.ApprovalDecided.Name(), belay.ToolPost.Name(),
	}
	for from := 0; from < len(fired); from++ {
		to := from
		for to < len(fired) && slices.Contains(perCall, fired[to].name) {
			to++
		}
		slices.SortStableFunc(fired[from:to], func(a, b firedPhase) int { return strings.Compare(a.call(), b.call()) })
		from = max(from, to-1)
	}
	lines := make([]string, len(fired))
	for i, f := range fired {
		lines[i] = f.line()
	}
	return lines
}

// call returns a sort key with the id of the call. Lines of the checks come first, then
// lines of approval.decided, then lines of tool.post.
func (f *firedPhase) call() string {
	stage := "judge"
	switch f.name {
	case belay.ApprovalDecided.Name():
		stage = "person"
	case belay.ToolPost.Name():
		stage = "run"
	}
	if id, ok := f.input["call"]; ok {
		return fmt.Sprint(stage, id)
	}
	return fmt.Sprint(stage, f.input["id"])
}

func (f *firedPhase) line() string {
	line := fmt.Sprintf("%s %d", f.name, f.step)
	for _, key := range slices.Sorted(maps.Keys(f.input)) {
		value := f.input[key]
		switch key {
		case "policy", "context", "hash", "latency_ns":
			continue
		case "id":
			if f.input["call"] != nil {
				continue // here the id is the id of the approval, which is random
			}
		case "parts":
			var parts []string
			for _, p := range listOf(value) {
				parts = append(parts, fmt.Sprintf("%s:%s:%s", text(p["kind"]), text(p["id"]), text(p["from"])))
			}
			value = parts
		}
		line += fmt.Sprintf(" %s=%v", key, value)
	}
	if policy, ok := f.input["policy"].(map[string]any); ok {
		line += " |"
		for _, key := range slices.Sorted(maps.Keys(policy)) {
			line += fmt.Sprintf(" %s:%v", key, policy[key])
		}
		for _, entry := range listOf(f.input["context"]) {
			line += " " + text(entry["id"])
		}
	}
	return line
}

func listOf(value any) []map[string]any {
	list, _ := value.([]any)
	maps := make([]map[string]any, len(list))
	for i := range list {
		maps[i], _ = list[i].(map[string]any)
	}
	return maps
}

func text(value any) string { s, _ := value.(string); return s }

// The two phases that add prompt context share one limit. Entries of the second phase get
// only the room that the first phase left. Entries of the first phase are not cut.
//
// SPEC H-17
func TestOneLimitForBothPromptContexts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule          string
		first, second []int // the size of each entry in characters
		want          []int
		codes         []codes.Code
	}{
		{"16 entries in all", slices.Repeat([]int{1}, 10), slices.Repeat([]int{1}, 8), slices.Repeat([]int{1}, 16), []codes.Code{codes.ContextDropped, codes.ContextDropped}},
		{"16 entries fit", slices.Repeat([]int{1}, 10), slices.Repeat([]int{1}, 6), slices.Repeat([]int{1}, 16), nil},
		{"12,000 characters fit", []int{7000}, []int{5000}, []int{7000, 5000}, nil},
		{"an entry is cut where 12,000 characters end", []int{7000}, []int{5001}, []int{7000, 5000}, []codes.Code{codes.ContextTruncated}},
		{"behind 12,000 characters entries are dropped", []int{12000}, []int{1}, []int{12000}, []codes.Code{codes.ContextDropped}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			entries := func(sizes []int) []belay.ContextEntry {
				var all []belay.ContextEntry
				for _, n := range sizes {
					all = append(all, belay.ContextEntry{Text: strings.Repeat("ä", n)})
				}
				return all
			}
			var got []int
			agent, _ := newAgent(t, &belay.Options{Hooks: []hook.Subscription{
				belay.TurnPrePromptContext.On("first", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
					return belay.PromptContext{Entries: entries(test.first)}, nil
				}, nil),
				belay.TurnPostPreflightPromptContext.On("second", func(context.Context, belay.Preflight) (belay.PromptContext, error) {
					return belay.PromptContext{Entries: entries(test.second)}, nil
				}, nil),
				belay.TurnPostTurn.On("look", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
					for _, e := range in.Context() {
						got = append(got, len([]rune(e.Text)))
					}
					return belay.Note{}, nil
				}, nil),
			}})
			turn, err := agent.Session("s").Turn(t.Context(), "hi")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) || !slices.Equal(codesOf(turn.Diagnostics), test.codes) {
				t.Errorf("context of %v with %v, want %v with %v", got, codesOf(turn.Diagnostics), test.want, test.codes)
			}
			if len(turn.Diagnostics) > 0 && turn.Diagnostics[0].Subscription != "second" {
				t.Errorf("the diagnostic names %q", turn.Diagnostics[0].Subscription)
			}
		})
	}
}
