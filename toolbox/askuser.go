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

// AskUserTool is the name of the tool that [AskUser] brings.
const AskUserTool = "ask_user"

// LongestAnswer is how many characters an answer has at most: as many as stores keep
// of what is said with a decision.
const LongestAnswer = 512

// ErrAnswer says that an answer will not do: it is empty, too long, or none of the
// options. The question is still open.
var ErrAnswer = errors.New("toolbox: the answer will not do")

// AskUser brings the tool ask_user, by which the model asks the person a question: in
// words, or with options to choose from.
//
// A question is an approval, and its answer a yes with the words as its reason. So
// whatever holds for approvals holds for questions: each call has an id of its own and is
// answered once, by the [belay.Approver] while the turn waits, see [Answering], or by
// [Answer] and [belay.Agent.Decide] when it is parked, from any process. What nobody
// answers expires, and a no is told to the model as one.
func AskUser() belay.Extension { //nolint:ireturn // which interfaces it has is its own matter
	return &askUser{answers: make(map[asked]string)}
}

// asked names the call that a question came with.
type asked struct{ session, turn, call string }

// askUser is the extension. It is safe for concurrent use.
type askUser struct {
	mu      sync.Mutex
	answers map[asked]string // of calls that are about to run
	order   []asked          // the oldest first
}

var (
	_ belay.ToolExtension = (*askUser)(nil)
	_ belay.HookExtension = (*askUser)(nil)
)

// Name is told in errors.
func (*askUser) Name() string { return AskUserTool }

// Tools brings ask_user. It only fetches what was answered, and may do so twice.
func (e *askUser) Tools() []belay.Tool {
	return []belay.Tool{newTool(AskUserTool,
		"Asks the user a question and returns the answer. Ask only what you cannot find out by yourself and cannot go on without. One question a call: make several calls to ask several. "+
			"With options the user chooses one of them; without, the answer is free text. An error means that nobody answered: go on as well as you can without.",
		`{"type": "object", "additionalProperties": false, "required": ["question"], "properties": {
			"question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "The question, with what the user must know to answer it."},
			"options": {"type": "array", "minItems": 2, "maxItems": 20, "uniqueItems": true, "items": {"type": "string", "minLength": 1, "maxLength": 200},
				"description": "The answers to choose from. Leave it out for free text."}}}`,
		lookOnly, e.fetch)}
}

// Hooks bring the gate that puts the question, and the observer that hears the answer.
func (e *askUser) Hooks() []hook.Subscription {
	return []hook.Subscription{
		belay.ToolPre.On(AskUserTool, e.put, &hook.Options{
			Description: "puts the questions of ask_user to a person", Match: hook.Match{Tools: []string{AskUserTool}}, Capabilities: hook.CanAsk | hook.CanBlock,
		}),
		belay.ApprovalDecided.On(AskUserTool+".answer", e.hear, &hook.Options{
			Description: "hears the answers to ask_user", Match: hook.Match{Tools: []string{AskUserTool}},
		}),
	}
}

// put leaves the call to a person: the question is the reason.
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
	if e.order = append(e.order, of); len(e.order) > rememberedAnswers { // of turns that were aborted in between
		delete(e.answers, e.order[0])
		e.order = e.order[1:]
	}
	return belay.Note{}, nil
}

// rememberedAnswers is how many answers wait for their calls at most.
const rememberedAnswers = 1_000

// fetch is the tool: a call that runs was answered.
func (e *askUser) fetch(ctx context.Context, call *belay.Invocation, q *UserQuestion) (belay.Result, error) {
	said, answered, err := e.heard(ctx, call)
	switch {
	case err != nil:
		return belay.Result{}, err
	case !answered, strings.HasPrefix(said, grantedBefore):
		return belay.Result{}, failf(belay.ClassUnavailable, "Nobody answered the question. Go on as well as you can without an answer.")
	}
	answer, err := q.resolve(said)
	if err != nil {
		return belay.Result{}, failf(belay.ClassFailed, "The user said %q, and %s. Ask again, or go on without an answer.", said, strings.TrimPrefix(err.Error(), ErrAnswer.Error()+": "))
	}
	return belay.Result{Text: answer}, nil
}

// grantedBefore begins the reason of a yes that a grant gave: a yes to whatever is
// asked answers no question.
const grantedBefore = "allowed before, with approval "

// heard is what was said to a call: as it was just heard or, if that was in a process
// that has ended, as the store has it.
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

// ReadQuestion is what the person is asked by an approval of ask_user. It is not ok if
// the approval is about another call.
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

// fault says why the question cannot be asked, or nothing.
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
			return fmt.Sprintf("option %d, %q, is there twice", i+1, option)
		}
	}
	return ""
}

// String is the question with its options, numbered, a line each.
func (q UserQuestion) String() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(q.Question))
	for i, option := range q.Options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, strings.TrimSpace(option))
	}
	return b.String()
}

// resolve is the answer that is meant by what was said: an option, by its words or its
// number, or the words themselves.
func (q UserQuestion) resolve(said string) (string, error) {
	said = strings.TrimSpace(said)
	switch {
	case said == "":
		return "", fmt.Errorf("%w: it is empty", ErrAnswer)
	case !utf8.ValidString(said), utf8.RuneCountInString(said) > LongestAnswer:
		return "", fmt.Errorf("%w: it is not text of at most %d characters: put what is longer into a file, and name that", ErrAnswer, LongestAnswer)
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
// or a store's Decide: by whom, and what they said. An option can be named by its number.
// ErrAnswer: the answer will not do.
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

// Answering is an approver that has the questions of ask_user answered in words, by a
// person of that name, and leaves everything else to another approver, which may be nil:
// then everything else is denied. An empty answer is none, and a no. One that will not do
// is told, and the question put again, twice at most.
func Answering(person string, asker belay.Asker, others belay.Approver) belay.Approver { //nolint:ireturn // an approver is used through the interface
	return &answering{person, asker, others}
}

type answering struct {
	person string
	asker  belay.Asker
	others belay.Approver
}

// mostAsked is how often a question is put.
const mostAsked = 3

// Approve puts a question, or has another approver asked.
func (a *answering) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	question, ok := ReadQuestion(q)
	switch {
	case !ok && a.others == nil:
		return belay.Decision{}, errors.New("nobody decides about calls here")
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
	return belay.Decision{By: a.person, Reason: "the user gave no answer that will do"}, nil
}
