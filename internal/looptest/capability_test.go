package looptest_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/policy"
)

// needing is an answer with the one capability that it needs.
type needing struct {
	rule   string
	phase  phaseCase
	answer any
	needs  hook.Capability
}

// answersByCapability lists answers that only some phases accept.
func answersByCapability() []needing {
	note := belay.Note{}
	aside := belay.Aside{Context: belay.Tell("told")}
	text := "text"
	return []needing{
		{"a denied prompt needs block", caseOf(belay.UserPromptSubmit), belay.DenyPrompt("no"), hook.CanBlock},
		{"a rewritten prompt needs rewrite_prompt", caseOf(belay.UserPromptSubmit), belay.RewritePrompt("other"), hook.CanRewritePrompt},
		{"an answer in the model's place needs answer", caseOf(belay.UserPromptSubmit), belay.AnswerPrompt("answer"), hook.CanAnswer},
		{"context at a prompt needs context", caseOf(belay.UserPromptSubmit), belay.PromptVerdict{Aside: aside}, hook.CanAddContext},
		{"a policy needs policy", caseOf(belay.TurnPrePolicy), belay.SetPolicy(policy.And("k").Set(true)), hook.CanSetPolicy},
		{"context besides a policy needs context", caseOf(belay.TurnPrePolicy), belay.TurnPolicy{Aside: aside}, hook.CanAddContext},
		{"prompt context needs context", caseOf(belay.TurnPrePromptContext), belay.PromptContext{Entries: []belay.ContextEntry{{Text: text}}}, hook.CanAddContext},
		{"prompt context after preflight needs context", caseOf(belay.TurnPostPreflightPromptContext), belay.PromptContext{Entries: []belay.ContextEntry{{Text: text}}}, hook.CanAddContext},
		{"a tool bundle needs tools", caseOf(belay.TurnPreToolMaterialization), belay.ToolBundles{Bundles: []belay.ToolBundle{{ID: "b"}}}, hook.CanAddTools},
		{"context besides tools needs context", caseOf(belay.TurnPreToolMaterialization), belay.ToolBundles{Aside: aside}, hook.CanAddContext},
		{"a prompt section needs sections", caseOf(belay.TurnPrePromptCompile), belay.PromptSections{Sections: []belay.PromptSection{{ID: "s", Body: text}}}, hook.CanAddSections},
		{"context besides sections needs context", caseOf(belay.TurnPrePromptCompile), belay.PromptSections{Aside: aside}, hook.CanAddContext},
		{"asking about a tool call needs ask", caseOf(belay.ToolPre), belay.Ask("may it?"), hook.CanAsk},
		{"denying a tool call needs block", caseOf(belay.ToolPre), belay.Deny("no"), hook.CanBlock},
		{"halting needs block", caseOf(belay.ToolPre), belay.Halt("no"), hook.CanBlock},
		{"a rewritten tool input needs rewrite_input", caseOf(belay.ToolPre), belay.ToolVerdict{Input: []byte(`{}`)}, hook.CanRewriteInput},
		{"context at a tool call needs context", caseOf(belay.ToolPre), belay.ToolVerdict{Aside: aside}, hook.CanAddContext},
		{"allowing in a person's place needs approve", caseOf(belay.ApprovalRequest), belay.Allow("fine"), hook.CanApprove},
		{"denying in a person's place needs approve", caseOf(belay.ApprovalRequest), belay.DenyApproval("no"), hook.CanApprove},
		{"context at an approval needs context", caseOf(belay.ApprovalRequest), belay.ApprovalVerdict{Aside: aside}, hook.CanAddContext},
		{"a rewritten result needs rewrite_output", caseOf(belay.ToolPost), belay.RewriteResult("other"), hook.CanRewriteOutput},
		{"a reminder after a tool needs context", caseOf(belay.ToolPost), belay.ToolReaction{Aside: aside}, hook.CanAddContext},
		{"denying a child run needs block", caseOf(belay.SubagentStart), belay.DenySubagent("no"), hook.CanBlock},
		{"context at a child run needs context", caseOf(belay.SubagentStart), belay.SubagentVerdict{Aside: aside}, hook.CanAddContext},
		{"going on needs block", caseOf(belay.TurnStop), belay.Continue("more"), hook.CanBlock},
		{"context at the end needs context", caseOf(belay.TurnStop), belay.StopVerdict{Aside: aside}, hook.CanAddContext},
		{"instructions for a summary need context", caseOf(belay.TurnPreCompaction), belay.CompactionAdvice{Instructions: belay.Tell("keep it")}, hook.CanAddContext},
		{"a reminder at the start needs context", caseOf(belay.SessionStart), belay.Aside{Note: note, Context: belay.Tell("told")}, hook.CanAddContext},
		{"a reminder in a request needs context", caseOf(belay.ModelPre), aside, hook.CanAddContext},
	}
}

// everyAnswerByCapability adds the answers that every phase accepts: output and audit notes
// need CanAudit, and jobs need CanSchedule.
func everyAnswerByCapability() []needing {
	all := answersByCapability()
	for _, p := range everyPhase() {
		for _, besides := range []struct {
			rule  string
			note  belay.Note
			needs hook.Capability
		}{
			{"output needs audit", belay.Note{Output: "shown"}, hook.CanAudit},
			{"an audit note needs audit", belay.Note{Audit: []hook.Audit{{Code: "c"}}}, hook.CanAudit},
			{"a job needs jobs", belay.Note{Jobs: []hook.Job{{Handler: "job", Key: "k"}}}, hook.CanSchedule},
		} {
			all = append(all, needing{besides.rule, p, withNote(p, besides.note), besides.needs})
		}
	}
	return all
}

// SPEC H-15
func TestEachAnswerNeedsItsCapability(t *testing.T) {
	t.Parallel()
	covered := map[string]hook.Capability{}
	for _, test := range everyAnswerByCapability() {
		covered[test.phase.Name()] |= test.needs
		t.Run(test.phase.Name()+": "+test.rule, func(t *testing.T) {
			t.Parallel()
			in := fullInput(t, test.phase)
			with := test.needs | hook.CanAudit
			run, _, _ := answerWith(t, test.phase, in, test.answer, with)
			if run.State != hook.Completed || len(run.Diagnostics) > 0 {
				t.Errorf("with %s it is %s %v, want completed", with, run.State, run.Diagnostics)
			}
			without := test.phase.Info().Capabilities &^ test.needs
			run, outcome, err := answerWith(t, test.phase, in, test.answer, without)
			if err != nil || run.State != hook.Failed || run.Class != codes.CapabilityMissing {
				t.Errorf("without %s it is %s %s, want failed with %s", test.needs, run.State, run.Class, codes.CapabilityMissing)
			}
			if stands(test) {
				return
			}
			if len(run.Contributed) > 0 || len(run.Audit) > 0 || outcome.by != "" || len(outcome.rewriters) > 0 ||
				!reflect.ValueOf(outcome.out).IsZero() || outcome.in != in {
				t.Errorf("without %s, something of the answer is used: %+v", test.needs, outcome)
			}
		})
	}
	for _, p := range belay.Phases() {
		if left := p.Info().Capabilities &^ covered[p.Name()]; left != 0 {
			t.Errorf("%s takes %s, which no case here tries", p.Name(), left)
		}
	}
}

// If one part of an answer needs a capability that the subscription does not have, the
// runtime rejects the whole answer.
//
// SPEC H-15
func TestAnAnswerBeyondItsCapabilitiesIsRefusedWhole(t *testing.T) {
	t.Parallel()
	for _, test := range answersByCapability() {
		if test.needs == hook.CanAddContext {
			continue
		}
		t.Run(test.phase.Name()+": "+test.rule, func(t *testing.T) {
			t.Parallel()
			answer := reflect.New(reflect.TypeOf(test.answer)).Elem()
			answer.Set(reflect.ValueOf(test.answer))
			answer.FieldByName("Context").Set(reflect.ValueOf(belay.Tell("told besides")))
			run, outcome, err := answerWith(t, test.phase, fullInput(t, test.phase), answer.Interface(), test.phase.Info().Capabilities&^test.needs)
			if err != nil || run.Class != codes.CapabilityMissing || !stands(test) && !reflect.ValueOf(outcome.out).IsZero() {
				t.Errorf("it is %s and merges to %+v, want nothing", run.Class, outcome.out)
			}
		})
	}
}

// stands reports whether the answer is a denial that counts even without the capability
// CanBlock.
func stands(n needing) bool {
	return n.needs == hook.CanBlock && n.phase.Info().Failure == hook.Closed
}

// If an answer needs a capability that the subscription does not have, a denial in the
// answer still counts, with its reason. The runtime drops all other parts of the answer.
//
// SPEC H-15, C-03
func TestADenialStandsWithoutTheRestOfItsAnswer(t *testing.T) {
	t.Parallel()
	gates := map[string]bool{}
	for _, test := range answersByCapability() {
		if test.needs != hook.CanBlock && test.needs != hook.CanApprove || test.rule == "allowing in a person's place needs approve" {
			continue
		}
		gates[test.phase.Name()] = true
		t.Run(test.phase.Name()+": "+test.rule, func(t *testing.T) {
			t.Parallel()
			answer := reflect.New(reflect.TypeOf(test.answer)).Elem()
			answer.Set(reflect.ValueOf(test.answer))
			answer.FieldByName("Context").Set(reflect.ValueOf(belay.Tell("told besides")))
			answer.FieldByName("Output").SetString("shown besides")
			if input := answer.FieldByName("Input"); input.IsValid() {
				input.SetBytes([]byte(`{"rewritten": true}`))
			}
			allowed := []hook.Capability{test.needs}
			if stands(test) {
				allowed = append(allowed, hook.CanAudit)
			}
			for _, capabilities := range allowed {
				in := fullInput(t, test.phase)
				run, outcome, err := answerWith(t, test.phase, in, answer.Interface(), capabilities)
				if err != nil || run.Class != codes.CapabilityMissing || !reflect.DeepEqual(outcome.out, test.answer) || outcome.by != "tried" || outcome.in != in {
					t.Errorf("with %s it is %s and merges to %+v, want %+v", capabilities, run.Class, outcome.out, test.answer)
				}
			}
		})
	}
	for _, p := range belay.Phases() {
		if p.Info().Kind == hook.Gate && !gates[p.Name()] {
			t.Errorf("%s is a gate, and its denial was not tried", p.Name())
		}
	}
}

// No phase grants the capabilities to rewrite, to answer or to approve by default.
//
// SPEC H-15
func TestExceptionalCapabilitiesMustBeNamed(t *testing.T) {
	t.Parallel()
	exceptional := hook.CanRewriteInput | hook.CanRewriteOutput | hook.CanRewritePrompt | hook.CanAnswer | hook.CanApprove
	tried := hook.Capability(0)
	for _, test := range answersByCapability() {
		run, _, _ := answerWith(t, test.phase, fullInput(t, test.phase), test.answer, 0)
		if missing := run.Class == codes.CapabilityMissing; missing != exceptional.Has(test.needs) {
			t.Errorf("%s: %s: by default the run is %s %s", test.phase.Name(), test.rule, run.State, run.Class)
		}
		tried |= test.needs & exceptional
	}
	if tried != exceptional {
		t.Errorf("tried only %s", tried)
	}
}

// answerWith installs one subscription and dispatches to it. If capabilities is 0, the
// subscription has the phase's default. It fails open, so that the outcome shows which
// parts of the answer were used.
func answerWith(t *testing.T, p phaseCase, in, answer any, capabilities hook.Capability) (hook.Run, anyOutcome, error) {
	t.Helper()
	journal := hook.NewMemoryJournal(16)
	rt, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.InstallJobs(hook.JobHandler{Name: "job", Run: func(context.Context, hook.Job) ([]hook.Audit, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	sub := p.on("tried", func(context.Context, any) (any, error) { return answer, nil }, &hook.Options{Capabilities: capabilities, Failure: hook.Open})
	if _, err := rt.Install(sub); err != nil {
		t.Fatal(err)
	}
	snapshot := rt.Snapshot()
	outcome, err := p.dispatch(t.Context(), snapshot, in)
	if err := snapshot.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for run := range journal.List(t.Context(), hook.Filter{}) {
		return run, outcome, err
	}
	t.Fatal("the run left no record")
	return hook.Run{}, outcome, err
}

// A hook of a project must not rewrite, answer or approve, even if it declares these
// capabilities. The person who runs Belay must grant each of them by name.
//
// SPEC H-15
func TestOriginsLimitWhatMayBeDeclared(t *testing.T) {
	t.Parallel()
	project := hook.Origin{Kind: hook.OriginProject, File: "hooks/a.yaml", Line: 4}
	for _, test := range answersByCapability() {
		rt, err := hook.NewRuntime(belay.Phases(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sub := test.phase.on("theirs", func(context.Context, any) (any, error) { return nil, nil },
			&hook.Options{Origin: project, Capabilities: test.needs})
		_, err = rt.Install(sub)
		mild := hook.CanBlock | hook.CanAsk | hook.CanAddContext
		if granted := mild.Has(test.needs); granted != (err == nil) {
			t.Errorf("%s: %s: a project declares it and gets %v", test.phase.Name(), test.rule, err)
		}
	}
	trial := hooktest.Try(t, belay.ToolPre, belay.ToolPre.On("theirs", answering(belay.ToolPre, belay.Deny("not here")), &hook.Options{Origin: project}),
		hooktest.Input(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": {}}`), nil)
	trial.Denied("not here")
}
