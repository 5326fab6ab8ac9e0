package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
)

// runsTool returns a directive that runs a tool. The text after its name is the input. It
// replies with the class and the text of the result, and with the error if there is one.
func runsTool(name, tool string) belay.Directive {
	return directive(name, func(use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
		result, err := use.Controls.RunTool(tool, json.RawMessage(use.Rest))
		said := string(result.Class) + ": " + result.Text
		if err != nil {
			said += " error: " + err.Error()
		}
		return belay.DirectiveOutcome{Reply: &belay.Reply{Text: said}}, nil
	})
}

// A tool call of a directive passes the same checks as a call of the model: interceptors,
// gates, rewriters, the floor, approvals, and hooks of tool.post.
//
// SPEC D-04
func TestDirectivesRunToolsThroughTheFloor(t *testing.T) {
	t.Parallel()
	approver := func(allow bool) belay.Approver {
		return approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
			return belay.Decision{Allow: allow, By: "ann", Reason: "as she likes"}, nil
		})
	}
	ask := gateOf("ask", belay.Ask("is it right?"))
	for rule, test := range map[string]struct {
		opts   belay.Options
		input  string
		tool   string // defaults to act
		want   []string
		ran    bool
		events []belay.EventKind
	}{
		"a call that nobody objects to":  {input: `{"a":1}`, want: []string{`: {"a":1}`}, ran: true},
		"no input is an empty object":    {want: []string{": {}"}, ran: true},
		"an input that is not an object": {input: "[1]", want: []string{"invalid: ", "not a JSON object"}},
		"an unknown tool":                {tool: "act2", want: []string{`not_found: There is no tool "act2"`, "act"}},
		"a tool that is out of scope":    {opts: belay.Options{Scope: []string{"other"}}, want: []string{": "}},
		"a gate that denies":             {opts: belay.Options{Hooks: []hook.Subscription{gateOf("no", belay.Deny("not today"))}}, want: []string{"denied: ", "not today"}},
		"a gate that ends the turn":      {opts: belay.Options{Hooks: []hook.Subscription{gateOf("no", belay.Halt("stop it"))}}},
		"a rewriter":                     {opts: belay.Options{Hooks: []hook.Subscription{rewriterOf("other", `{"b":2}`)}}, input: `{"a":1}`, want: []string{`: {"b":2}`}, ran: true},
		"a floor that denies": {opts: belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
			return belay.Authorization{Decision: belay.ToolDeny, Reason: "zone 4"}, nil
		})}, want: []string{"denied: ", "zone 4"}},
		"an approval that is given":        {opts: belay.Options{Hooks: []hook.Subscription{ask}, Approver: approver(true)}, want: []string{": {}"}, ran: true, events: []belay.EventKind{belay.EventApprovalRequested, belay.EventApprovalDecided}},
		"an approval that is denied":       {opts: belay.Options{Hooks: []hook.Subscription{ask}, Approver: approver(false)}, want: []string{"denied: ", "as she likes"}, events: []belay.EventKind{belay.EventApprovalRequested, belay.EventApprovalDecided}},
		"an approval that would park":      {opts: belay.Options{Hooks: []hook.Subscription{ask}, OnAsk: belay.AskPark}, want: []string{"denied: ", "error: run tool \"act\": ask asks for approval (is it right?)", "AskWait"}, events: []belay.EventKind{belay.EventApprovalRequested, belay.EventApprovalDecided}},
		"an approval that nobody can give": {opts: belay.Options{Hooks: []hook.Subscription{ask}, OnAsk: belay.AskDeny}, want: []string{"denied: ", "is it right?"}, events: []belay.EventKind{belay.EventApprovalRequested, belay.EventApprovalDecided}},
		"a tool that parks":                {tool: "park", want: []string{"error: run tool \"park\": the tool waits for \"godot\""}},
		"a hook that replaces the result": {opts: belay.Options{Hooks: []hook.Subscription{belay.ToolPost.On("hide", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
			hidden := "hidden"
			return belay.ToolReaction{Result: &hidden}, nil
		}, &hook.Options{Capabilities: hook.CanRewriteOutput})}}, want: []string{": hidden"}, ran: true},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			store := memstore.New(nil)
			tool := test.tool
			if tool == "" {
				tool = "act"
			}
			opts := test.opts
			opts.Store = store
			opts.Directives = []belay.Directive{runsTool("do", tool)}
			opts.Tools = []belay.Tool{
				anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
					d.notef("ran %s", call.Input)
					return belay.Result{Text: string(call.Input)}, nil
				}, nil),
				anyTool("park", func(context.Context, *belay.Invocation) (belay.Result, error) {
					return belay.Result{}, belay.Park("godot")
				}, nil),
				echoTool("other"),
			}
			opts.Hooks = append(slices.Clone(opts.Hooks),
				belay.ToolDenied.On("audit", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
					d.notef("denied %s %s", c.Tool(), c.Class())
					return belay.Note{}, nil
				}, nil))
			agent, model := newAgent(t, &opts)
			s := agent.Session("s")
			reason := belay.EndTurn
			if test.want == nil {
				reason = belay.EndBlocked
			}
			turn := takeTurn(t, s.Run(t.Context(), "/do "+test.input), reason)
			for _, want := range test.want {
				if !strings.Contains(turn.Text, want) {
					t.Errorf("the directive said %q, want %q", turn.Text, want)
				}
			}
			if test.want == nil && (turn.By != "no" || turn.Why != "stop it" || len(transcript(t, s)) > 0) {
				t.Errorf("the turn ended by %q (%s), with %d messages", turn.By, turn.Why, len(transcript(t, s)))
			}
			ran := slices.ContainsFunc(d.all(), func(e string) bool { return strings.HasPrefix(e, "ran ") })
			denied := slices.ContainsFunc(d.all(), func(e string) bool { return strings.HasPrefix(e, "denied ") })
			if ran != test.ran || denied == (test.ran || tool == "park") {
				t.Errorf("what happened: %q", d.all())
			}
			wantEqual(t, "the events of the call", []int{len(turn.of(belay.EventToolUse)), len(turn.of(belay.EventToolUseResult))}, []int{1, 1})
			var asked []belay.EventKind
			for _, e := range turn.events {
				if e.Approval != nil {
					asked = append(asked, e.Kind)
				}
			}
			wantEqual(t, "the events of the approval", asked, test.events)
			wantEqual(t, "the model's requests", len(model.Requests()), 0)
			wantEqual(t, "the stored calls", len(storedCalls(t, s)), 0)
			for range store.Approvals(t.Context(), belay.ApprovalFilter{}) {
				t.Error("an approval was stored")
			}
		})
	}
}

// A directive's tool call is not stored before the message is stored. If the process dies
// between the tool and the reply, the store has no trace of the call.
//
// SPEC D-04
func TestNothingOfADirectivesCallIsStoredBeforeItsMessage(t *testing.T) {
	t.Parallel()
	var d diary
	commits := 0
	store := &watchedStore{Store: memstore.New(nil), stored: func(*belay.Commit) { commits++ }}
	agent, _ := newAgent(t, &belay.Options{
		Store: store,
		Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
			return belay.Decision{Allow: true, By: "ann"}, nil
		}),
		Hooks: []hook.Subscription{gateOf("ask", belay.Ask("sure?")), belay.ToolPost.On("slow", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
			d.notef("after the tool: %d commits", commits)
			return belay.ToolReaction{}, nil
		}, nil)},
		Tools: []belay.Tool{anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			d.notef("in the tool: %d commits", commits)
			return belay.Result{Text: "done"}, call.Controls().Append(belay.Text("the tool adds this"))
		}, nil)},
		Directives: []belay.Directive{withControls("act", func(_ context.Context, c *belay.Controls) error {
			_, err := c.RunTool("act", nil)
			d.notef("in the directive: %d commits", commits)
			return err
		})},
	}, says("fine"))
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "/act"), belay.EndTurn)
	wantEqual(t, "what happened", d.all(), []string{"in the tool: 0 commits", "after the tool: 0 commits", "in the directive: 0 commits"})
	wantOutline(t, transcript(t, s), "injected: the tool adds this", "user: [invoked_extension__hook_act]", "assistant: fine")
	var tool error
	other, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		_, err := call.Controls().RunTool("act", nil)
		tool = errors.Join(err, call.Controls().AddSection(belay.PromptSection{ID: "x"}))
		return belay.Result{}, nil
	}, nil)}}, calls("act"))
	takeTurn(t, other.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if tool == nil || !strings.Contains(tool.Error(), "a tool cannot run another one") || !strings.Contains(tool.Error(), "already built") {
		t.Errorf("a tool that runs a tool gets %v", tool)
	}
}

// A directive adds a section to the prompt of its turn, with the limits and the order of
// the sections of hooks. The section stays if the turn is parked and resumed. The next
// turn does not have it.
//
// SPEC D-04
func TestDirectivesAddSectionsForOneTurn(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var manifests [][]belay.ManifestPart
	opts := &belay.Options{
		Store: store, OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("act")},
		Hooks: []hook.Subscription{
			gateOf("ask", belay.Ask("sure?")),
			belay.TurnPrePromptCompile.On("house", func(context.Context, belay.TurnSoFar) (belay.PromptSections, error) {
				return belay.PromptSections{Sections: []belay.PromptSection{{ID: "rules", Title: "Rules", Body: "Be kind."}, {ID: "last", Body: "The end.", Order: 9}}}, nil
			}, nil),
			belay.TurnPostPromptCompile.On("look", func(_ context.Context, m belay.PromptManifest) (belay.Note, error) {
				manifests = append(manifests, slices.DeleteFunc(m.Parts(), func(p belay.ManifestPart) bool { return p.Kind != "section" }))
				return belay.Note{}, nil
			}, nil),
		},
		Directives: []belay.Directive{withControls("brief", func(_ context.Context, c *belay.Controls) error {
			return errors.Join(
				c.AddSection(belay.PromptSection{ID: "brief", Body: "Use few words.", Budget: 7}),
				c.AddSection(belay.PromptSection{ID: "rules", Title: "Others", Body: "Be brief."}),
			)
		}), withControls("bad", func(_ context.Context, c *belay.Controls) error { return c.AddSection(belay.PromptSection{Body: "x"}) })},
	}
	agent, model := newAgent(t, opts, calls("act"), says("one"), says("two"))
	s := agent.Session("s")
	parked := takeTurn(t, s.Run(t.Context(), "/brief go"), belay.EndParked)
	wantEqual(t, "the diagnostics", len(parked.Diagnostics), 1)
	if _, err := agent.Decide(t.Context(), belay.Decision{Approval: parked.Waits[0].ID, Hash: parked.Waits[0].Hash, Allow: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	takeTurn(t, s.Run(t.Context(), "and now"), belay.EndTurn)
	const with, without = "## Rules\n\nBe kind.\n\nBe brief.\n\nUse few\n\nThe end.", "## Rules\n\nBe kind.\n\nThe end."
	for i, want := range []string{with, with, without} {
		if got := model.Requests()[i].System; !strings.HasSuffix(got, want) {
			t.Errorf("request %d has the prompt %q, want %q", i, got, want)
		}
	}
	var owners []string
	for _, p := range manifests[0] {
		owners = append(owners, p.ID+" "+p.From)
	}
	wantEqual(t, "the owners in the manifest", owners, []string{"rules house,/brief", "brief /brief", "last house"})
	wantEqual(t, "the sections of the next turn", len(manifests[1]), 2)
	if _, err := s.Turn(t.Context(), "/bad"); err == nil || !strings.Contains(err.Error(), "has no ID") {
		t.Errorf("a section without an id: %v", err)
	}
}

// A directive can answer with several parts and several messages.
//
// SPEC D-04
func TestRepliesWithPartsAndMessages(t *testing.T) {
	t.Parallel()
	image := belay.Part{Type: belay.PartMedia, Media: &belay.Media{MIME: "image/png", Data: []byte("png")}}
	for rule, test := range map[string]struct {
		reply belay.Reply
		want  []string // the stored messages: text and number of parts
		text  string
		fails string
	}{
		"a text":                {reply: belay.Reply{Text: "a"}, want: []string{"a 1"}, text: "a"},
		"nothing":               {want: []string{"(no answer) 1"}},
		"a text and an image":   {reply: belay.Reply{Text: "a", Parts: []belay.Part{image}}, want: []string{"a 2"}, text: "a"},
		"only parts":            {reply: belay.Reply{Parts: []belay.Part{belay.Text("a"), image}}, want: []string{"a 2"}, text: "a"},
		"several messages":      {reply: belay.Reply{Text: "a", More: [][]belay.Part{{belay.Text("b"), image}, nil, {belay.Text("c")}}}, want: []string{"a 1", "b 2", "c 1"}, text: "a\n\nb\n\nc"},
		"only further messages": {reply: belay.Reply{More: [][]belay.Part{{belay.Text("b")}}}, want: []string{"b 1"}, text: "b"},
		"a part that is broken": {reply: belay.Reply{Text: "a", More: [][]belay.Part{{{Type: belay.PartMedia}}}}, fails: "message 2 of its reply"},
		"a part that is a call": {reply: belay.Reply{Parts: []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{}}}}, fails: "message 1 of its reply"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			agent, model := newAgent(t, &belay.Options{Directives: []belay.Directive{directive("say", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
				return belay.DirectiveOutcome{Reply: &test.reply}, nil
			})}}, says("next"))
			s := agent.Session("s")
			if test.fails != "" {
				if _, err := s.Turn(t.Context(), "/say"); err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("it fails with %v", err)
				}
				return
			}
			turn := takeTurn(t, s.Run(t.Context(), "/say"), belay.EndTurn)
			wantEqual(t, "the text of the turn", turn.Text, test.text)
			var got []string
			for _, m := range transcript(t, s)[1:] {
				if m.Role != belay.RoleAssistant || m.Model != "/say" {
					t.Errorf("message %d is of %s by %q", m.Seq, m.Role, m.Model)
				}
				got = append(got, m.Text()+" "+string(rune('0'+len(m.Parts))))
			}
			wantEqual(t, "the stored messages", got, test.want)
			wantEqual(t, "the events", len(turn.of(belay.EventModelResponse)), len(test.want))
			takeTurn(t, s.Run(t.Context(), "go on"), belay.EndTurn)
			wantEqual(t, "the messages of the next request", len(model.Requests()[0].Messages), len(test.want)+2)
		})
	}
}
