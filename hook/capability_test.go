package hook_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// These are the names that files and grants use.
//
// SPEC H-15
func TestCapabilityNames(t *testing.T) {
	t.Parallel()
	want := []string{
		"block", "ask", "context", "audit", "jobs", "policy", "sections", "tools",
		"rewrite_input", "rewrite_output", "rewrite_prompt", "answer", "approve",
	}
	same(t, "names", hook.DefaultGrants(hook.Origin{}).Names(), want)
	for i, name := range want {
		got, err := hook.ParseCapabilities(name)
		if err != nil || got != 1<<i {
			t.Errorf("parse %s: got %v, %v", name, got, err)
		}
	}
	for capability, name := range map[hook.Capability]string{
		hook.CanBlock: "block", hook.CanAsk: "ask", hook.CanAddContext: "context", hook.CanAudit: "audit", hook.CanSchedule: "jobs",
		hook.CanSetPolicy: "policy", hook.CanAddSections: "sections", hook.CanAddTools: "tools", hook.CanRewriteInput: "rewrite_input",
		hook.CanRewriteOutput: "rewrite_output", hook.CanRewritePrompt: "rewrite_prompt", hook.CanAnswer: "answer", hook.CanApprove: "approve",
	} {
		equal(t, "name", capability.String(), name)
	}
	if _, err := hook.ParseCapabilities("blok"); err == nil || !strings.Contains(err.Error(), `did you mean "block"?`) {
		t.Errorf("parse blok: got %v, want a suggestion", err)
	}
	equal(t, "the empty set", hook.Capability(0).String(), "none")
	equal(t, "a set holds its parts", (hook.CanAsk | hook.CanBlock).Has(hook.CanAsk), true)
	equal(t, "a set does not hold more", hook.CanAsk.Has(hook.CanAsk|hook.CanBlock), false)
}

// SPEC H-15
func TestCapabilitiesAreDeclaredWithinTheGrants(t *testing.T) {
	t.Parallel()
	project, space := hook.Origin{Kind: hook.OriginProject}, hook.Origin{Kind: hook.OriginSpace, Name: "demo"}
	operator := hook.Origin{Kind: hook.OriginOperator}
	rewrites := func(o hook.Origin) hook.Subscription {
		return rewritePhase.On("a", says(edit{}), rewriter(hook.Options{Origin: o}))
	}
	schedules := func(o hook.Origin) hook.Subscription {
		return gateWith(hook.Options{Origin: o, Capabilities: hook.CanSchedule})
	}
	only := func(set hook.Capability) func(hook.Origin) hook.Capability {
		return func(hook.Origin) hook.Capability { return set }
	}
	for _, test := range []struct {
		rule   string
		grants func(hook.Origin) hook.Capability
		sub    hook.Subscription
		ok     bool
	}{
		{"the host may rewrite", nil, rewrites(hook.Origin{}), true},
		{"the operator may rewrite", nil, rewrites(operator), true},
		{"a project may not rewrite", nil, rewrites(project), false},
		{"a space may not rewrite", nil, rewrites(space), false},
		{"a space with the grant may rewrite", only(hook.DefaultGrants(hook.Origin{})), rewrites(space), true},
		{"a project may not schedule jobs", nil, schedules(project), false},
		{"a project may block", nil, gateWith(hook.Options{Origin: project, Capabilities: hook.CanBlock | hook.CanAsk | hook.CanAddContext | hook.CanAudit}), true},
		{"a project that declares nothing has what it was granted", nil, gateWith(hook.Options{Origin: project}), true},
		{"the operator can withhold what the host declares", only(hook.CanAudit), gateWith(hook.Options{Capabilities: hook.CanBlock}), false},
		{"a capability that the phase cannot use is refused", nil, gateWith(hook.Options{Capabilities: hook.CanAddTools}), false},
		{"NoCapability together with another capability is refused", nil, gateWith(hook.Options{Capabilities: hook.NoCapability | hook.CanAudit}), false},
		{"NoCapability alone is accepted", nil, gateWith(hook.Options{Capabilities: hook.NoCapability}), true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := newRuntime(t, &hook.RuntimeOptions{Grants: test.grants}).Install(test.sub)
			if test.ok {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if problem, ok := errors.AsType[*hook.OptionError](err); !ok || problem.Field != "capabilities" {
				t.Errorf("got %v, want an *OptionError about capabilities", err)
			}
		})
	}
}

// This test has no denials. Denials count even without the capability: see denial_test.go.
//
// SPEC H-15
func TestAnswerBeyondTheCapabilitiesFailsWhole(t *testing.T) {
	t.Parallel()
	project := hook.Origin{Kind: hook.OriginProject}
	for _, test := range []struct {
		rule    string
		opts    hook.Options
		says    verdict
		missing string // empty: the answer is accepted
	}{
		{"what the phase allows is the default", hook.Options{}, verdict{Severity: hook.SeverityAsk, Context: []string{"c"}, Audit: []hook.Audit{{Code: "a"}}}, ""},
		{"no opinion needs nothing", hook.Options{Capabilities: hook.NoCapability}, verdict{}, ""},
		{"a question needs ask", hook.Options{Capabilities: hook.CanBlock}, ask("sure?"), "ask"},
		{"context needs context", hook.Options{Capabilities: hook.CanAsk}, verdict{Context: []string{"c"}}, "context"},
		{"a note needs audit", hook.Options{Capabilities: hook.CanAsk}, verdict{Audit: []hook.Audit{{Code: "a"}}}, "audit"},
		{"a job needs jobs", hook.Options{Capabilities: hook.CanAsk}, verdict{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}}, "jobs"},
		{"a question is refused with NoCapability", hook.Options{Capabilities: hook.NoCapability}, ask("sure?"), "ask"},
		{"the grants of the origin limit the default", hook.Options{Origin: project}, verdict{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}}, "jobs"},
		{"an answer with one part that is not allowed is refused as a whole", hook.Options{Capabilities: hook.CanAsk | hook.CanAudit}, verdict{Severity: hook.SeverityAsk, Context: []string{"c"}, Audit: []hook.Audit{{Code: "a"}}}, "context"},
	} {
		for _, w := range append(ways[:3:3], ways[0]) {
			t.Run(test.rule+", "+w.name, func(t *testing.T) {
				t.Parallel()
				o := test.opts
				o.Concurrent, o.Execution, o.Timeout, o.Failure = w.opts.Concurrent, w.opts.Execution, time.Minute, hook.Open
				rt := newRuntime(t, nil, gatePhase.On("a", says(test.says), &o))
				s := snapshot(t, rt)
				out := dispatch(t, gatePhase, s, write)
				run := runOf(t, s.Take(), "a")
				if test.missing == "" {
					equal(t, "state", run.State, hook.Completed)
					equal(t, "verdict", out.Output.Severity, test.says.Severity)
					return
				}
				equal(t, "state", run.State, hook.Failed)
				equal(t, "class", run.Class, codes.CapabilityMissing)
				equal(t, "verdict", out.Output.Severity, hook.SeverityPass)
				equal(t, "context", len(out.Output.Context), 0)
				equal(t, "contributions on record", len(run.Contributed)+len(run.Audit), 0)
				same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.CapabilityMissing})
				if !strings.Contains(out.Diagnostics[0].Message, test.missing) {
					t.Errorf("the diagnostic does not name %s: %v", test.missing, out.Diagnostics[0])
				}
			})
		}
	}
}

// If an answer needs a capability that the gate's subscription lacks, the gate denies, as
// after any other failure.
//
// SPEC H-10, H-15
func TestCapabilityMissingAtAGateDenies(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("a", says(ask("sure?")), &hook.Options{Capabilities: hook.CanAudit}))
	out := dispatch(t, gatePhase, snapshot(t, rt), write)
	equal(t, "verdict", out.Output.Severity, hook.SeverityDeny)
}

// SPEC H-15
func TestFallbackIsHeldToTheCapabilities(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		opts hook.Options
		ok   bool
	}{
		{"within the declaration", hook.Options{Failure: gatePhase.Fallback(ask("x")), Capabilities: hook.CanAsk}, true},
		{"within the default", hook.Options{Failure: gatePhase.Fallback(deny("x"))}, true},
		{"beyond the declaration", hook.Options{Failure: gatePhase.Fallback(deny("x")), Capabilities: hook.CanAsk}, false},
		{"beyond NoCapability", hook.Options{Failure: gatePhase.Fallback(deny("x")), Capabilities: hook.NoCapability}, false},
		{"a fallback without an opinion", hook.Options{Failure: gatePhase.Fallback(verdict{}), Capabilities: hook.NoCapability}, true},
	} {
		_, err := newRuntime(t, nil).Install(gateWith(test.opts))
		problem, ok := errors.AsType[*hook.OptionError](err)
		if test.ok != (err == nil) || err != nil && (!ok || problem.Field != "failure") {
			t.Errorf("%s: got %v", test.rule, err)
		}
	}
	grants := func(hook.Origin) hook.Capability { return hook.CanAsk }
	_, err := newRuntime(t, &hook.RuntimeOptions{Grants: grants}).Install(gateWith(hook.Options{Failure: gatePhase.Fallback(deny("x"))}))
	if _, ok := errors.AsType[*hook.OptionError](err); !ok {
		t.Errorf("beyond the origin's grants: got %v, want an *OptionError", err)
	}
}
