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

// AskUserTool is the name of the tool that [AskUser] adds.
const AskUserTool = "ask_user"

// LongestAnswer is the maximum length of an answer in characters. Stores keep this many
// characters of the reason of a decision.
const LongestAnswer = 512

// ErrAnswer means that an answer is invalid: it is empty, too long, or none of the
// options. The question stays open.
var ErrAnswer = errors.New("toolbox: the answer is not valid")

// AskUser returns an extension with the tool ask_user. With it, the model asks the user a
// question. The answer is free text, or one of some options.
//
// A question uses the same mechanism as an approval: the answer is an approval whose
// reason is the text. So the rules for approvals apply. Each call has its own id and is
// answered once. While the turn waits, the [belay.Approver] answers, see [Answering].
// When the turn is parked, any process can answer with [Answer] and [belay.Agent.Decide].
// A question without an answer expires. If the question is denied, the model gets the
// denial.
func AskUser() belay.Extension { //nolint:ireturn // its concrete type is private
	return &askUser{answers: make(map[asked]string)}
}

// asked identifies the call that asks a question.
type asked struct{ session, turn, call string }

// askUser is the extension of AskUser. It is safe for concurrent use.
type askUser struct {
	mu      sync.Mutex
	answers map[asked]string // answers whose calls have not fetched them yet
	order   []asked          // the keys of answers, the oldest first
}

var (
	_ belay.ToolExtension = (*askUser)(nil)
	_ belay.HookExtension = (*askUser)(nil)
)

// Name returns "ask_user". Errors use it.
func (*askUser) Name() string { return AskUserTool }

// Tools returns ask_user. Running the tool twice is harmless, because it only fetches the
// answer.
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

// Hooks returns a gate that asks the question, and an observer that receives the answer.
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

// put asks for approval of the call. The text of the question is the reason.
func (*askUser) put(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var q UserQuestion
	if err := call.Decode(&q); err != nil {
		return belay.Pass, err // after an error, the gate denies the call
	}
	if why := q.fault(); why != "" {
		return belay.Deny(why), nil
	}
	return belay.Ask(strings.TrimSpace(q.Question)), nil
}

// hear keeps the answer until the call fetches it.
func (e *askUser) hear(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
	if o.Decision() != "allow" {
		return belay.Note{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	of := asked{o.Session(), o.Turn(), o.Call()}
	e.answers[of] = o.Reason()
	if e.order = append(e.order, of); len(e.order) > rememberedAnswers { // the oldest are from aborted turns
		delete(e.answers, e.order[0])
		e.order = e.order[1:]
	}
	return belay.Note{}, nil
}

// rememberedAnswers is the maximum number of answers that wait for their calls.
const rememberedAnswers = 1_000

// fetch is the function of the tool. A call runs only after its question was answered.
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

// grantedBefore is how the reason begins when an earlier approval covers a call. Such an
// approval is not an answer to the question.
const grantedBefore = "allowed before, with approval "

// heard returns the answer to a call. If this process has not received the answer, heard
// reads it from the store.
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

// UserQuestion is a question of ask_user.
type UserQuestion struct {
	Question string `json:"question"`
	// Options are the answers to choose from. Without options, the answer is free text.
	Options []string `json:"options,omitempty"`
}

// IsQuestion reports whether an approval is a question that needs an answer in words: a
// question of ask_user, or of another tool (see [belay.ParkAsk]).
func IsQuestion(a *belay.Approval) bool {
	return a.Tool == AskUserTool || a.By == belay.AskedByTool
}

// ReadQuestion returns the question of an approval. ok is false if the approval is not a
// question, see [IsQuestion].
func ReadQuestion(asked belay.Question) (question UserQuestion, ok bool) {
	if asked.By == belay.AskedByTool {
		question = UserQuestion{Question: asked.Reason}
		return question, question.fault() == ""
	}
	if asked.Tool != AskUserTool {
		return UserQuestion{}, false
	}
	call := belay.Invocation{Input: asked.Input}
	if err := call.Decode(&question); err != nil || question.fault() != "" {
		return UserQuestion{}, false
	}
	return question, true
}

// fault returns why the question is invalid, or "".
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

// resolve returns the answer that the user meant. An option can be given by its text or
// its number.
func (q UserQuestion) resolve(said string) (string, error) {
	said = strings.TrimSpace(said)
	switch {
	case said == "":
		return "", fmt.Errorf("%w: it is empty", ErrAnswer)
	case !utf8.ValidString(said), utf8.RuneCountInString(said) > LongestAnswer:
		return "", fmt.Errorf("%w: it must be text of at most %d characters: write a longer text to a file, and answer with the name of the file", ErrAnswer, LongestAnswer)
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

// Answer makes the decision that answers a question of ask_user or of another tool. Pass the decision to
// [belay.Agent.Decide] or to the Decide method of a store. The arguments are the
// question, the name of the person, and the answer. An option can be given by its number.
// If the answer is invalid, the error is ErrAnswer.
func Answer(asked belay.Question, by, said string) (belay.Decision, error) {
	question, ok := ReadQuestion(asked)
	if !ok {
		return belay.Decision{}, fmt.Errorf("approval %q is for a call of %s and is not a question: approve or deny the call", asked.ID, cmp.Or(asked.Tool, "nothing"))
	}
	answer, err := question.resolve(said)
	if err != nil {
		return belay.Decision{}, err
	}
	return belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: by, Reason: answer}, nil
}

// Answering returns an approver that asks a person the questions of tools. The approver
// others decides about all other calls. If others is nil, these calls are denied. An empty
// answer is a denial. After an invalid answer, the question is asked again, at most twice.
func Answering(person string, asker belay.Asker, others belay.Approver) belay.Approver { //nolint:ireturn // an approver is used through the interface
	return &answering{person, asker, others}
}

type answering struct {
	person string
	asker  belay.Asker
	others belay.Approver
}

// mostAsked is how often a question is asked at most.
const mostAsked = 3

// Approve asks a question of a tool, or calls the other approver.
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
