package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/recorded"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/serve/api"
)

// recorders take cases from the messages of a session, for each phase whose input a transcript
// has.
var recorders = map[string]func(past *past, h *recordedHook, add func(recordedCase), leave func(leftOut)){
	belay.ToolPre.Name():          recordCalls,
	belay.ToolPost.Name():         recordResults,
	belay.UserPromptSubmit.Name(): recordPrompts,
	belay.TurnStop.Name():         recordStops,
}

// recordedCase is an input for a hook, from a session.
type recordedCase struct {
	name  string
	tool  string         // for tool.pre
	input map[string]any // the arguments of the tool, or the input of the phase
}

// leftOut says why a case does not become a test.
type leftOut string

const (
	leftTool      leftOut = "the hook does not match the tool"
	leftUnreached leftOut = "no hook of this phase gets such a call"
	leftRewritten leftOut = "the records do not say which input this hook saw, because the input was rewritten"
	leftFailed    leftOut = "the hook fails, so it has no answer"
	leftNames     leftOut = "without its secrets, two of its fields have the same name"
	leftForm      leftOut = "it does not fit into a file of tests"
	leftFull      leftOut = "the file of tests has no room for it: record fewer sessions at a time, into several files"
)

// recordedHook is the hook whose tests are made.
type recordedHook struct {
	id    string
	tools [][]string // sets of patterns of tools, each of which must match
}

func newRecordedHook(sub hook.Subscription) *recordedHook {
	h, m := &recordedHook{id: sub.ID()}, sub.Options().Match
	for _, patterns := range [][]string{m.Tools, m.Labels["tool"]} {
		if patterns != nil {
			h.tools = append(h.tools, patterns)
		}
	}
	return h
}

// covers reports whether the hook matches calls of a tool.
func (h *recordedHook) covers(tool string) bool {
	for _, patterns := range h.tools {
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), tool)
			return ok || err != nil // the loader reports an invalid pattern
		}) {
			return false
		}
	}
	return true
}

// past is what a session has: its messages and the records of the hooks of a phase.
type past struct {
	messages []*belay.Message
	runs     []hook.Run
}

// pastOf reads what a session has, without what a fork has copied.
func pastOf(ctx context.Context, r records, session *api.Session, phase string) (*past, error) {
	p := new(past)
	for m, err := range r.Read(ctx, session.ID, recorded.Copied(session.ForkedFrom)) {
		if err != nil {
			return nil, err
		}
		p.messages = append(p.messages, m)
	}
	var err error
	p.runs, _, err = r.Runs(ctx, &runsOptions{all: true, filter: hook.Filter{Session: session.ID, Phase: phase}})
	return p, err
}

// seen returns the input of a call as a hook of tool.pre saw it. ok is false if this is not known.
func (p *past) seen(id string, c *recorded.Call) (input json.RawMessage, ok bool) {
	if len(c.RewrittenBy) == 0 {
		return c.Final, true // only defaults were added
	}
	if slices.Contains(c.RewrittenBy, id) {
		return c.Input, c.RewrittenBy[0] == id
	}
	before, after := false, false
	for _, other := range c.RewrittenBy {
		switch p.order(other, id, c) {
		case -1:
			before = true
		case 1:
			after = true
		default:
			return nil, false
		}
	}
	if after {
		return c.Input, !before
	}
	return c.Final, true
}

// order returns -1 if, in the step of a call, a ran before b, 1 if it ran after b, and 0 if this is
// not known. What rewrites a call and has no record is an interceptor: these run before all hooks.
func (p *past) order(a, b string, c *recorded.Call) (order int) {
	of := func(id string) (all []hook.Run) {
		for _, r := range p.runs {
			if r.Subscription == id && r.Scope.Turn == c.Turn && r.Scope.Step == c.Step {
				all = append(all, r)
			}
		}
		return all
	}
	first, second := of(a), of(b)
	if len(first) == 0 && len(second) > 0 {
		return -1
	}
	for _, x := range first {
		for _, y := range second {
			if x.Dispatch != y.Dispatch {
				continue
			}
			now := 0
			if !x.Ended.IsZero() && !x.Ended.After(y.Started) {
				now--
			}
			if !y.Ended.IsZero() && !y.Ended.After(x.Started) {
				now++ // both if the clock did not move: the order is not known
			}
			if now == 0 || order != 0 && order != now {
				return 0
			}
			order = now
		}
	}
	return order
}

// subject returns what a call is about, for the name of a test: " " and the first of its usual
// arguments, or "".
func subject(args map[string]any) string {
	for _, key := range []string{"path", "command", "url", "pattern", "query", "name"} {
		if text, ok := args[key].(string); ok && text != "" {
			return " " + short(oneLine(redact.Text(text)), 60)
		}
	}
	return ""
}

// placeOf names the place of a message in its session.
func placeOf(turn string, step int) string { return fmt.Sprintf("step %d of turn %s", step, turn) }

// recordCalls takes the tool calls that reached the hooks, also those that something denied.
func recordCalls(past *past, h *recordedHook, add func(recordedCase), leave func(leftOut)) {
	eachCall(past.messages, func(c *recorded.Call) {
		input, seen := past.seen(h.id, c)
		args, ok := objectOf(input)
		switch {
		case !h.covers(c.Tool):
			leave(leftTool)
		case c.Result != nil && isUnreached(c.Result.Class), seen && !ok:
			leave(leftUnreached)
		case !seen:
			leave(leftRewritten)
		default:
			add(recordedCase{name: c.Tool + subject(args) + ", " + placeOf(c.Turn, c.Step), tool: c.Tool, input: args})
		}
	})
}

// isUnreached reports whether a call with a result of this class ended before the hooks.
func isUnreached(class belay.ResultClass) bool {
	return class == belay.ClassInvalid || class == belay.ClassNotFound || class == belay.ClassScope
}

// recordResults takes the results of calls that ran, as the hooks of the session left them.
func recordResults(past *past, h *recordedHook, add func(recordedCase), leave func(leftOut)) {
	eachCall(past.messages, func(c *recorded.Call) {
		args, ok := objectOf(c.Final)
		switch {
		case !h.covers(c.Tool):
			leave(leftTool)
		case !ok || !c.Ran() || c.Result.Class == belay.ClassAborted:
			leave(leftUnreached)
		default:
			input := map[string]any{"id": c.ID, "tool": c.Tool, "input": args, "text": c.Result.Text}
			if c.Result.IsError {
				input["is_error"], input["class"] = true, string(c.Result.Class)
			}
			add(recordedCase{name: "result of " + c.Tool + subject(args) + ", " + placeOf(c.Turn, c.Step), input: input})
		}
	})
}

// recordPrompts takes the messages of the user, as they were typed. A message that a hook denied
// is not in a transcript.
func recordPrompts(past *past, _ *recordedHook, add func(recordedCase), _ func(leftOut)) {
	for _, m := range past.messages {
		if m.Kind != belay.KindUser || m.IsSkillInjection {
			continue
		}
		input := map[string]any{"text": recorded.Typed(m)}
		if others := len(slices.DeleteFunc(slices.Clone(m.Parts), func(p belay.Part) bool { return p.Type == belay.PartText })); others > 0 {
			input["parts"] = others
		}
		add(recordedCase{name: "message of turn " + m.Turn, input: input})
	}
}

// recordStops takes the answers of the model that call no tool. A hook made the turn continue after
// each of them but the last.
func recordStops(past *past, _ *recordedHook, add func(recordedCase), _ func(leftOut)) {
	before := make(map[string]int)
	for _, m := range past.messages {
		if reply, _ := recorded.IsReply(m); m.Kind != belay.KindAssistant || reply || len(m.Calls()) > 0 {
			continue
		}
		input, name := map[string]any{"text": m.Text()}, "end of turn "+m.Turn
		if n := before[m.Turn]; n > 0 {
			input["continuations"] = n
		}
		before[m.Turn]++
		add(recordedCase{name: name, input: input})
	}
}

// eachCall passes the calls of a session to each.
func eachCall(messages []*belay.Message, each func(*recorded.Call)) {
	for c, err := range recorded.Calls("", func(yield func(*belay.Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}) {
		if err == nil { // the messages were read already
			each(&c)
		}
	}
}

// objectOf decodes an object. Its numbers stay as they are written.
func objectOf(input json.RawMessage) (object map[string]any, ok bool) {
	decode := json.NewDecoder(bytes.NewReader(input))
	decode.UseNumber()
	return object, decode.Decode(&object) == nil && object != nil
}
