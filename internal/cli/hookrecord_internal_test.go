package cli

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// A test is made only of a call of which it is known what the hook answered, and has no secrets.
//
// SPEC C-15
func TestRecordCalls(t *testing.T) {
	t.Parallel()
	const mine, others = `Denied by "mine": no`, `Denied by "other": no`
	ran := func(id string, second int, state hook.State) hook.Run {
		at := time.Unix(int64(second), 0)
		return hook.Run{Subscription: id, State: state, Dispatch: "1", Scope: hook.Scope{Turn: "turn", Step: 1}, Started: at, Ended: at.Add(time.Millisecond)}
	}
	other := func(r hook.Run) hook.Run {
		r.Scope.Step = 2
		return r
	}
	for name, c := range map[string]struct {
		tool, input, text string
		class             belay.ResultClass
		askedBy           string
		rewriters         []string
		runs              []hook.Run
		want              []string
	}{
		"a call that ran":                       {want: []string{`{"path":"a"} pass`}},
		"a call that failed":                    {class: belay.ClassFailed, want: []string{`{"path":"a"} pass`}},
		"a call that this hook denied":          {class: belay.ClassDenied, text: mine, want: []string{`{"path":"a"} deny no`}},
		"a call that another hook denied":       {class: belay.ClassDenied, text: others, want: []string{string(leftUnknown)}},
		"a call that this hook asked about":     {askedBy: "mine", want: []string{`{"path":"a"} ask`}},
		"an aborted call that it asked about":   {class: belay.ClassAborted, askedBy: "mine", want: []string{`{"path":"a"} ask`}},
		"a call that another hook asked about":  {askedBy: "other", want: []string{string(leftUnknown)}},
		"a call with an invalid input":          {class: belay.ClassInvalid, want: []string{string(leftUnknown)}},
		"a call of an unknown tool":             {class: belay.ClassNotFound, want: []string{string(leftUnknown)}},
		"a call of a tool that is not in scope": {class: belay.ClassScope, want: []string{string(leftUnknown)}},
		"an aborted call":                       {class: belay.ClassAborted, want: []string{string(leftUnknown)}},
		"a tool that the hook does not match":   {tool: "read", want: []string{string(leftTool)}},
		"a call that the failed hook denied":    {class: belay.ClassDenied, text: `Denied by "mine": mine could not decide: timeout`, want: []string{string(leftFailed)}},
		"a hook that failed and lets pass":      {runs: []hook.Run{ran("mine", 1, hook.Failed)}, want: []string{string(leftFailed)}},
		"a hook that failed in another step":    {runs: []hook.Run{ran("mine", 1, hook.Completed), other(ran("mine", 2, hook.Failed))}, want: []string{`{"path":"a"} pass`}},
		"a hook that objects in shadow mode":    {runs: []hook.Run{{Subscription: "mine", State: hook.Completed, Shadow: true, Severity: hook.SeverityDeny, Scope: hook.Scope{Turn: "turn", Step: 1}}}, want: []string{string(leftUnknown)}},
		"rewritten before this hook":            {rewriters: []string{"other"}, runs: []hook.Run{ran("other", 1, hook.Completed), ran("mine", 2, hook.Completed)}, want: []string{`{"path":"b"} pass`}},
		"rewritten after this hook":             {rewriters: []string{"other"}, runs: []hook.Run{ran("mine", 1, hook.Completed), ran("other", 2, hook.Completed)}, want: []string{`{"path":"a"} pass`}},
		"rewritten before, and denied":          {class: belay.ClassDenied, text: mine, rewriters: []string{"other"}, runs: []hook.Run{ran("other", 1, hook.Completed), ran("mine", 2, hook.Completed)}, want: []string{`{"path":"b"} deny no`}},
		"rewritten before and after":            {rewriters: []string{"other", "third"}, runs: []hook.Run{ran("other", 1, hook.Completed), ran("mine", 2, hook.Completed), ran("third", 3, hook.Completed)}, want: []string{string(leftRewritten)}},
		"rewritten by this hook":                {rewriters: []string{"mine", "other"}, runs: []hook.Run{ran("mine", 1, hook.Completed), ran("other", 2, hook.Completed)}, want: []string{`{"path":"a"} pass`}},
		"rewritten by an interceptor":           {rewriters: []string{"interceptor"}, runs: []hook.Run{ran("mine", 1, hook.Completed)}, want: []string{`{"path":"b"} pass`}},
		"rewritten, without records":            {rewriters: []string{"other"}, want: []string{string(leftRewritten)}},
		"secrets":                               {input: `{"env":{"db_password":"secret-value"},"argv":["deploy","--token","secret-value"]}`, want: []string{`{"argv":["deploy","--token","[REDACTED]"],"env":{"db_password":"[REDACTED]"}} pass`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &belay.CallPart{ID: "call", Tool: cmp.Or(c.tool, "write"), Input: []byte(cmp.Or(c.input, `{"path":"a"}`)), RewrittenBy: c.rewriters}
			if c.rewriters != nil {
				call.Final = []byte(`{"path":"b"}`)
			}
			p := &past{runs: c.runs, messages: []*belay.Message{
				{Seq: 1, Turn: "turn", Step: 1, Kind: belay.KindAssistant, Parts: []belay.Part{{Call: call}}},
				{Seq: 2, Turn: "turn", Step: 1, Kind: belay.KindResults, Parts: []belay.Part{{Result: &belay.ResultPart{Call: "call", Tool: "write", Result: belay.Result{Text: c.text, IsError: c.class != "", Class: c.class}}}}},
			}, approvals: map[[2]string]belay.Approval{}}
			if c.askedBy != "" {
				p.approvals[[2]string{"turn", "call"}] = belay.Approval{ID: "1", By: c.askedBy}
			}
			var got []string
			recordCalls(p, &recordedHook{"mine", [][]string{{"wr*"}}}, func(r recordedTest) {
				input, _ := withoutSecrets(r.input)
				got = append(got, strings.TrimSpace(input+" "+cmp.Or(r.expect, "pass")+" "+r.reason))
			}, func(why leftOut) { got = append(got, string(why)) })
			if !slices.Equal(got, c.want) {
				t.Errorf("the tests are %q, want %q", got, c.want)
			}
		})
	}
}

// The names of recorded tests differ. A removed secret is told, and leaves out a test whose answer
// may depend on it.
//
// SPEC C-15
func TestRecording(t *testing.T) {
	t.Parallel()
	r := &recording{tests: make(map[string]bool), names: make(map[string]int), left: make(map[leftOut]int)}
	r.add(recordedTest{name: "one", tool: "write", input: map[string]any{"path": "a"}})
	r.add(recordedTest{name: "one", tool: "write", input: map[string]any{"path": "b"}, expect: "deny", reason: "no"})
	r.add(recordedTest{name: "same", tool: "write", input: map[string]any{"path": "a"}})
	r.add(recordedTest{name: "secret", tool: "write", input: map[string]any{"text": "DB_PASSWORD=secret-value"}})
	r.add(recordedTest{name: "denied", tool: "write", input: map[string]any{"text": "DB_PASSWORD=secret-value"}, expect: "deny"})
	r.add(recordedTest{name: "why", tool: "write", input: map[string]any{"path": "a"}, expect: "deny", reason: "DB_PASSWORD=secret-value"})
	const want = `  - name: "one"
    tool: "write"
    args: {"path":"a"}
    expect: pass
  - name: "one (2)"
    tool: "write"
    args: {"path":"b"}
    expect: {decision: deny, reason: "no"}
  - name: "secret"
    # secrets were removed from this input
    tool: "write"
    args: {"text":"DB_PASSWORD=[REDACTED]"}
    expect: pass
`
	if got := r.text.String(); got != want || r.left[leftSecret] != 2 {
		t.Errorf("%s\nleft out: %v", got, r.left)
	}
}
