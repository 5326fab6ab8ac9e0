package cli

import (
	"cmp"
	"slices"
	"testing"

	"github.com/belay-run/belay"
)

// A test is made only of a call of which it is known what the hook answered, and has no secrets.
//
// SPEC C-15
func TestRecordCalls(t *testing.T) {
	t.Parallel()
	const mine, other = `Denied by "mine": no`, `Denied by "other": no`
	for name, c := range map[string]struct {
		input, text string
		class       belay.ResultClass
		askedBy     string
		want        []string
	}{
		"a call that ran":                       {want: []string{`{"path":"a"} pass`}},
		"a call that failed":                    {class: belay.ClassFailed, want: []string{`{"path":"a"} pass`}},
		"a call that this hook denied":          {class: belay.ClassDenied, text: mine, want: []string{`{"path":"a"} {decision: deny, reason: "no"}`}},
		"a call that another hook denied":       {class: belay.ClassDenied, text: other, want: []string{"left"}},
		"a call that this hook asked about":     {askedBy: "mine", want: []string{`{"path":"a"} ask`}},
		"an aborted call that it asked about":   {class: belay.ClassAborted, askedBy: "mine", want: []string{`{"path":"a"} ask`}},
		"a call that another hook asked about":  {askedBy: "other", want: []string{"left"}},
		"a call with an invalid input":          {class: belay.ClassInvalid, want: []string{"left"}},
		"a call of an unknown tool":             {class: belay.ClassNotFound, want: []string{"left"}},
		"a call of a tool that is not in scope": {class: belay.ClassScope, want: []string{"left"}},
		"an aborted call":                       {class: belay.ClassAborted, want: []string{"left"}},
		"secrets":                               {input: `{"env":{"db_password":"secret-value"},"argv":["deploy","--token","secret-value"]}`, want: []string{`{"argv":["deploy","--token","[REDACTED]"],"env":{"db_password":"[REDACTED]"}} pass`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &past{messages: []*belay.Message{
				{Seq: 1, Turn: "turn", Kind: belay.KindAssistant, Parts: []belay.Part{{Call: &belay.CallPart{ID: "call", Tool: "write", Input: []byte(cmp.Or(c.input, `{"path":"a"}`))}}}},
				{Seq: 2, Turn: "turn", Kind: belay.KindResults, Parts: []belay.Part{{Result: &belay.ResultPart{Call: "call", Tool: "write", Result: belay.Result{Text: c.text, IsError: c.class != "", Class: c.class}}}}},
			}, approvals: map[[2]string]belay.Approval{}}
			if c.askedBy != "" {
				p.approvals[[2]string{"turn", "call"}] = belay.Approval{ID: "1", By: c.askedBy}
			}
			var got []string
			recordCalls(p, "mine", func(r recordedTest) {
				got = append(got, withoutSecrets(r.input)+" "+cmp.Or(r.expect, "pass"))
			}, func() { got = append(got, "left") })
			if !slices.Equal(got, c.want) {
				t.Errorf("the tests are %q, want %q", got, c.want)
			}
		})
	}
}
