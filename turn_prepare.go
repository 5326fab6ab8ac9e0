package belay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// soFar returns the contributions of earlier phases of the turn.
func (t *turn) soFar() soFar { return soFar{Policy: t.state.Policy, Context: t.state.Context} }

// prepare does everything from a user message to the first model call: it fires the phases
// that prepare the turn, builds the prompt, and commits the message. It returns an end
// reason if the turn is already over.
func (t *turn) prepare(text string, parts []Part) EndReason {
	said := &t.room.said
	*said = submit(text, parts)
	said.queued = t.queue.id
	for _, stage := range stages {
		end := stage(t, said)
		if (end != "" || said.reply != nil) && t.state.Text == "" {
			t.state.Text = said.text // the turn ends before collectPolicy sets Text
		}
		if end != "" {
			return end
		}
		if said.reply != nil {
			return t.answerInPlace(said)
		}
	}
	return t.commitPrompt(said)
}

// stages are the functions that handle a user message before it is stored, in order.
var stages = []func(*turn, *submitted) EndReason{
	(*turn).submit, (*turn).expand, (*turn).collectPolicy, (*turn).collectContext, (*turn).collectTools, (*turn).compilePrompt,
}

// submitted is a user message that is not stored yet.
type submitted struct {
	typed, text string
	parts       []Part
	injected    []Injection
	sections    []PromptSection // of directives, for this turn
	reply       *Reply          // instead of the model
	by          string          // who replied
	halted      bool            // a call of a directive ended the turn; t.end says why
	failure     error           // likewise: a hook at tool.post failed closed
	made        []directMade    // the calls of RunTool so far
	queued      string          // the id of the queued turn; see Message.Queued
}

// submit joins all texts of the message into one, so that hooks and directives see the
// whole text.
func submit(text string, parts []Part) submitted {
	if slices.ContainsFunc(parts, func(p Part) bool { return p.Type == PartText }) {
		var texts []string
		var others []Part
		for _, p := range append([]Part{Text(text)}, parts...) {
			if p.Type != PartText {
				others = append(others, p)
			} else if p.Text != "" {
				texts = append(texts, p.Text)
			}
		}
		text, parts = strings.Join(texts, "\n"), others
	}
	return submitted{typed: text, text: text, parts: parts}
}

// answer sets a reply that replaces the model's answer.
func (said *submitted) answer(reply *Reply, by string) { said.reply, said.by = reply, by }

// submit fires user.prompt.submit, whose hooks may change the prompt, block it or reply to
// it.
func (t *turn) submit(said *submitted) EndReason {
	if !UserPromptSubmit.Active(t.snap) {
		return ""
	}
	outcome, err := fire(t.ctx, t, UserPromptSubmit, UserPrompt{newInput(t.scope, userPrompt{Text: said.text, Parts: len(said.parts)})})
	t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
	original := said.text
	if said.text = outcome.Input.Text(); err != nil || len(outcome.Diagnostics) > 0 && said.text == original {
		said.text = "" // a hook that failed may have been about to remove a secret
	}
	if err != nil {
		return t.fail(err)
	}
	if outcome.Output.Decision == promptDeny {
		t.end.by, t.end.why = outcome.By, outcome.Output.Reason
		return EndBlocked
	}
	said.text = outcome.Input.Text()
	if reply := outcome.Output.Reply; reply != nil {
		said.answer(&Reply{Text: *reply}, "user.prompt.submit")
	}
	return ""
}

// collectPolicy fires turn.pre_policy and applies the policy.
func (t *turn) collectPolicy(said *submitted) EndReason {
	t.state.Text = said.text
	if !TurnPrePolicy.Active(t.snap) {
		return ""
	}
	outcome, err := fire(t.ctx, t, TurnPrePolicy, TurnBegun{newInput(t.scope, turnBegun{Text: said.text})})
	t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
	if err != nil {
		return t.fail(err)
	}
	t.state.Policy = outcome.Output.Policy
	if err := t.applyModelPolicy(); err != nil {
		return t.fail(err)
	}
	return ""
}

func (t *turn) turnSoFar(said *submitted) turnSoFar {
	return turnSoFar{Text: said.text, Tools: t.request.tools.names, soFar: t.soFar()}
}

// collectContext fires the two phases that add prompt context, and makes the preflight
// plan between them. Both phases share one limit.
func (t *turn) collectContext(said *submitted) EndReason {
	if TurnPrePromptContext.Active(t.snap) {
		outcome, err := fire(t.ctx, t, TurnPrePromptContext, TurnSoFar{newInput(t.scope, t.turnSoFar(said))})
		t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
		if err != nil {
			return t.fail(err)
		}
		t.addContext(TurnPrePromptContext.Name(), outcome.Output.Entries)
	}
	if !TurnPostPreflightPromptContext.Active(t.snap) {
		return ""
	}
	plan, err := t.preflight(said)
	if err != nil {
		return t.fail(err)
	}
	outcome, err := fire(t.ctx, t, TurnPostPreflightPromptContext,
		Preflight{newInput(t.scope, preflight{turnSoFar: t.turnSoFar(said), Plan: plan})})
	t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
	if err != nil {
		return t.fail(err)
	}
	t.addContext(TurnPostPreflightPromptContext.Name(), outcome.Output.Entries)
	return ""
}

// preflight makes the preflight plan. Without a planner, or if the planner fails, the turn
// continues with the fallback plan.
func (t *turn) preflight(said *submitted) (PreflightPlan, error) {
	fallback := PreflightPlan{Source: "fallback"}
	if text := strings.TrimSpace(said.text); text != "" {
		fallback.Queries = []string{text}
	}
	if t.agent.opts.Planner == nil {
		return fallback, nil
	}
	plan, err := t.agent.opts.Planner.Plan(t.ctx, TurnSoFar{newInput(t.scope, t.turnSoFar(said))})
	if t.ctx.Err() != nil {
		return fallback, fmt.Errorf("preflight: %w", t.ctx.Err())
	}
	if err != nil {
		t.agent.opts.Logger.WarnContext(t.ctx, "the planner failed", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
		return fallback, nil
	}
	plan.Source = "planner"
	return plan, nil
}

func (t *turn) addContext(phase string, entries []ContextEntry) {
	t.state.Context = addEntries(t.state.Context, entries, t.agent.hooks.Limits(), func(code codes.Code, from, message string) {
		t.diagnose(code, phase, from, message)
	})
}

func (t *turn) diagnose(code codes.Code, phase, subscription, message string) {
	t.diagnostics = append(t.diagnostics, hook.Diagnostic{
		Code: code, Level: code.Level(), Phase: phase, Subscription: subscription, Message: message,
	})
}

// collectTools fires turn.pre_tool_materialization and adds the tools of bundles.
func (t *turn) collectTools(said *submitted) EndReason {
	if TurnPreToolMaterialization.Active(t.snap) {
		outcome, err := fire(t.ctx, t, TurnPreToolMaterialization, TurnSoFar{newInput(t.scope, t.turnSoFar(said))})
		t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
		if err != nil {
			return t.fail(err)
		}
		t.state.Bundles = outcome.Output.Bundles
	}
	t.bindBundles()
	return ""
}

// bindBundles makes tools from the bundles. It drops a bundle if no extension runs its
// tools, if a tool is invalid, or if the agent already has a tool of the same name. It also
// calls bindAnswer.
func (t *turn) bindBundles() {
	t.seeTools()
	for _, bundle := range t.state.Bundles {
		route := t.agent.route(bundle.Route)
		if route == nil {
			t.diagnose(codes.BundleUnrouted, TurnPreToolMaterialization.Name(), bundle.From, "the bundle was ignored: no extension has the name in its route")
			continue
		}
		var bound []*boundTool
		sound := true
		for _, d := range bundle.Tools {
			b, err := t.agent.bind(t.agent.composed.Load(), &routedTool{d, route}, bundle.Route)
			switch {
			case err != nil:
				t.diagnose(codes.BundleUnrouted, TurnPreToolMaterialization.Name(), bundle.From, "the bundle was ignored: one of its tools has an invalid name or schema")
				sound = false
			case t.request.tools.byName[d.Name] != nil:
				t.diagnose(codes.ToolConflict, TurnPreToolMaterialization.Name(), bundle.From, "the bundle was ignored: the agent already has a tool with the same name")
				sound = false
			default:
				bound = append(bound, b)
			}
		}
		if sound {
			t.request.extra = append(t.request.extra, bound...)
		}
	}
	t.bindAnswer()
	t.seeTools()
}

// refresh updates the tools and the gates of the turn. It reads the tools first, and
// reads both again if the tools have changed. So no tool is used without its gates:
// Agent.Add publishes gates before tools, and removes tools before gates.
func (t *turn) refresh() {
	for {
		tools, composed := t.agent.tools.Load(), t.agent.composed.Load()
		t.seeTools()
		t.snap.Refresh()
		if tools == t.agent.tools.Load() && composed == t.agent.composed.Load() {
			return
		}
	}
}

// seeTools updates the tools of the turn, because they may change between steps.
func (t *turn) seeTools() {
	t.request.tools = t.limited(t.stepTools())
	if len(t.request.extra) == 0 {
		return
	}
	own := slices.DeleteFunc(slices.Clone(t.request.extra), func(b *boundTool) bool {
		routed, ok := b.Tool.(*routedTool)
		return t.request.tools.byName[b.name] != nil || ok && !t.agent.routes(b.owner, routed.route)
	})
	t.request.tools = newToolset(slices.Concat(t.request.tools.tools, cut(own, t.limiters(nil))))
}

// compilePrompt fires turn.pre_prompt_compile, builds the system prompt and fires
// turn.post_prompt_compile with its manifest.
func (t *turn) compilePrompt(said *submitted) EndReason {
	if TurnPrePromptCompile.Active(t.snap) {
		outcome, err := fire(t.ctx, t, TurnPrePromptCompile, TurnSoFar{newInput(t.scope, t.turnSoFar(said))})
		t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
		if err != nil {
			return t.fail(err)
		}
		t.state.Sections = outcome.Output.Sections
	}
	t.addSections(said.sections)
	p := t.agent.compile(t.state.Sections)
	t.request.system = p.text
	if TurnPostPromptCompile.Active(t.snap) {
		outcome, err := fire(t.ctx, t, TurnPostPromptCompile, PromptManifest{newInput(t.scope, p.manifest(t.soFar(), t.request.tools.declared))})
		t.keepAside(Aside{Note: outcome.Output}, outcome.Diagnostics)
		if err != nil {
			return t.fail(err)
		}
	}
	return ""
}

// messages appends the messages of the submission: those of directives and extensions, the
// user's message, and the prompt context.
func (said *submitted) messages(messages []*Message, context []ContextEntry) []*Message {
	for _, in := range said.injected {
		if len(in.Parts) == 0 {
			continue
		}
		messages = append(messages, in.message())
	}
	user := newMessage(RoleUser, KindUser)
	if said.text != "" {
		user.Parts = append(user.Parts, Text(said.text))
	}
	user.Parts = append(user.Parts, said.parts...)
	if len(user.Parts) == 0 { // a hook or directive removed all text, and providers refuse an empty message
		user.Parts = append(user.Parts, Text("(no text)"))
	}
	if said.text != said.typed {
		typed := said.typed // the message must not point into the room of the turn
		user.PreModifiedText = &typed
	}
	user.Queued = said.queued
	messages = append(messages, user)
	if parts := contextParts(context); len(parts) > 0 {
		messages = append(messages, &Message{Role: RoleUser, Kind: KindContext, Parts: parts})
	}
	return messages
}

// commitPrompt stores the user message. From then on, every process that uses the store can
// resume the turn.
func (t *turn) commitPrompt(said *submitted) EndReason {
	if err := t.commit(said.messages(t.room.carried[:0], t.state.Context), nil, nil); err != nil {
		return t.fail(err)
	}
	return ""
}

// answerInPlace ends the turn with a reply that replaces the model's answer.
func (t *turn) answerInPlace(said *submitted) EndReason {
	end := cmp.Or(said.reply.Reason, EndTurn)
	var replies []*Message
	replies, t.text = said.reply.messages(said.by)
	t.end.why = said.reply.Why
	if end != EndTurn {
		t.end.by = said.by
	}
	if end == EndError {
		t.end.err = fmt.Errorf("%s: %s", said.by, cmp.Or(t.end.why, "it failed"))
	}
	t.spend(said.reply.Usage)
	t.markEnd(end)
	if err := t.commit(append(said.messages(t.room.carried[:0], t.state.Context), replies...), nil, nil); err != nil {
		return t.fail(err)
	}
	for i, reply := range replies {
		text := reply.Text()
		if i == 0 && t.text == "" {
			text = "" // the stored text is only a placeholder: see Reply.messages
		}
		t.emit(Event{Kind: EventTextDelta, Text: text})
		t.emit(Event{Kind: EventModelResponse, Message: reply})
	}
	return end
}
