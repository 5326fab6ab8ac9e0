package toolbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// AskUserTool is the name of the tool of [AskUser].
const AskUserTool = "ask_user"

// LongestAnswer is the maximum length of an answer in characters: the length that
// stores keep of a decision's reason.
const LongestAnswer = 512

// ErrAnswer means that an answer is invalid: it is empty, too long, or none of the
// options. The question is still open.
var ErrAnswer = errors.New("toolbox: the answer is not valid")

// AskUser returns an extension with the tool ask_user, by which the model asks the
// user a question: with a free answer, or with options to choose from.
//
// A question is an approval, and its answer an approval with the text as its reason. So
// the rules for approvals apply to questions: each call has its own id and is answered
// once, by the [belay.Approver] while the turn waits, see [Answering], or by [Answer] and
// [belay.Agent.Decide] from any process when it is parked. A question without an answer
// expires. A denial is reported to the model.
func AskUser() belay.Extension { //nolint:ireturn // its concrete type is private
	return &askUser{answers: make(map[asked]string)}
}

// asked identifies the call of a question.
type asked struct{ session, turn, call string }

// askUser is the extension. It is safe for concurrent use.
type askUser struct {
	mu      sync.Mutex
	answers map[asked]string // answers of calls that have not run yet
	order   []asked          // the oldest first
}

var (
	_ belay.ToolExtension = (*askUser)(nil)
	_ belay.HookExtension = (*askUser)(nil)
)

// Name returns the name for errors.
func (*askUser) Name() string { return AskUserTool }

// Tools returns ask_user. It only fetches the answer, so it may run twice.
func (e *askUser) Tools() []belay.Tool {
	return []belay.Tool{newTool(AskUserTool,
		"Asks the user a question and returns the answer. Ask only what you cannot find out yourself and need to continue. Ask one question per call. "+
			"With options the user chooses one of them; without options the answer is free text. An error means that nobody answered: continue as well as you can without an answer.",
		`{"type": "object", "additionalProperties": false, "required": ["question"], "properties": {
			"question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "The question, with the information the user needs to answer it."},
			"options": {"type": "array", "minItems": 2, "maxItems": 20, "uniqueItems": true, "items": {"type": "string", "minLength": 1, "maxLength": 200},
				"description": "The answers to choose from. Omit it for free text."}}}`,
		lookOnly, e.fetch)}
}

// Hooks returns the gate that asks the question, and the observer that receives the
// answer.
func (e *askUser) Hooks() []hook.Subscription {
	return []hook.Subscription{
		belay.ToolPre.On(AskUserTool, e.put, &hook.Options{
			Description: "asks a person the questions of ask_user", Match: hook.Match{Tools: []string{AskUserTool}}, Capabilities: hook.CanAsk | hook.CanBlock,
		}),
		belay.ApprovalDecided.On(AskUserTool+".answer", e.hear, &hook.Options{
			Description: "receives the answers to ask_user", Match: hook.Match{Tools: []string{AskUserTool}},
		}),
	}
}

// put asks a person about the call, with the question as the reason.
func (*askUser) put(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var q UserQuestion
	if err := call.Decode(&q); err != nil {
		return belay.Pass, err // the gate fails closed
	}
	if why := q.fault(); why != "" {
		return belay.Deny(why), nil
	}
	return belay.Ask(strings.TrimSpace(q.Question)), nil
}

// hear keeps the answer for the call, which runs next.
func (e *askUser) hear(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
	if o.Decision() != "allow" {
		return belay.Note{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	of := asked{o.Session(), o.Turn(), o.Call()}
	e.answers[of] = o.Reason()
	if e.order = append(e.order, of); len(e.order) > rememberedAnswers { // the oldest belong to aborted turns
		delete(e.answers, e.order[0])
		e.order = e.order[1:]
	}
	return belay.Note{}, nil
}

// rememberedAnswers is the maximum number of answers that wait for their calls.
const rememberedAnswers = 1_000

// fetch implements the tool: a call runs only after it was answered.
func (e *askUser) fetch(ctx context.Context, call *belay.Invocation, q *UserQuestion) (belay.Result, error) {
	said, answered, err := e.heard(ctx, call)
	switch {
	case err != nil:
		return belay.Result{}, err
	case !answered, strings.HasPrefix(said, grantedBefore):
		return belay.Result{}, failf(belay.ClassUnavailable, "Nobody answered the question. Continue as well as you can without an answer.")
	}
	answer, err := q.resolve(said)
	if err != nil {
		return belay.Result{}, failf(belay.ClassFailed, "The user answered %q, but %s. Ask again, or continue without an answer.", said, strings.TrimPrefix(err.Error(), ErrAnswer.Error()+": "))
	}
	return belay.Result{Text: answer}, nil
}

// grantedBefore is the beginning of the reason of an approval by a grant. Such an
// approval does not answer a question.
const grantedBefore = "allowed before, with approval "

// heard returns the answer to a call: as just received or, if another process
// received it, from the store.
func (e *askUser) heard(ctx context.Context, call *belay.Invocation) (said string, answered bool, err error) {
	of := asked{call.Session, call.Turn, call.ID}
	e.mu.Lock()
	if said, answered = e.answers[of]; answered {
		delete(e.answers, of)
		e.order = slices.DeleteFunc(e.order, func(other asked) bool { return other == of })
	}
	e.mu.Unlock()
	if answered || call.Controls() == nil {
		return said, answered, nil
	}
	list, ok := call.Controls().Store().(belay.ListStore)
	if !ok {
		return "", false, nil
	}
	for a, err := range list.Approvals(ctx, belay.ApprovalFilter{Session: call.Session}) {
		if err != nil {
			return "", false, fmt.Errorf("read the answer: %w", err)
		}
		if a.Turn == call.Turn && a.Call == call.ID && a.Decided != nil && a.Decided.Allow {
			said, answered = a.Decided.Reason, true
		}
	}
	return said, answered, nil
}

// UserQuestion is what ask_user asks.
type UserQuestion struct {
	Question string `json:"question"`
	// Options are the answers to choose from. Without any the answer is free text.
	Options []string `json:"options,omitempty"`
}

// ReadQuestion returns the question of an approval of ask_user. ok is false if the
// approval is for another tool.
func ReadQuestion(asked belay.Question) (question UserQuestion, ok bool) {
	if asked.Tool != AskUserTool {
		return UserQuestion{}, false
	}
	call := belay.Invocation{Input: asked.Input}
	if err := call.Decode(&question); err != nil || question.fault() != "" {
		return UserQuestion{}, false
	}
	return question, true
}

// fault returns why the question cannot be asked, or "".
func (q UserQuestion) fault() string {
	if strings.TrimSpace(q.Question) == "" {
		return "the question is empty"
	}
	for i, option := range q.Options {
		option = strings.TrimSpace(option)
		if option == "" {
			return fmt.Sprintf("option %d is empty", i+1)
		}
		if slices.ContainsFunc(q.Options[:i], func(other string) bool { return strings.EqualFold(strings.TrimSpace(other), option) }) {
			return fmt.Sprintf("option %d, %q, occurs twice", i+1, option)
		}
	}
	return ""
}

// String returns the question with its numbered options, one per line.
func (q UserQuestion) String() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(q.Question))
	for i, option := range q.Options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, strings.TrimSpace(option))
	}
	return b.String()
}

// resolve returns the meant answer: an option, by its text or its number, or the text
// itself.
func (q UserQuestion) resolve(said string) (string, error) {
	said = strings.TrimSpace(said)
	switch {
	case said == "":
		return "", fmt.Errorf("%w: it is empty", ErrAnswer)
	case !utf8.ValidString(said), utf8.RuneCountInString(said) > LongestAnswer:
		return "", fmt.Errorf("%w: it must be text of at most %d characters: put a longer text into a file, and name the file", ErrAnswer, LongestAnswer)
	case len(q.Options) == 0:
		return said, nil
	}
	for _, option := range q.Options {
		if option = strings.TrimSpace(option); strings.EqualFold(option, said) {
			return option, nil
		}
	}
	if n, err := strconv.Atoi(said); err == nil && n >= 1 && n <= len(q.Options) {
		return strings.TrimSpace(q.Options[n-1]), nil
	}
	return "", fmt.Errorf("%w: it is none of the options: %s, or a number from 1 to %d", ErrAnswer, strings.Join(q.Options, ", "), len(q.Options))
}

// Answer makes the decision that answers a question of ask_user, for [belay.Agent.Decide]
// or a store's Decide, with the person's name and answer. An option can be named by its
// number. It returns ErrAnswer if the answer is invalid.
func Answer(asked belay.Question, by, said string) (belay.Decision, error) {
	question, ok := ReadQuestion(asked)
	if !ok {
		return belay.Decision{}, fmt.Errorf("approval %q is about a call of %s and not a question: approve or deny it", asked.ID, cmp.Or(asked.Tool, "nothing"))
	}
	answer, err := question.resolve(said)
	if err != nil {
		return belay.Decision{}, err
	}
	return belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: by, Reason: answer}, nil
}

// Answering returns an approver that asks a person the questions of ask_user. All other
// approvals go to another approver; if that is nil, they are denied. An empty answer is a
// denial. After an invalid answer the question is asked again, at most twice.
func Answering(person string, asker belay.Asker, others belay.Approver) belay.Approver { //nolint:ireturn // an approver is used through the interface
	return &answering{person, asker, others}
}

type answering struct {
	person string
	asker  belay.Asker
	others belay.Approver
}

// mostAsked is how often a question is asked.
const mostAsked = 3

// Approve asks a question, or calls the other approver.
func (a *answering) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	question, ok := ReadQuestion(q)
	switch {
	case !ok && a.others == nil:
		return belay.Decision{}, errors.New("no approver is configured for tool calls")
	case !ok:
		return a.others.Approve(ctx, q)
	}
	in := belay.Inquiry{Session: q.Session, Turn: q.Turn, Agent: q.Agent, Run: q.Run, Depth: q.Depth, Text: question.String()}
	for range mostAsked {
		said, err := a.asker.Ask(ctx, in)
		if err != nil {
			return belay.Decision{}, fmt.Errorf("no answer: %w", err)
		}
		if strings.TrimSpace(said) == "" {
			return belay.Decision{By: a.person, Reason: "the user gave no answer"}, nil
		}
		d, err := Answer(q, a.person, said)
		if err == nil {
			return d, nil
		}
		in.Text = strings.TrimPrefix(err.Error(), "toolbox: ") + "\n" + question.String()
	}
	return belay.Decision{By: a.person, Reason: "the user gave no valid answer"}, nil
}
