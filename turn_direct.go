package belay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/belay-run/belay/hook/codes"
)

// AddSection adds a section to the system prompt of this turn. The section comes after
// sections of hooks that have the same Order, and the same limits apply. A resumed turn
// keeps the section. The next turn does not have it. AddSection sets From.
func (c *Controls) AddSection(s PromptSection) error {
	if err := c.enter("add section"); err != nil {
		return err
	}
	defer c.leave()
	switch {
	case c.said == nil:
		return errors.New("add section: a tool cannot add one, because the prompt of the turn is already built")
	case s.ID == "":
		return errors.New("add section: the section has no ID: set one")
	case !utf8.ValidString(s.ID + s.Title + s.Body):
		return fmt.Errorf("add section %q: it is not UTF-8", s.ID)
	}
	s.From = []string{c.by}
	c.said.sections = append(c.said.sections, s)
	return nil
}

// RunTool runs a tool as if the model had called it, and returns its result.
// Interceptors, the hooks at tool.pre, tool.post and tool.denied, the Authorizer and
// approvals apply as they do to a call of the model. A refused call has a result that
// says why, and a Class. An empty input means {}.
//
// The call is not part of the transcript. Use Append or a Reply to keep the result. The
// turn policies of this message do not apply yet. The approval of the call is not stored,
// so only hooks of approval.request and the Approver can decide about it.
//
// If a queued turn begins again, because its process ended before the message was stored, the
// directive runs again. Its calls then have the same [Invocation.Key] as before.
//
// It is an error if the call would park the turn: nobody can be asked now ([AskPark]), or
// the tool itself parks. RunTool also returns an error if a hook or the Authorizer halts
// the call, or if a hook at tool.post fails and its failure mode is hook.Closed. Then the
// turn ends when the directive returns. A tool cannot use RunTool.
func (c *Controls) RunTool(name string, input json.RawMessage) (Result, error) {
	if err := c.enter("run tool"); err != nil {
		return Result{}, err
	}
	defer c.leave()
	if c.said == nil {
		return Result{}, errors.New("run tool: a tool cannot run another one")
	}
	result, err := c.turn.runDirect(c.said, c.by, name, input)
	if err != nil {
		return result, fmt.Errorf("run tool %q: %w", name, err)
	}
	return result, nil
}

// runDirect runs a call that does not come from the model. It handles the call like a call
// of the model, except that nothing is stored. by is the directive or the extension that
// makes the call.
func (t *turn) runDirect(said *submitted, by, name string, input json.RawMessage) (Result, error) {
	t.refresh()
	key := t.directKey(said, by, name)
	t.directing = true
	defer func() { t.directing = false }()
	b := t.judge(&Message{Role: RoleAssistant, Kind: KindAssistant, Parts: []Part{{Type: PartCall, Call: directCall(key, name, input)}}})
	c := b.calls[0]
	t.announceCalls(b)
	refused := t.refuseToPark(c)
	if refused == nil {
		if err := t.approveHere(b); err != nil {
			return Result{}, err
		}
		if err := t.runCalls(b); err != nil {
			return Result{}, err
		}
		refused = t.refuseToPark(c)
	}
	t.applyHalt(b)
	t.gather(b)
	if t.ctx.Err() != nil {
		b.abort("The turn was aborted before this call was answered.")
		t.cancelled(b, "the turn was aborted before it was decided")
		t.gather(b)
	}
	t.abandonCalls(b)
	t.emitResults(b)
	t.emitHeld()
	said.injected = append(said.injected, t.state.Appended...) // what the tool added with its Controls
	t.state.Appended, t.state.Children, t.waits, t.askedBelow = nil, nil, nil, nil
	t.wishes.recallChildren(nil)
	switch {
	case refused != nil:
		return *c.result, refused
	case c.failure != nil:
		said.failure = c.failure
		return *c.result, c.failure
	case c.halted:
		said.halted = true
		return *c.result, fmt.Errorf("%s ended the turn: %s", c.by, c.why)
	default:
		return *c.result, nil
	}
}

// directKey returns the idempotency key of the next direct call. A queued turn that begins
// again in another process has another turn id, so the key is made from the id of the queued
// turn. Calls of the same tool by the same directive are counted.
func (t *turn) directKey(said *submitted, by, tool string) string {
	call := directMade{by, tool}
	n := 0
	for _, made := range said.made {
		if made == call {
			n++
		}
	}
	said.made = append(said.made, call)
	sum := sha256.Sum256(fmt.Appendf(nil, "direct %q %q %q %q %d", t.session.id, cmp.Or(t.queue.id, t.state.ID), by, tool, n))
	return hex.EncodeToString(sum[:])
}

// directMade is a call of RunTool: who made the call, and which tool it called.
type directMade struct{ by, tool string }

const directPrefix = "direct_"

// directCall returns a call in the form that a model's calls have. Its id contains the key.
func directCall(key, name string, input json.RawMessage) *CallPart {
	part := &CallPart{ID: directPrefix + key, Tool: name, Input: bytes.TrimSpace(bytes.Clone(input))}
	switch {
	case len(part.Input) == 0:
		part.Input = json.RawMessage(`{}`)
	case part.Input[0] != '{' || !json.Valid(part.Input):
		part.Malformed, part.Input = string(part.Input), json.RawMessage(`{}`)
	}
	return part
}

// isDirect reports whether the calls come from RunTool. Such calls are not stored.
func (b *batch) isDirect() bool { return len(b.calls) > 0 && b.calls[0].direct }

// refuseToPark refuses a direct call that would have to be parked. The message is not
// stored yet, so there is no turn to park.
func (t *turn) refuseToPark(c *call) error {
	switch {
	case c.result != nil || c.state != CallParked:
		return nil
	case c.approval == nil || c.approval.Decided != nil: // its tool parked it
		c.answer(Failed(ClassFailed, "The tool parked its call, and a call of a directive or an extension cannot be parked."))
		return fmt.Errorf("the tool waits for %q, and a call of a directive or an extension cannot be parked: let the model call it", c.Wait)
	case t.asking().agent.opts.OnAsk != AskWait:
		asks := c.approval
		t.decidedUnasked(c, Decision{By: "belay", Reason: "a call of a directive or an extension cannot be parked until somebody approves it"})
		return fmt.Errorf("%s asks for approval (%s), and this agent parks turns until somebody approves: a call of a directive or an extension cannot be parked. Set Options.OnAsk to AskWait, or let the model make the call", asks.By, asks.Reason)
	default:
		return nil
	}
}

// addSections adds the sections of directives to the sections of hooks.
func (t *turn) addSections(more []PromptSection) {
	if len(more) == 0 {
		return
	}
	sections := slices.Clone(t.state.Sections)
	for _, s := range more {
		sections = addSection(t.agent.hooks.Limits(), sections, s, func(code codes.Code, message string) {
			t.diagnose(code, TurnPrePromptCompile.Name(), s.From[0], message)
		})
	}
	sortSections(sections)
	t.state.Sections = sections
}
