package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/toolbox"
)

// The ids of the options of a permission request. The options of a question of the model have
// the number of the answer.
const (
	allowOnce    = "allow-once"
	allowSession = "allow-session"
	allowPattern = "allow-pattern"
	rejectOnce   = "reject-once"
)

// errElsewhere is why a question is withdrawn that somebody else has decided.
var errElsewhere = errors.New("the question was decided elsewhere")

// ask asks the user about what a parked turn waits for, one question after the other. It
// reports whether the turn can be resumed. After an approval that covers more calls, the turn
// is resumed at once: it then asks only about the calls that are still open.
func (s *session) ask(ctx context.Context, waits []belay.Question) (bool, error) {
	for i := range waits {
		q := &waits[i]
		if q.ID == "" {
			s.say(fmt.Sprintf("The turn waits for %s. Send a message when it has happened.", visible.OneLine(cmp.Or(q.Wait, q.Tool))))
			return false, nil
		}
		scope, decided, err := s.askOne(ctx, q)
		if err != nil || !decided {
			return false, err
		}
		if scope.Kind == belay.ScopeSession || scope.Kind == belay.ScopePattern {
			return true, nil
		}
	}
	return true, nil
}

// askOne asks one question. It reports false if the question stays open.
func (s *session) askOne(ctx context.Context, q *belay.Question) (scope belay.ApprovalScope, decided bool, err error) {
	asking, withdraw := context.WithCancelCause(ctx)
	defer withdraw(nil)
	if !q.Expires.IsZero() {
		var cancel context.CancelFunc
		asking, cancel = context.WithDeadlineCause(asking, q.Expires, errElsewhere) // the turn notices that the question has expired
		defer cancel()
	}
	watching := s.heed(asking, q.ID, withdraw)
	defer func() { withdraw(nil); <-watching }()
	d, err := s.question(asking, q)
	switch {
	case errors.Is(context.Cause(asking), errElsewhere):
		return scope, true, nil
	case ctx.Err() != nil:
		return scope, false, context.Cause(ctx)
	case err != nil: // the editor cannot ask, or it failed
		s.e.server.opts.Logger.WarnContext(ctx, "the editor did not answer a question", "session", s.id, "approval", q.ID, "error", err)
		s.say(fmt.Sprintf("%s waits for a decision, and this editor did not answer: decide with `belay approvals approve %s` or `belay approvals deny %s`, and then send a message here.", q.Tool, q.ID, q.ID))
		return scope, false, nil
	case d == nil:
		return scope, false, nil
	}
	if err := s.decide(ctx, q, *d); err != nil {
		return scope, false, err
	}
	return d.Scope, true, nil
}

// heed withdraws a question when somebody decides about it elsewhere. The channel is closed
// when heed has ended.
func (s *session) heed(ctx context.Context, approval string, withdraw context.CancelCauseFunc) <-chan struct{} {
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		often := time.NewTicker(s.e.server.opts.Heed)
		defer often.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-often.C:
			}
			for a, err := range s.space.Store.Approvals(ctx, belay.ApprovalFilter{ID: approval}) {
				if err == nil && a.Decided != nil {
					withdraw(errElsewhere)
					return
				}
			}
		}
	}()
	return done
}

// decide stores a decision. If somebody else was faster, or the question has expired, that
// counts.
func (s *session) decide(ctx context.Context, q *belay.Question, d belay.Decision) error {
	d.Approval, d.Hash, d.By = q.ID, q.Hash, s.person()
	_, err := s.space.Agent.Decide(ctx, d)
	if errors.Is(err, belay.ErrDecided) || errors.Is(err, belay.ErrExpired) {
		return nil
	}
	return err
}

// person returns who decides in this editor.
func (s *session) person() string {
	if s.e.client.name == "" {
		return s.e.server.opts.Person
	}
	return s.e.server.opts.Person + " (" + visible.OneLine(s.e.client.name) + ")"
}

// question asks the editor. Without a decision the question stays open.
func (s *session) question(ctx context.Context, q *belay.Question) (*belay.Decision, error) {
	if question, ok := toolbox.ReadQuestion(*q); ok {
		return s.answer(ctx, q, &question)
	}
	var advice Advice
	if s.space.Advise != nil {
		var err error
		if advice, err = s.space.Advise(ctx, q); err != nil {
			return nil, fmt.Errorf("describe the call: %w", err)
		}
	}
	chosen, err := s.permission(ctx, q, cmp.Or(advice.Why, q.Reason), advice.Run, permissions(q.Tool, advice.Pattern))
	if err != nil {
		return nil, err
	}
	d := &belay.Decision{Allow: chosen != rejectOnce}
	switch chosen {
	case allowOnce:
	case allowSession:
		d.Scope.Kind = belay.ScopeSession
	case allowPattern:
		d.Scope = belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: advice.Pattern}
	case rejectOnce:
		d.Reason = "the user denied the call"
	}
	return d, nil
}

// permissions are the options of a permission request.
func permissions(tool, pattern string) []sdk.PermissionOption {
	if tool == toolPlan {
		return []sdk.PermissionOption{
			{OptionId: allowOnce, Kind: sdk.PermissionOptionKindAllowOnce, Name: "Approve the plan"},
			{OptionId: rejectOnce, Kind: sdk.PermissionOptionKindRejectOnce, Name: "Keep planning"},
		}
	}
	all := []sdk.PermissionOption{
		{OptionId: allowOnce, Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once"},
		{OptionId: allowSession, Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow for this session"},
	}
	if pattern != "" {
		all = append(all, sdk.PermissionOption{OptionId: allowPattern, Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow all like " + visible.OneLine(pattern)})
	}
	return append(all, sdk.PermissionOption{OptionId: rejectOnce, Kind: sdk.PermissionOptionKindRejectOnce, Name: "Reject"})
}

// permission sends a permission request, and returns the option that the user has chosen.
func (s *session) permission(ctx context.Context, q *belay.Question, why, run string, options []sdk.PermissionOption) (sdk.PermissionOptionId, error) {
	if run != "" {
		why = strings.TrimRight(why, ". ") + ". It would run " + run + "."
	}
	content := append(s.before(q.Tool, q.Input, func(path string) (string, bool) { return s.textOf(ctx, path) }), sdk.ToolContent(sdk.TextBlock(visible.All(why))))
	var out sdk.RequestPermissionResponse
	err := s.e.conn.Call(ctx, sdk.ClientMethodSessionRequestPermission, &sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(s.id), Options: options,
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: sdk.ToolCallId(callID(q.Run, q.Call)), Title: new(titleOfCall(q.Tool, q.Input)), Kind: new(kindOf(q.Tool)),
			Status: sdk.Ptr(sdk.ToolCallStatusPending), RawInput: q.Input, Locations: s.locations(q.Tool, q.Input), Content: content,
		},
	}, &out)
	switch {
	case err != nil:
		return "", err
	case out.Outcome.Cancelled != nil:
		s.interrupt(errCancelled)
		return "", errCancelled
	case out.Outcome.Selected == nil:
		return "", errors.New("the editor's answer has no outcome")
	}
	for _, o := range options {
		if o.OptionId == out.Outcome.Selected.OptionId {
			return o.OptionId, nil
		}
	}
	return "", fmt.Errorf("the editor chose %q, which is none of the options", out.Outcome.Selected.OptionId)
}

// answer asks a question of the model. Options become the options of a permission request. For
// an answer in words, an editor with forms shows one. In other editors the next message of the
// user is the answer.
func (s *session) answer(ctx context.Context, q *belay.Question, question *toolbox.UserQuestion) (*belay.Decision, error) {
	if s.e.client.forms {
		return s.form(ctx, q, question)
	}
	if len(question.Options) == 0 {
		s.say(question.Question)
		return nil, nil //nolint:nilnil // the question stays open
	}
	var options []sdk.PermissionOption
	for i, text := range question.Options {
		options = append(options, sdk.PermissionOption{OptionId: sdk.PermissionOptionId(strconv.Itoa(i + 1)), Kind: sdk.PermissionOptionKindAllowOnce, Name: visible.OneLine(text)})
	}
	options = append(options, sdk.PermissionOption{OptionId: rejectOnce, Kind: sdk.PermissionOptionKindRejectOnce, Name: "No answer"})
	chosen, err := s.permission(ctx, q, question.Question, "", options)
	if err != nil {
		return nil, err
	}
	if chosen == rejectOnce {
		return &belay.Decision{Reason: "the user gave no answer"}, nil
	}
	d, err := toolbox.Answer(*q, s.person(), string(chosen))
	return &d, err
}

// form asks a question with a form of the editor.
func (s *session) form(ctx context.Context, q *belay.Question, question *toolbox.UserQuestion) (*belay.Decision, error) {
	field := map[string]any{"type": "string", "title": "Answer"}
	if len(question.Options) > 0 {
		field["enum"] = question.Options
	}
	type scoped struct { // the SDK's type does not name the session
		*sdk.UnstableCreateElicitationForm

		Session string `json:"sessionId"`  //nolint:tagliatelle // the protocol's name
		Call    string `json:"toolCallId"` //nolint:tagliatelle // likewise
	}
	var out struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	err := s.e.conn.Call(ctx, sdk.ClientMethodElicitationCreate, scoped{
		&sdk.UnstableCreateElicitationForm{Mode: "form", Message: visible.All(question.Question), RequestedSchema: sdk.UnstableElicitationSchema{
			Type: sdk.UnstableElicitationSchemaTypeObject, Properties: map[string]any{"answer": field}, Required: []string{"answer"},
		}}, s.id, callID(q.Run, q.Call),
	}, &out)
	if err != nil {
		return nil, err
	}
	said, _ := out.Content["answer"].(string)
	if out.Action != "accept" || strings.TrimSpace(said) == "" {
		return &belay.Decision{Reason: "the user gave no answer"}, nil
	}
	d, err := toolbox.Answer(*q, s.person(), said)
	return &d, err
}
