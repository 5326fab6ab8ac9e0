package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// ruleFloor is a floor for tests. The input of a call has a field "by" with the name of
// the rule that asks about the call. If the field is "", the call passes. If it is
// "deny", the call is denied. Its patterns have the form TOOL(PREFIX*) and match the
// field "do".
type ruleFloor struct{}

type ruled struct{ By, Do string }

func (ruleFloor) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	var in ruled
	err := call.Decode(&in)
	switch in.By {
	case "":
		return belay.Authorization{}, err
	case "deny":
		return belay.Authorization{Decision: belay.ToolDeny, Reason: "never", By: "zone-6"}, err
	default:
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "it does " + in.Do, By: in.By}, err
	}
}

func (ruleFloor) CheckPattern(pattern string) error {
	switch {
	case pattern == "panic":
		panic("oh no")
	case !strings.HasSuffix(pattern, "*)"):
		return fmt.Errorf("%q does not end in *): write TOOL(BEGINNING*)", pattern)
	default:
		return nil
	}
}

func (ruleFloor) Covers(_ context.Context, pattern string, call belay.ToolCall) (bool, error) {
	var in ruled
	if err := call.Decode(&in); err != nil {
		return false, err
	}
	switch in.Do {
	case "break":
		return true, errors.New("out of order")
	case "burst":
		panic("oh no")
	}
	tool, prefix, _ := strings.Cut(strings.TrimSuffix(pattern, "*)"), "(")
	return tool == call.Tool() && strings.HasPrefix(in.Do, prefix), nil
}

// does returns the input of a call. The rule by asks about this call.
func does(by, what string) string { return fmt.Sprintf(`{"by":%q,"do":%q}`, by, what) }

func pattern(text string) belay.ApprovalScope {
	return belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: text}
}

var forSession = belay.ApprovalScope{Kind: belay.ScopeSession}

// scopeOptions returns options of an agent with the tools act and work, which record that
// they ran. Its approver approves everything and records who asked. The first approval has
// the given scope.
func scopeOptions(d *diary, first belay.ApprovalScope) *belay.Options {
	run := func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		d.notef("ran %s %s", call.Tool, call.Input)
		return belay.Result{Text: "done"}, nil
	}
	var asked atomic.Int64
	return &belay.Options{
		Tools:      []belay.Tool{anyTool("act", run, nil), anyTool("work", run, nil)},
		Authorizer: ruleFloor{},
		Approver: approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) {
			d.notef("%s asks: %s", q.By, q.Reason)
			answer := belay.Decision{Allow: true, By: "ann"}
			if asked.Add(1) == 1 {
				answer.Scope = first
			}
			return answer, nil
		}),
	}
}

// plainFloor is a ruleFloor without patterns.
type plainFloor struct{ belay.Authorizer }

// An approval covers exactly the calls in its scope: calls that match, in the same
// session, about which the same asker asks. It does not override a denial.
//
// SPEC P-09
func TestScopes(t *testing.T) {
	t.Parallel()
	type step struct{ tool, input string }
	for _, test := range []struct {
		rule   string
		scope  belay.ApprovalScope
		change func(*belay.Options)
		then   step // the next call, after the approval of the call of act with "one"
		asker  string
		fault  bool // a diagnostic reports the scope as invalid
	}{
		{"once is for one call", belay.ApprovalScope{}, nil, step{"act", does("r", "one")}, "r", false},
		{"once can be said", belay.ApprovalScope{Kind: "once"}, nil, step{"act", does("r", "one")}, "r", false},
		{"session is for every input", forSession, nil, step{"act", does("r", "two")}, "", false},
		{"session is for one tool", forSession, nil, step{"work", does("r", "one")}, "r", false},
		{"session is for one asker", forSession, nil, step{"act", does("other", "one")}, "other", false},
		{"a pattern covers what it says", pattern("act(o*)"), nil, step{"act", does("r", "or")}, "", false},
		{"a pattern does not cover what it does not say", pattern("act(o*)"), nil, step{"act", does("r", "two")}, "r", false},
		{"a pattern is for one asker", pattern("act(o*)"), nil, step{"act", does("other", "or")}, "other", false},
		{"a pattern that cannot be tried covers nothing", pattern("act(*)"), nil, step{"act", does("r", "break")}, "r", false},
		{"a pattern that panics covers nothing", pattern("act(*)"), nil, step{"act", does("r", "burst")}, "r", false},
		{"a pattern that cannot be read is for one call", pattern("act(o"), nil, step{"act", does("r", "one")}, "r", true},
		{"a pattern whose reading panics is for one call", pattern("panic"), nil, step{"act", does("r", "one")}, "r", true},
		{"a pattern that does not cover its own call is for one call", pattern("act(x*)"), nil, step{"act", does("r", "x")}, "r", true},
		{"a kind that is none is for one call", belay.ApprovalScope{Kind: "for ever"}, nil, step{"act", does("r", "one")}, "r", true},
		{"without a grammar a pattern names tools", pattern("[aw]*"), noGrammar, step{"work", does("r", "two")}, "", false},
		{"without a grammar a pattern over inputs is for one call", pattern("act(o*)"), noGrammar, step{"act", does("r", "one")}, "r", true},
		{"without a grammar a pattern that cannot be read is for one call", pattern("[a"), noGrammar, step{"act", does("r", "one")}, "r", true},
		{"what the floor denies stays denied", forSession, nil, step{"act", does("deny", "one")}, "", false},
		{"what a hook denies stays denied", forSession, func(o *belay.Options) {
			o.Hooks = []hook.Subscription{gateFor("gate", "two", belay.Deny("no"))}
		}, step{"act", does("r", "two")}, "", false},
		{"what a hook asks is not answered by a yes to the floor", forSession, func(o *belay.Options) {
			o.Hooks = []hook.Subscription{gateFor("gate", "two", belay.Ask("it is two"))}
		}, step{"act", does("r", "two")}, "gate", false},
		{"a hook with the name of a rule is another asker", forSession, func(o *belay.Options) {
			o.Hooks = []hook.Subscription{gateFor("r", "two", belay.Ask("it is two"))}
		}, step{"act", does("", "two")}, "r", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			opts := scopeOptions(&d, test.scope)
			if test.change != nil {
				test.change(opts)
			}
			agent, _ := newAgent(t, opts, callWith("act", does("r", "one")), callWith(test.then.tool, test.then.input))
			all := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			if fault := len(all.Diagnostics) > 0; fault != test.fault {
				t.Errorf("the diagnostics are %+v", all.Diagnostics)
			}
			for _, diagnostic := range all.Diagnostics {
				if diagnostic.Code != codes.ApprovalScope || diagnostic.Level != codes.LevelWarn || !strings.Contains(diagnostic.Message, "covers only this call") {
					t.Errorf("the diagnostic is %+v", diagnostic)
				}
			}
			var asked []string
			for _, entry := range d.all() {
				if by, _, ok := strings.Cut(entry, " asks: "); ok {
					asked = append(asked, by)
				}
			}
			want := []string{"r"}
			if test.asker != "" {
				want = append(want, test.asker)
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("who asked (-want +got):\n%s", diff)
			}
			results := storedResults(t, agent.Session("s"))
			if denied := strings.Contains(test.rule, "denied"); results[0].IsError || results[1].IsError != denied || len(results) != 2 {
				t.Errorf("the results are %+v", results)
			}
		})
	}
}

func noGrammar(o *belay.Options) { o.Authorizer = plainFloor{o.Authorizer} }

// gateFor returns a gate that gives the verdict for calls whose field "do" is what.
func gateFor(id, what string, verdict belay.ToolVerdict) hook.Subscription {
	return belay.ToolPre.On(id, func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		var in ruled
		if err := call.Decode(&in); err != nil || in.Do != what {
			return belay.Pass, err
		}
		return verdict, nil
	}, nil)
}

// If several askers ask about a call, the person gets one question with all reasons. If
// the floor is one of the askers, the question is in the name of the floor. A grant
// answers only the asker that it was given for.
//
// SPEC P-09
func TestEveryAskerIsAnswered(t *testing.T) {
	t.Parallel()
	var d diary
	opts := scopeOptions(&d, belay.ApprovalScope{})
	opts.Approver = approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) {
		d.notef("%s asks: %s", q.By, q.Reason)
		return belay.Decision{Allow: true, By: "ann", Scope: forSession}, nil
	})
	opts.Hooks = []hook.Subscription{gateOf("a", belay.Ask("a wonders")), gateOf("b", belay.Ask("b wonders"))}
	step := func(n string) scripted.Step { return callWith("act", does("rule", n)) }
	agent, _ := newAgent(t, opts, step("1"), step("2"), step("3"), step("4"))
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	ran := func(n string) string { return "ran act " + does("rule", n) }
	want := []string{
		"rule asks: it does 1; a: a wonders; b: b wonders", ran("1"), "a asks: a wonders; b: b wonders", ran("2"), "b asks: b wonders", ran("3"), ran("4"),
	}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}

// An approval of a hook's question does not answer the floor, even if the hook has the
// same name as a rule of the floor.
//
// SPEC P-09
func TestHookDoesNotPassForTheFloor(t *testing.T) {
	t.Parallel()
	var d diary
	opts := scopeOptions(&d, forSession)
	opts.Hooks = []hook.Subscription{gateFor("destructive", "look", belay.Ask("may I look?"))}
	agent, _ := newAgent(t, opts, callWith("act", does("", "look")), callWith("act", does("destructive", "remove")))
	all := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if want := []string{"destructive asks: may I look?", "destructive asks: it does remove"}; !slices.Equal(want, slices.DeleteFunc(d.all(), func(e string) bool { return strings.HasPrefix(e, "ran") })) {
		t.Errorf("what happened: %q", d.all())
	}
	for i, event := range all.of(belay.EventApprovalRequested) {
		if event.Approval.Floor != (i == 1) {
			t.Errorf("question %d is said to be the floor's: %t", i, event.Approval.Floor)
		}
	}
}

// A grant is stored in one commit with its decision. If the grant covers a later call,
// the store records an approval by the same person for that call. Then approval.decided
// fires, and approval.request does not.
//
// SPEC P-08, P-09
func TestGrantIsOnRecord(t *testing.T) {
	t.Parallel()
	var d diary
	opts := scopeOptions(&d, forSession)
	inner := memstore.New(nil)
	opts.Store = &watchedStore{inner, func(c *belay.Commit) {
		for _, a := range c.Approvals {
			if a.Decided != nil {
				d.notef("stored %s with %d grants", a.Decided.By, len(c.State.Grants))
			}
		}
	}}
	opts.Hooks = []hook.Subscription{
		belay.ApprovalRequest.On("request", func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
			d.notef("request")
			return belay.ApprovalVerdict{}, nil
		}, nil),
		belay.ApprovalDecided.On("decided", func(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
			_, with, _ := strings.Cut(o.Reason(), " approval ap-")
			d.notef("%s by %s, scope %q, names an approval: %t", o.Decision(), o.By(), o.Scope(), with != "")
			return belay.Note{}, nil
		}, nil),
	}
	agent, _ := newAgent(t, opts, callWith("act", does("r", "one")), callWith("act", does("r", "two")))
	session := agent.Session("s")
	all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	want := []string{
		"request", "r asks: it does one", `allow by ann, scope "session", names an approval: false`, "stored ann with 1 grants",
		"ran act " + does("r", "one"), "stored ann with 1 grants",
		`allow by ann, scope "", names an approval: true`, "stored ann with 1 grants", "ran act " + does("r", "two"), "stored ann with 1 grants",
	}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	asked, decided := all.of(belay.EventApprovalRequested), all.of(belay.EventApprovalDecided)
	if len(asked) != 2 || len(decided) != 2 {
		t.Fatalf("there were events for %d questions and %d decisions, want 2 each", len(asked), len(decided))
	}
	given := decided[0].Approval
	grants, err := session.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("the grants are %+v, %v", grants, err)
	}
	if g := grants[0]; g.Time.IsZero() || g != (belay.Grant{Approval: given.ID, Asker: "r", Floor: true, Tool: "act", By: "ann", Time: g.Time}) {
		t.Errorf("the grant is %+v", g)
	}
	i := 0
	for a, err := range inner.Approvals(t.Context(), belay.ApprovalFilter{Session: "s"}) {
		if err != nil || a.Decided == nil || !a.Decided.Allow || a.Decided.By != "ann" || a.By != "r" || a.Decided.Hash != a.Hash {
			t.Errorf("approval %d is %+v, %v", i, a, err)
		}
		if i++; i == 2 && (a.Decided.Reason != "allowed before, with approval "+given.ID || a.Decided.Scope != belay.ApprovalScope{}) {
			t.Errorf("the second was decided as %+v", a.Decided)
		}
	}
	if i != 2 {
		t.Errorf("%d approvals are on record, not 2", i)
	}
}

// If another process decides about a parked turn, its decision also creates a grant. The
// grant applies to later turns in any process until somebody revokes it. A fork does not
// have it.
//
// SPEC P-08, P-09
func TestGrantOfAParkedTurn(t *testing.T) {
	t.Parallel()
	var d diary
	store := memstore.New(nil)
	opts := scopeOptions(&d, belay.ApprovalScope{})
	opts.Store, opts.OnAsk, opts.Approver = store, belay.AskPark, nil
	first, _ := newAgent(t, opts, callWith("act", does("r", "one")))
	parked := takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked)
	q := parked.Waits[0].Approval
	yes := belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann", Scope: pattern("act(o*)")}
	if a, err := store.Decide(t.Context(), yes); err != nil || a.Decided.Scope != yes.Scope {
		t.Fatalf("decided as %+v, %v", a.Decided, err)
	}

	second, _ := newAgent(t, opts, says("done"), callWith("act", does("r", "or")), says("done"), callWith("act", does("r", "or")))
	session := second.Session("s")
	takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
	takeTurn(t, session.Run(t.Context(), "and again"), belay.EndTurn)
	want := []string{"ran act " + does("r", "one"), "ran act " + does("r", "or")}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}

	fork, err := session.Fork(t.Context(), "fork", 2)
	if err != nil {
		t.Fatal(err)
	}
	if grants, err := fork.Grants(t.Context()); err != nil || len(grants) != 0 {
		t.Errorf("the fork has the grants %+v, %v", grants, err)
	}
	if err := session.Revoke(t.Context(), "ap-other"); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("taking back what was not given: %v", err)
	}
	if err := session.Revoke(t.Context(), q.ID); err != nil {
		t.Errorf("taking back: %v", err)
	}
	takeTurn(t, session.Run(t.Context(), "and again"), belay.EndParked)
	if len(d.all()) != 2 {
		t.Errorf("what was taken back still holds: %v", d.all())
	}

	// Reading a parked session or revoking a grant does not resume the turn.
	if grants, err := session.Grants(t.Context()); err != nil || len(grants) != 0 {
		t.Errorf("after taking back the grants are %+v, %v", grants, err)
	}
	third, _ := newAgent(t, opts)
	takeTurn(t, third.Session("s").Resume(t.Context()), belay.EndParked)
}

// Decide rejects an invalid scope. The error says what to write instead. The approval
// stays pending.
//
// SPEC P-09, P-18
func TestScopeThatCannotStand(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			var d diary
			opts := scopeOptions(&d, belay.ApprovalScope{})
			opts.Store, opts.OnAsk, opts.Approver = store(), belay.AskPark, nil
			agent, _ := newAgent(t, opts, callWith("act", does("r", "one")))
			session := agent.Session("s")
			q := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked).Waits[0].Approval
			for _, test := range []struct {
				rule  string
				allow bool
				scope belay.ApprovalScope
				says  string
			}{
				{"a pattern that cannot be read", true, pattern("act(o"), "write TOOL(BEGINNING*)"},
				{"a pattern whose reading panics", true, pattern("panic"), "panicked"},
				{"no pattern", true, belay.ApprovalScope{Kind: belay.ScopePattern}, "TOOL(BEGINNING*)"},
				{"a kind that is none", true, belay.ApprovalScope{Kind: "for ever"}, "use once, session or pattern"},
				{"a pattern without its kind", true, belay.ApprovalScope{Pattern: "act(o*)"}, "remove the pattern"},
				{"a refusal for the session", false, forSession, "leave Scope empty"},
				{"a pattern with a secret in it", true, pattern("act(TOKEN=hunter2 make*)"), "write * instead"},
			} {
				_, err := agent.Decide(t.Context(), belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: test.allow, By: "ann", Scope: test.scope})
				if !errors.Is(err, belay.ErrScope) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), q.ID) {
					t.Errorf("%s: %v", test.rule, err)
				}
			}
			if got := fmt.Sprint(belay.ApprovalScope{}, " ", forSession, " ", pattern("act(*)")); got != "once session act(*)" {
				t.Errorf("scopes in words: %s", got)
			}
			settleApproval(t, agent, q, true)
			takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
		})
	}
}

// If a turn waits for several answers, an approval with a scope also answers the other
// questions that it covers. Belay withdraws these questions. Earlier decisions do not
// change.
//
// SPEC P-09, P-10
func TestOneYesAnswersTheOthersThatWait(t *testing.T) {
	t.Parallel()
	var d diary
	opts := scopeOptions(&d, belay.ApprovalScope{})
	refused, asked, withdrawn := make(chan struct{}), make(chan struct{}, 2), make(chan struct{}, 2)
	opts.Hooks = []hook.Subscription{belay.ApprovalDecided.On("decided", func(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
		if o.Reason() == "not this one" {
			close(refused)
		}
		return belay.Note{}, nil
	}, nil)}
	opts.Approver = approverFunc(func(ctx context.Context, q belay.Question) (belay.Decision, error) {
		switch {
		case strings.Contains(string(q.Input), "first"):
			<-refused
			<-asked
			<-asked
			return belay.Decision{Allow: true, By: "ann", Scope: forSession}, nil
		case strings.Contains(string(q.Input), "no"):
			return belay.Decision{By: "ann", Reason: "not this one"}, nil
		case q.By == "other": // the approval with the scope does not cover this question
			<-withdrawn
			<-withdrawn
			if ctx.Err() != nil {
				t.Error("the question of another asker was withdrawn")
			}
			return belay.Decision{By: "ann", Reason: "nor this one"}, nil
		default:
			asked <- struct{}{}
			<-ctx.Done()
			withdrawn <- struct{}{}
			return belay.Decision{}, nil // the question was withdrawn, so there is no decision
		}
	})
	agent, _ := newAgent(t, opts, scripted.Step{Calls: []scripted.Call{
		{Tool: "act", Input: does("r", "one")},
		{Tool: "act", Input: does("r", "first")},
		{Tool: "act", Input: does("r", "no")},
		{Tool: "act", Input: does("other", "one")},
		{Tool: "act", Input: does("r", "two")},
	}})
	session := agent.Session("s")
	all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	var got []string
	for _, r := range storedResults(t, session) {
		got = append(got, string(r.Class))
	}
	if want := []string{"", "", "denied", "denied", ""}; !slices.Equal(got, want) {
		t.Errorf("the results are %q, want %q", got, want)
	}
	if decided := all.of(belay.EventApprovalDecided); len(decided) != 5 {
		t.Errorf("there were events for %d decisions, want 5", len(decided))
	}
	if grants, err := session.Grants(t.Context()); err != nil || len(grants) != 1 {
		t.Errorf("the grants are %+v, %v", grants, err)
	}
}

// A session has at most 64 grants. If there are more, Belay drops the oldest grant, and
// its calls need approval again. Belay does not store a second grant for the same calls.
//
// SPEC P-09
func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	var d diary
	opts := scopeOptions(&d, belay.ApprovalScope{})
	opts.Approver = approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) {
		d.notef("asked about %s", q.Input)
		var what string
		if _, err := fmt.Sscanf(string(q.Input), `{"by":"r","do":%q}`, &what); err != nil {
			return belay.Decision{}, err
		}
		return belay.Decision{Allow: true, By: "ann", Scope: pattern("act(" + what + "*)")}, nil
	})
	opts.Limits.Steps = 200
	var steps []scripted.Step
	for i := range 65 {
		steps = append(steps, callWith("act", does("r", fmt.Sprintf("%03d", i))))
	}
	steps = append(steps, callWith("act", does("r", "064")), callWith("act", does("r", "001")), callWith("act", does("r", "000")))
	agent, _ := newAgent(t, opts, steps...)
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	asked := slices.DeleteFunc(d.all(), func(entry string) bool { return strings.HasPrefix(entry, "ran") })
	if len(asked) != 66 || asked[65] != "asked about "+does("r", "000") {
		t.Errorf("%d questions were asked, the last %q", len(asked), asked[len(asked)-1])
	}
	grants, err := session.Grants(t.Context())
	if err != nil || len(grants) != 64 || grants[0].Pattern != "act(002*)" || grants[63].Pattern != "act(000*)" {
		t.Errorf("there are %d grants, %v: %+v", len(grants), err, grants)
	}
}

// If two approvals would give the same grant, only the first grant is stored. Revoking it
// is enough.
//
// SPEC P-09
func TestGrantsThatCoverTheSame(t *testing.T) {
	t.Parallel()
	var d diary
	opts := scopeOptions(&d, belay.ApprovalScope{})
	opts.OnAsk, opts.Approver = belay.AskPark, nil
	agent, _ := newAgent(t, opts, scripted.Step{Calls: []scripted.Call{{Tool: "act", Input: does("r", "one")}, {Tool: "act", Input: does("r", "two")}}}, says("done"),
		callWith("act", does("r", "three")))
	session := agent.Session("s")
	for _, q := range takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked).Waits {
		if _, err := agent.Decide(t.Context(), belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann", Scope: forSession}); err != nil {
			t.Fatal(err)
		}
	}
	takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
	grants, err := session.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("the grants are %+v, %v", grants, err)
	}
	if err := session.Revoke(t.Context(), grants[0].Approval); err != nil {
		t.Fatal(err)
	}
	takeTurn(t, session.Run(t.Context(), "again"), belay.EndParked)
}
