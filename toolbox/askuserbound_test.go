package toolbox_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/belay-run/belay/toolbox"
)

// ear is an ask_user extension without an agent. Tests pass it decisions and fetch the
// answers.
type ear struct {
	t        *testing.T
	snapshot *hook.Snapshot
	decided  *phasejson.Phase
	tool     belay.Tool
}

func newEar(t *testing.T) *ear {
	t.Helper()
	extension := toolbox.AskUser()
	hooks, brings := extension.(belay.HookExtension), extension.(belay.ToolExtension)
	runtime, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Install(hooks.Hooks()...); err != nil {
		t.Fatal(err)
	}
	decided, err := phasejson.New(belay.ApprovalDecided.Name())
	if err != nil {
		t.Fatal(err)
	}
	snapshot := runtime.Snapshot()
	t.Cleanup(func() { _ = snapshot.Release(t.Context()) })
	return &ear{t, snapshot, decided, brings.Tools()[0]}
}

// hears passes a decision about a call to the extension.
func (e *ear) hears(call int, decision, reason string) {
	e.t.Helper()
	input, err := json.Marshal(map[string]string{"id": fmt.Sprintf("ap-%d", call), "call": fmt.Sprintf("call-%d", call), "tool": toolbox.AskUserTool, "decision": decision, "reason": reason, "by": "ann"})
	if err != nil {
		e.t.Fatal(err)
	}
	x, err := e.decided.Explain(e.t.Context(), e.snapshot, hook.Scope{Session: "s", Turn: "t"}, input)
	if err != nil || x.Error != "" || len(x.Entries) != 1 || !x.Entries[0].Asked {
		e.t.Fatalf("nobody hears the decision: %+v, %v", x, err)
	}
}

// fetches calls the tool and returns the result.
func (e *ear) fetches(call int) string {
	e.t.Helper()
	r, err := e.tool.Call(e.t.Context(), &belay.Invocation{Session: "s", Turn: "t", ID: fmt.Sprintf("call-%d", call), Tool: toolbox.AskUserTool, Input: []byte(when)})
	if err != nil {
		e.t.Fatal(err)
	}
	if r.IsError {
		return string(r.Class)
	}
	return r.Text
}

func (e *ear) want(call int, answer string) {
	e.t.Helper()
	if got := e.fetches(call); got != answer {
		e.t.Errorf("call %d is told %q, want %q", call, got, answer)
	}
}

const nobody = string(belay.ClassUnavailable)

// Answers that no call has fetched are kept up to a limit. The oldest are dropped first.
func TestAskUserRemembersSoManyAnswers(t *testing.T) {
	t.Parallel()
	const most = toolbox.RememberedAnswers
	e := newEar(t)
	for call := range most + 2 {
		e.hears(call, "allow", fmt.Sprintf("answer %d", call))
	}
	e.want(0, nobody)
	e.want(1, nobody)
	e.want(2, "answer 2")
	e.want(most+1, fmt.Sprintf("answer %d", most+1))
	// A fetched answer is dropped, which makes room for another.
	e.want(2, nobody)
	e.hears(most+2, "allow", "late")
	e.hears(most+3, "allow", "later")
	e.want(3, "answer 3")
	e.want(most+2, "late")
	e.want(most+3, "later")
}

// A denial is not an answer, even if it has a reason. It does not push out other answers.
func TestAskUserKeepsNoNo(t *testing.T) {
	t.Parallel()
	const most = toolbox.RememberedAnswers
	e := newEar(t)
	e.hears(0, "deny", "on Thursday")
	e.want(0, nobody)
	for call := range most {
		e.hears(call+1, "allow", fmt.Sprintf("answer %d", call+1))
	}
	e.hears(most+1, "deny", "on Friday")
	e.want(most+1, nobody)
	e.want(1, "answer 1")
}
