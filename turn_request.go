package belay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// turnRequest is the request that a step sends to the model.
type turnRequest struct {
	tools   *toolset      // the tools of this step
	stepped *steppedTools // the tools that extensions provide for this step
	extra   []*boundTool  // tools of this turn only
	answer  *boundTool    // one of extra: the tool final_answer
	system  string
	placed  []*Message // the conversation, including the reminders of this request
	tooFull bool       // the context is too long, and a compaction has failed
}

// ask sends a request to the model. After a temporary failure, it repeats the request. If
// the context is too long, it summarizes the context first. If this does not help, it
// falls back to the next model. It returns the response, which is not stored yet, and the
// message with the request's reminders.
func (t *turn) ask() (response, delivered *Message, err error) {
	shortened := false
	for attempt := 1; ; attempt++ {
		response, delivered, err := t.attempt(attempt)
		if err == nil {
			return response, delivered, nil
		}
		var failure *ModelError
		if errors.As(err, &failure) && failure.Kind == ModelTooLong && !shortened {
			shortened = true
			if cerr := t.compact("too_long"); cerr != nil {
				if t.ignoreFailedCompaction(cerr) != nil || !t.fallBack(err) {
					return nil, nil, errors.Join(err, cerr)
				}
				attempt, shortened = 0, false
			}
			continue
		}
		if err := t.waitToRetry(attempt, err); err != nil {
			if !t.fallBack(err) {
				return nil, nil, err
			}
			attempt, shortened = 0, false
		}
	}
}

// longestWait is the maximum pause before a retry that a provider may request.
const longestWait = 10 * time.Minute

// waitToRetry waits until the turn may repeat a failed attempt. It returns an error if
// the turn must not repeat the attempt.
func (t *turn) waitToRetry(attempt int, err error) error {
	var failure *ModelError
	switch {
	case t.ctx.Err() != nil || !errors.As(err, &failure):
		return err
	case failure.RetryAfter > longestWait:
		return fmt.Errorf("the provider asks for a wait of %s, which is too long: %w", failure.RetryAfter, err)
	case failure.passes() && attempt < t.agent.opts.Retry.Attempts:
		t.emit(Event{Kind: EventError, Text: failure.Error(), Retry: true})
		return t.wait(max(failure.RetryAfter, t.agent.opts.Retry.Pause(attempt, rand.Float64())))
	case attempt > 1:
		return fmt.Errorf("after %d attempts: %w", attempt, err)
	default:
		return err
	}
}

// wait pauses. It returns an error if the turn is aborted meanwhile.
func (t *turn) wait(pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// attempt makes one request. If it fails, the reminders stay pending.
func (t *turn) attempt(number int) (response, delivered *Message, err error) {
	pending := t.session.state.Pending
	if ModelPre.Active(t.snap) {
		outcome, err := fire(t.ctx, t, ModelPre, ModelRequest{newInput(t.scope, modelRequest{
			Model: t.model.info.Name, Attempt: number, Messages: len(t.session.messages), Tools: len(t.request.tools.declared), soFar: t.soFar(),
		})})
		t.diagnostics = append(t.diagnostics, t.showFailures(outcome.Diagnostics)...)
		if err != nil {
			return nil, nil, err
		}
		pending = t.addAside(slices.Clip(pending), outcome.Output)
	}
	d := deliver(pending, t.session.state.Reminders, t.agent.opts.Limits.ReminderCharacters)
	messages, delivered := t.withReminders(d)
	req := &exchange{Request: Request{System: t.request.system, Tools: t.request.tools.declared, MaxTokens: t.agent.opts.MaxTokens, Messages: messages, Settings: t.settings()}}
	t.shapeAnswer(&req.Request)
	req.attempt = number
	answer, err := t.stream(t.model, req)
	if err != nil {
		if answer != nil { // the response costs money even if it is unusable
			t.spend(answer.Usage)
			t.write.clean = false
		}
		if delivered != nil {
			// The failed request shares the array of the messages, so the array must not be
			// written again.
			t.session.messages, t.request.placed = slices.Clone(t.session.messages), nil
		}
		return nil, nil, err
	}
	t.diagnostics = append(t.diagnostics, d.diags...)
	t.session.state.Pending = nil
	t.spend(answer.Usage)
	t.reportIgnored(answer.Ignored)
	return t.message(answer), delivered, nil
}

// reportIgnored adds a diagnostic for each setting that the provider ignored, once in a turn.
func (t *turn) reportIgnored(settings []string) {
	for _, text := range settings {
		text = fmt.Sprintf("%s ignores a setting: %s", cmp.Or(t.model.info.Name, "the model"), validText(text))
		if !slices.ContainsFunc(t.diagnostics, func(d hook.Diagnostic) bool { return d.Code == codes.SettingIgnored && d.Message == text }) {
			t.diagnose(codes.SettingIgnored, "", "", text)
		}
	}
}

// withReminders returns the conversation followed by the reminders of one request, and the
// message with those reminders that are stored. It does not copy the history, except to
// make room for ephemeral reminders.
func (t *turn) withReminders(d delivery) (messages []*Message, delivered *Message) {
	messages = t.session.messages
	if len(d.stored) > 0 {
		delivered = &Message{
			Seq: t.session.last + 1, Turn: t.scope.Turn, Step: t.scope.Step, Time: time.Now(),
			Role: RoleUser, Kind: KindReminder, Parts: d.stored,
		}
		messages = append(messages, delivered)
		t.request.placed = messages
	}
	if len(d.ephemeral) > 0 {
		messages = append(slices.Clip(messages), &Message{Role: RoleUser, Kind: KindReminder, Parts: d.ephemeral})
	}
	return slices.Clip(messages), delivered
}

func costOf(u Usage, p Price) float64 {
	if u.Cost != 0 {
		return u.Cost
	}
	return p.Of(u)
}

// message makes a message from a response. It repairs everything that providers would
// refuse in later requests, such as duplicate call ids, inputs that are not JSON objects,
// empty text, and text that is not UTF-8.
func (t *turn) message(r *Response) *Message {
	answer := &struct { // one allocation, so that the message does not keep the whole response in memory
		Message
		usage Usage
	}{Message{Role: RoleAssistant, Kind: KindAssistant, Parts: r.Parts[:0], Model: r.Model, StopReason: r.StopReason}, r.Usage}
	m := &answer.Message
	m.Usage = &answer.usage
	if m.Model == "" {
		m.Model = t.model.info.Name
	}
	calls := 0
	for _, p := range r.Parts {
		switch {
		case p.Type == PartCall && p.Call != nil:
			calls++
			p.Call.mend(calls, m.Parts)
			p.Call.ID = t.session.ids.apart(p.Call.ID, t.session.messages)
		case p.Type == PartText && strings.TrimSpace(p.Text) == "":
			continue // providers refuse empty text
		case p.Type == PartText, p.Type == PartThinking && len(p.Opaque) == 0:
			p.Text = validText(p.Text)
		case p.Type != PartThinking:
			continue // other parts are not valid in a response
		}
		m.Parts = append(m.Parts, p)
	}
	if len(m.Parts) == 0 {
		m.Parts = append(m.Parts, Text("(no answer)"))
	}
	return m
}

// mend gives a call a unique id, a tool name that providers accept, and an input that is a
// JSON object.
func (c *CallPart) mend(number int, before []Part) {
	taken := func(id string) bool {
		return slices.ContainsFunc(before, func(p Part) bool { return p.Call != nil && p.Call.ID == id })
	}
	c.ID, c.Tool = validText(c.ID), validText(c.Tool)
	if c.ID != "" && !validToolName(c.ID) {
		c.ID = soundToolName(c.ID)
	}
	given := c.ID
	for n := number; c.ID == "" || taken(c.ID); n++ {
		c.ID = fmt.Sprintf("%s_%d", cmp.Or(given, "call"), n)
	}
	if !validToolName(c.Tool) {
		c.Tool = soundToolName(c.Tool)
	}
	if isObject(c.Input) {
		return
	}
	if c.Malformed == "" && len(c.Input) > 0 {
		c.Malformed = validText(string(c.Input))
	}
	c.Input = emptyObject
}

// soundToolName changes a name that a model invented into a name that providers accept.
func soundToolName(name string) string {
	name, _ = firstCharacters(name, 64)
	name = strings.Map(func(r rune) rune {
		if validToolName(string(r)) {
			return r
		}
		return '_'
	}, validText(name))
	return cmp.Or(name, "unnamed")
}

func isObject(input json.RawMessage) bool {
	for _, b := range input {
		switch b {
		case ' ', '\t', '\n', '\r':
		case '{':
			return json.Valid(input) && utf8.Valid(input)
		default:
			return false
		}
	}
	return false
}

func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// hookClass returns the code of a hook's failure, or of another error.
func hookClass(err error) string {
	var failure *hook.FailureError
	var journal *hook.JournalError
	switch {
	case errors.As(err, &failure):
		return string(failure.Code)
	case errors.As(err, &journal):
		return string(codes.Journal)
	default:
		return "internal"
	}
}
