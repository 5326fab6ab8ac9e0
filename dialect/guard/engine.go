package guard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// Options are the parts of an engine. All fields are required, except Expiry and Servers.
type Options struct {
	// Project is the directory whose hooks and floor are asked.
	Project string
	// Hooks has the project's hooks. Its journal must be the journal of Store.
	Hooks *hook.Runtime
	// Floor checks calls.
	Floor belay.Authorizer
	// Store keeps sessions, approvals and the records of hooks.
	Store belay.ManageStore
	// Servers are the MCP servers that the agents may have, and those that rules and hooks
	// name. Defaults to none: then a rule about a tool of a server does not apply to calls
	// of Cursor, and the floor asks about them.
	Servers []Server
	// Expiry says how long an approval waits. Defaults to 24 hours.
	Expiry time.Duration
}

// Engine asks Belay's hooks and the floor about the events of other agents. It is safe for
// concurrent use.
type Engine struct {
	Options

	mu    sync.Mutex
	known map[string]bool // sessions that are in the store
}

// FloorID is the subscription that asks the floor. So the decisions of the floor have
// records like those of hooks.
const FloorID = "belay.floor"

// lastPriority lets the floor answer after the hooks, as in a turn of Belay. A gate that
// denies ends the phase, and hooks that observe calls must not miss any.
const lastPriority = 1_000_000

// Label is the label of sessions in which Belay is the hook of another agent. Its value is
// the name of that agent.
const Label = "hook-of"

// New returns an engine. It installs the floor into the hooks.
func New(o Options) (*Engine, error) {
	e := &Engine{Options: o, known: make(map[string]bool)}
	e.Expiry = cmp.Or(e.Expiry, 24*time.Hour)
	_, err := e.Hooks.Install(belay.ToolPre.On(FloorID, e.askFloor, &hook.Options{
		Name: "floor", Description: "the permission check of Belay", Priority: lastPriority,
	}))
	if err != nil {
		return nil, fmt.Errorf("install the floor: %w", err)
	}
	return e, nil
}

// found is what the floor found out about a call.
type found struct{ belay.Authorization }

type foundKey struct{}

// askFloor is the handler of FloorID. It also stores the answer of the floor in the found
// of its context.
func (e *Engine) askFloor(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	a, err := e.Floor.Authorize(ctx, call)
	if err != nil {
		return belay.Deny("the permission check failed: " + err.Error()), nil //nolint:nilerr // the denial has the error
	}
	if to, ok := ctx.Value(foundKey{}).(*found); ok {
		to.Authorization = a
	}
	return belay.ToolVerdict{Decision: a.Decision, Reason: a.Reason}, nil
}

// handle returns the answer to an event.
func (e *Engine) handle(ctx context.Context, ev *event) (answer, error) {
	scope := hook.Scope{Session: sessionID(ev), Turn: cmp.Or(ev.turn, "1"), Step: 1, Agent: string(ev.agent)}
	if err := e.remember(ctx, ev, scope.Session); err != nil {
		return answer{}, fmt.Errorf("store the session: %w", err)
	}
	snapshot := e.Hooks.Snapshot()
	a, err := e.dispatch(ctx, snapshot, scope, ev)
	if released := snapshot.Release(context.WithoutCancel(ctx)); released != nil {
		return answer{}, errors.Join(err, fmt.Errorf("record what the hooks did: %w", released))
	}
	return a, err
}

// dispatch fires the phase of an event.
func (e *Engine) dispatch(ctx context.Context, s *hook.Snapshot, scope hook.Scope, ev *event) (answer, error) {
	switch ev.phase {
	case belay.ToolPre.Name():
		if err := e.guess(ev); err != nil {
			return answer{decision: belay.ToolDeny, reason: because("", err.Error())}, nil
		}
		return e.toolPre(ctx, s, scope, ev)
	case belay.ToolPost.Name():
		if err := e.guess(ev); err != nil {
			return answer{}, err
		}
		return toolPost(ctx, s, scope, ev)
	case belay.UserPromptSubmit.Name():
		return userPrompt(ctx, s, scope, ev)
	case belay.TurnStop.Name():
		return turnStop(ctx, s, scope, ev)
	case belay.SessionStart.Name():
		source := "new"
		if ev.detail == "resume" || ev.detail == "compact" {
			source = "resumed"
		}
		o, err := fire(ctx, belay.SessionStart, s, scope, map[string]any{"source": source, "messages": 0})
		return answer{context: aside(o.Output)}, err
	case belay.SessionEnd.Name():
		_, err := fire(ctx, belay.SessionEnd, s, scope, map[string]any{"reason": belay.EndTurn, "turns": 0})
		return answer{}, err
	case belay.SubagentStop.Name():
		_, err := fire(ctx, belay.SubagentStop, s, scope, map[string]any{
			"name": cmp.Or(ev.detail, "subagent"), "run": cmp.Or(ev.callID, newID("run-")), "depth": 1, "status": "success",
		})
		return answer{}, err
	case belay.TurnPreCompaction.Name():
		trigger := "window"
		if ev.detail == "manual" {
			trigger = "forced"
		}
		_, err := fire(ctx, belay.TurnPreCompaction, s, scope, map[string]any{"trigger": trigger, "messages": 0, "tokens": 0, "window": 0})
		return answer{}, err
	default:
		return answer{}, fmt.Errorf("there is no phase %q", ev.phase)
	}
}

// fire decodes the input of a phase and dispatches it.
func fire[In any, Out hook.Output](ctx context.Context, p hook.Phase[In, Out], s *hook.Snapshot, scope hook.Scope, input map[string]any) (hook.Outcome[In, Out], error) {
	data, err := json.Marshal(input)
	if err != nil {
		return hook.Outcome[In, Out]{}, fmt.Errorf("encode the input of %s: %w", p.Name(), err)
	}
	in, err := p.DecodeInput(scope, data)
	if err != nil {
		return hook.Outcome[In, Out]{}, fmt.Errorf("input of %s: %w", p.Name(), err)
	}
	return p.Dispatch(ctx, s, in)
}

// aside returns the texts that hooks want to give to the model.
func aside(a belay.Aside) []string {
	var texts []string
	for _, r := range a.Context {
		texts = append(texts, r.Text)
	}
	for _, o := range a.Shown() {
		texts = append(texts, o.Text)
	}
	return texts
}

// severity orders decisions.
var severity = map[belay.ToolDecision]int{belay.ToolPass: 0, belay.ToolAsk: 1, belay.ToolDeny: 2, belay.ToolHalt: 3}

// toolPre checks the calls that one call of the other agent stands for. The most severe
// answer wins.
func (e *Engine) toolPre(ctx context.Context, s *hook.Snapshot, scope hook.Scope, ev *event) (answer, error) {
	var merged answer
	var questions []question
	for i, call := range ev.calls {
		id := cmp.Or(ev.callID, newID("call-"))
		if i > 0 {
			id = fmt.Sprintf("%s.%d", id, i+1)
		}
		var floor found
		o, err := fire(context.WithValue(ctx, foundKey{}, &floor), belay.ToolPre, s, scope, map[string]any{"id": id, "tool": call.Tool, "input": call.Input})
		if err != nil {
			return answer{}, err
		}
		v := o.Output
		merged.context = append(merged.context, aside(v.Aside)...)
		if len(o.Rewriters) > 0 {
			if merged.input, err = ev.theirInput(o.Input.Input(), e.Project); err != nil {
				v.Decision, v.Reason = belay.ToolDeny, fmt.Sprintf("%s wants to change the input of this call, and Belay cannot tell %s the new input: %v", strings.Join(o.Rewriters, ", "), ev.agent.Title(), err)
			}
		}
		by := o.By
		if by == FloorID {
			by = cmp.Or(floor.By, "floor")
		}
		if _, known := severity[v.Decision]; !known {
			v.Decision = belay.ToolDeny
		}
		if v.Decision == belay.ToolAsk && (!ev.guessed || len(questions) == 0) { // one question for all meanings
			questions = append(questions, question{
				id: id, tool: call.Tool, input: o.Input.Input(), reason: v.Reason, by: by, floor: o.By == FloorID, places: floor.Places, theirs: ev.call,
			})
		}
		if severity[v.Decision] > severity[merged.decision] {
			merged.decision, merged.reason = v.Decision, because(by, v.Reason)
		}
		if merged.blocks() {
			return merged, e.denied(ctx, s, scope, id, call, by, v.Reason)
		}
	}
	if merged.decision != belay.ToolAsk {
		return merged, nil
	}
	return e.approve(ctx, s, scope, ev, merged, questions)
}

// because returns a reason that says who decided.
func because(by, reason string) string {
	return fmt.Sprintf("Belay (%s): %s", cmp.Or(by, "tool.pre"), cmp.Or(strings.TrimSpace(reason), "no reason was given"))
}

// denied fires tool.denied.
func (e *Engine) denied(ctx context.Context, s *hook.Snapshot, scope hook.Scope, id string, call dialect.Call, by, reason string) error {
	_, err := fire(ctx, belay.ToolDenied, s, scope, map[string]any{"id": id, "tool": call.Tool, "by": cmp.Or(by, "tool.pre"), "reason": reason, "class": belay.ClassDenied})
	return err
}

func toolPost(ctx context.Context, s *hook.Snapshot, scope hook.Scope, ev *event) (answer, error) {
	var merged answer
	class := belay.ResultClass("")
	if ev.failed {
		class = belay.ClassFailed
	}
	text := ev.text
	for i, call := range ev.calls {
		id := cmp.Or(ev.callID, newID("call-"))
		if i > 0 {
			id = fmt.Sprintf("%s.%d", id, i+1)
		}
		o, err := fire(ctx, belay.ToolPost, s, scope, map[string]any{"id": id, "tool": call.Tool, "input": call.Input, "text": text, "is_error": ev.failed, "class": class})
		if err != nil {
			return answer{}, err
		}
		merged.context = append(merged.context, aside(o.Output.Aside)...)
		if o.Output.Result != nil && *o.Output.Result != ev.text {
			text = *o.Output.Result // the next call has the same result, and gets the new text
			merged.result = &text
		}
	}
	return merged, nil
}

func userPrompt(ctx context.Context, s *hook.Snapshot, scope hook.Scope, ev *event) (answer, error) {
	o, err := fire(ctx, belay.UserPromptSubmit, s, scope, map[string]any{"text": ev.text})
	if err != nil {
		return answer{}, err
	}
	a := answer{context: aside(o.Output.Aside)}
	switch v := o.Output; {
	case v.Decision != "":
		a.decision, a.reason = belay.ToolDeny, because(o.By, v.Reason)
	case v.Reply != nil: // the hook answers in place of the model
		a.decision, a.reason = belay.ToolDeny, *v.Reply
	case v.Prompt != nil && *v.Prompt != ev.text:
		a.decision = belay.ToolDeny
		a.reason = fmt.Sprintf("a hook wants to change this message, and %s cannot change messages. Send the message that the hook wants: %s", ev.agent.Title(), *v.Prompt)
	}
	return a, nil
}

func turnStop(ctx context.Context, s *hook.Snapshot, scope hook.Scope, ev *event) (answer, error) {
	continuations := 0
	if ev.continued {
		continuations = 1
	}
	o, err := fire(ctx, belay.TurnStop, s, scope, map[string]any{"text": ev.text, "continuations": continuations})
	if err != nil {
		return answer{}, err
	}
	a := answer{context: aside(o.Output.Aside)}
	if o.Output.Decision != "" {
		a.decision = belay.ToolDeny
		a.reason = strings.Join(append([]string{cmp.Or(o.Output.Reason, "a hook wants the turn to continue")}, a.context...), "\n\n")
	}
	return a, nil
}

// remember stores that the session exists, once.
func (e *Engine) remember(ctx context.Context, ev *event, session string) error {
	e.mu.Lock()
	known := e.known[session]
	e.mu.Unlock()
	if known {
		return nil
	}
	for info, err := range e.Store.Sessions(ctx, belay.SessionFilter{ID: session}) {
		if err != nil {
			return err
		}
		known = info.Labels[Label] == string(ev.agent)
	}
	if !known {
		title := ev.agent.Title() + " " + cmp.Or(ev.session, "session")
		if err := e.Store.Describe(ctx, session, belay.SessionUpdate{Title: &title, Labels: map[string]string{Label: string(ev.agent)}}); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[session] = true
	return nil
}

// odd matches what the id of a session must not have.
var odd = lazyregexp.New(`[^A-Za-z0-9._-]+`)

// sessionID returns the id of the session in Belay's store.
func sessionID(ev *event) string {
	id := odd.ReplaceAllString(cmp.Or(ev.session, "unknown"), "-")
	return string(ev.agent) + "-" + id[:min(len(id), 80)]
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// Agents returns the names of the agents that can call Belay as a hook.
func Agents() []string {
	var names []string
	for _, v := range dialect.Vendors() {
		if _, ok := speakers[v]; ok {
			names = append(names, string(v))
		}
	}
	return slices.Clip(names)
}
