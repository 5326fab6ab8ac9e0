package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// call is the input of the test phases: an agent calls a tool. Like every input it is
// immutable.
type call struct {
	tool, agent, text string
	scope             *hook.Scope
}

// write is the call that tests use if the details do not matter.
var write = call{
	tool: "write", agent: "main", text: "hello",
	scope: &hook.Scope{Session: "s1", Turn: "t1", Step: 2, Agent: "main"},
}

// MarshalJSON is the inverse of decodeCall.
func (c call) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"tool": c.tool, "text": c.text, "agent": c.agent})
}

func (c call) reference() string { return "call/" + c.tool }

var callLabels = map[string]func(call) string{
	"tool":  func(c call) string { return c.tool },
	"agent": func(c call) string { return c.agent },
	"lang":  func(c call) string { return c.text },
}

func callScope(c call) *hook.Scope { return c.scope }

func decodeCall(scope hook.Scope, data []byte) (call, error) {
	var in struct {
		Tool  string `json:"tool"`
		Agent string `json:"agent"`
		Text  string `json:"text"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return call{}, err
	}
	return call{in.Tool, in.Agent, in.Text, &scope}, nil
}

// verdict is the output of gatePhase.
type verdict struct {
	Severity hook.Severity `json:"severity,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Context  []string      `json:"context,omitempty"`
	Audit    []hook.Audit  `json:"audit,omitempty"`
	Jobs     []hook.Job    `json:"jobs,omitempty"`
}

func ask(reason string) verdict  { return verdict{Severity: hook.SeverityAsk, Reason: reason} }
func deny(reason string) verdict { return verdict{Severity: hook.SeverityDeny, Reason: reason} }
func halt(reason string) verdict { return verdict{Severity: hook.SeverityHalt, Reason: reason} }

// Answer describes the verdict to the runtime.
func (v verdict) Answer() *hook.Answer {
	if v.Severity == hook.SeverityPass && v.Context == nil && v.Audit == nil && v.Jobs == nil {
		return nil // no opinion, without an allocation
	}
	ans := hook.Answer{Severity: v.Severity, Audit: v.Audit, Jobs: v.Jobs}
	switch v.Severity {
	case hook.SeverityAsk:
		ans.Parts = append(ans.Parts, hook.Part{Kind: "ask", Needs: hook.CanAsk, Content: v.Reason})
	case hook.SeverityDeny, hook.SeverityHalt:
		ans.Parts = append(ans.Parts, hook.Part{Kind: v.Severity.String(), Needs: hook.CanBlock, Content: v.Reason})
	default:
	}
	for _, text := range v.Context {
		ans.Parts = append(ans.Parts, hook.Part{Kind: "context", Needs: hook.CanAddContext, Content: text})
	}
	return &ans
}

// gatePhase is a plain gate.
var gatePhase = hook.Define(hook.Definition[call, verdict]{
	Name: "test.gate", Kind: hook.Gate, May: "pass, ask, deny, halt", Fires: "before a call",
	Capabilities: hook.CanBlock | hook.CanAsk | hook.CanAddContext | hook.CanAudit | hook.CanSchedule,
	Labels:       callLabels, Scope: callScope, Reference: call.reference, Decode: decodeCall,
	Merge: func(m *hook.Merging, merged, answer verdict) verdict {
		if m.Wins {
			merged.Severity, merged.Reason = answer.Severity, answer.Reason
		}
		merged.Context = append(merged.Context, answer.Context...)
		return merged
	},
	Closed:  func(p hook.Problem) (verdict, bool) { return deny(p.Reason()), true },
	Verdict: func(v verdict) verdict { return verdict{Severity: v.Severity, Reason: v.Reason} },
})

// findings is the output of collectPhase.
type findings struct {
	Title string       `json:"title,omitempty"` // the first title is used
	Notes []string     `json:"notes,omitempty"`
	Audit []hook.Audit `json:"audit,omitempty"`
	Jobs  []hook.Job   `json:"jobs,omitempty"`
}

func note(texts ...string) findings { return findings{Notes: texts} }

// Answer describes the findings to the runtime. If the findings are empty, it returns an
// empty answer, which means "no opinion" like nil.
func (f findings) Answer() *hook.Answer {
	ans := hook.Answer{Audit: f.Audit, Jobs: f.Jobs}
	if f.Title != "" {
		ans.Parts = append(ans.Parts, hook.Part{Kind: "title", Needs: hook.CanAddSections, Content: f.Title})
	}
	for _, text := range f.Notes {
		ans.Parts = append(ans.Parts, hook.Part{Kind: "note", Needs: hook.CanAddContext, Content: text})
	}
	return &ans
}

func mergeFindings(m *hook.Merging, merged, answer findings) findings {
	switch {
	case merged.Title == "":
		merged.Title = answer.Title
	case answer.Title != "" && answer.Title != merged.Title:
		m.Diagnose(codes.PolicyConflict, "two titles; the earlier stands")
	}
	merged.Notes = append(merged.Notes, answer.Notes...)
	return merged
}

var collectDefinition = hook.Definition[call, findings]{
	Name: "test.collect", Kind: hook.Collect, May: "add notes", Fires: "after a call",
	Capabilities: hook.CanAddContext | hook.CanAddSections | hook.CanAudit | hook.CanSchedule,
	Labels:       callLabels, Scope: callScope, Reference: call.reference, Decode: decodeCall,
	Merge: mergeFindings,
}

// collectPhase is a collect phase without an answer for failures.
var collectPhase = hook.Define(collectDefinition)

// narrowPhase is a collect phase in which at most two handlers run in parallel.
var narrowPhase = func() hook.Phase[call, findings] {
	def := collectDefinition
	def.Name, def.Overlap = "test.narrow", 2
	return hook.Define(def)
}()

// withholdPhase is a collect phase with an answer for failures.
var withholdPhase = func() hook.Phase[call, findings] {
	def := collectDefinition
	def.Name = "test.withhold"
	def.Closed = func(hook.Problem) (findings, bool) { return note("withheld"), true }
	return hook.Define(def)
}()

// remark is the output of observePhase.
type remark struct {
	Audit []hook.Audit `json:"audit,omitempty"`
	Jobs  []hook.Job   `json:"jobs,omitempty"`
	Note  string       `json:"note,omitempty"` // needs a capability that detached work cannot have
}

func remarks(codes ...string) remark {
	var r remark
	for _, code := range codes {
		r.Audit = append(r.Audit, hook.Audit{Code: code})
	}
	return r
}

// Answer describes the remark to the runtime.
func (r remark) Answer() *hook.Answer {
	ans := hook.Answer{Audit: r.Audit, Jobs: r.Jobs}
	if r.Note != "" {
		ans.Parts = []hook.Part{{Kind: "note", Needs: hook.CanAddContext, Content: r.Note}}
	}
	return &ans
}

// observePhase is an observe phase.
var observePhase = hook.Define(hook.Definition[call, remark]{
	Name: "test.observe", Kind: hook.Observe, May: "note", Fires: "at the end",
	Capabilities: hook.CanAudit | hook.CanSchedule | hook.CanAddContext,
	Labels:       callLabels, Scope: callScope, Reference: call.reference, Decode: decodeCall,
})

// edit is the output of rewritePhase: a verdict, or a new text.
type edit struct {
	Severity hook.Severity `json:"severity,omitempty"`
	Text     string        `json:"text,omitempty"`
}

// Answer describes the edit to the runtime.
func (e edit) Answer() *hook.Answer {
	ans := hook.Answer{Severity: e.Severity}
	if e.Severity >= hook.SeverityDeny {
		ans.Parts = append(ans.Parts, hook.Part{Kind: e.Severity.String(), Needs: hook.CanBlock})
	}
	if e.Text != "" {
		ans.Parts = append(ans.Parts, hook.Part{Kind: "input", Needs: hook.CanRewriteInput, Content: e.Text})
	}
	return &ans
}

var errUnfit = errors.New("the text does not fit")

// rewritePhase is a gate whose handlers may rewrite the text. For the text "unfit", Rewrite
// returns an error. For "broken", it panics.
var rewritePhase = hook.Define(hook.Definition[call, edit]{
	Name: "test.rewrite", Kind: hook.Gate, May: "rewrite, deny", Fires: "before a call",
	Capabilities: hook.CanBlock | hook.CanRewriteInput | hook.CanAudit,
	Labels:       callLabels, Scope: callScope,
	Merge: func(m *hook.Merging, merged, answer edit) edit {
		if m.Wins {
			merged.Severity = answer.Severity
		}
		if answer.Text != "" {
			merged.Text = answer.Text
		}
		return merged
	},
	Rewrite: func(in call, answer edit) (call, error) {
		switch {
		case strings.HasPrefix(answer.Text, "unfit"):
			return call{}, errUnfit
		case answer.Text == "broken":
			panic("the phase is broken")
		}
		in.text = answer.Text
		return in, nil
	},
	Closed: func(hook.Problem) (edit, bool) { return edit{Severity: hook.SeverityDeny}, true },
})

// rewriter returns the options of a handler that rewrites.
func rewriter(o hook.Options) *hook.Options {
	o.Capabilities |= hook.CanRewriteInput
	return &o
}

// page is the output of pagePhase. The output is a pointer, and nil means "no opinion".
type page struct {
	Lines []string `json:"lines,omitempty"`
}

// Answer describes the page to the runtime. The runtime must not call it on nil.
func (p *page) Answer() *hook.Answer {
	var ans hook.Answer
	for _, line := range p.Lines {
		ans.Parts = append(ans.Parts, hook.Part{Kind: "line", Needs: hook.CanAddContext, Content: line})
	}
	return &ans
}

// pagePhase is a collect phase with a pointer as output.
var pagePhase = hook.Define(hook.Definition[call, *page]{
	Name: "test.page", Kind: hook.Collect, May: "add lines", Fires: "now and then",
	Capabilities: hook.CanAddContext, Labels: callLabels, Scope: callScope,
	Merge: func(_ *hook.Merging, merged, answer *page) *page {
		if merged == nil {
			merged = new(page)
		}
		merged.Lines = append(merged.Lines, answer.Lines...)
		return merged
	},
})

var allPhases = []hook.AnyPhase{
	gatePhase, collectPhase, narrowPhase, withholdPhase, observePhase, rewritePhase, pagePhase,
}

// says returns a handler that always gives the same answer.
func says[Out hook.Output](out Out) hook.Handler[call, Out] {
	return func(context.Context, call) (Out, error) { return out, nil }
}

// fails returns a handler that always returns the error.
func fails[Out hook.Output](err error) hook.Handler[call, Out] {
	return func(context.Context, call) (Out, error) {
		var none Out
		return none, err
	}
}

// does returns a handler that calls do and has no opinion.
func does[Out hook.Output](do func(ctx context.Context, in call)) hook.Handler[call, Out] {
	return func(ctx context.Context, in call) (Out, error) {
		do(ctx, in)
		var none Out
		return none, nil
	}
}
