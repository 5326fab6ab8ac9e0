package serve

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/toolbox"
)

type listApprovalsIn struct {
	Session string `json:"session,omitempty" in:"query" jsonschema:"only of this session and its subagents"`
	All     bool   `json:"all,omitempty" in:"query" jsonschema:"also those that are decided"`
	Limit   int    `json:"limit" in:"query" minimum:"1" maximum:"500" default:"100" jsonschema:"the maximum number of approvals"`
}

// approvalOut is an approval with its call.
type approvalOut struct {
	belay.Approval
	// Input is the input of the call. It is absent if the transcript does not have it.
	Input json.RawMessage `json:"input,omitempty"`
	Agent string          `json:"agent,omitempty"`
	// Wait says what a call waits for that its tool has parked. Nobody can decide it.
	Wait string `json:"wait,omitempty" jsonschema:"what a call waits for that its own tool has parked; nobody can decide it"`
	// Question is the text of a question that the model asks. Answer it with the field answer
	// of the decision.
	Question string          `json:"question,omitempty" jsonschema:"a question of the model: send the field answer to answer it"`
	Advice   *inspect.Advice `json:"advice,omitempty" jsonschema:"what the call affects; only when one approval is read"`
}

// approvalList is a list of approvals.
type approvalList struct {
	Approvals []approvalOut `json:"approvals"`
}

func outOf(q belay.Question) approvalOut {
	out := approvalOut{Approval: q.Approval, Input: q.Input, Agent: q.Agent, Wait: q.Wait}
	if asked, ok := toolbox.ReadQuestion(q); ok {
		out.Question = asked.String()
	}
	return out
}

func listApprovals(ctx context.Context, s *Server, q *request, in *listApprovalsIn) (approvalList, error) {
	out := approvalList{Approvals: []approvalOut{}}
	if in.Session != "" {
		if _, err := s.session(ctx, q, in.Session); err != nil {
			return out, err
		}
	}
	seen := s.visible(q)
	add := func(one approvalOut) (more bool, err error) {
		ok, err := seen.sees(ctx, one.Session)
		if ok && err == nil {
			out.Approvals = append(out.Approvals, one)
		}
		return len(out.Approvals) < in.Limit, err
	}
	if !in.All {
		for question, err := range belay.Questions(ctx, s.store, belay.ApprovalFilter{Session: in.Session}) {
			if err != nil {
				return out, err
			}
			if more, err := add(outOf(question)); err != nil || !more {
				return out, err
			}
		}
		return out, nil
	}
	all, err := inspect.ApprovalsInOrder(ctx, s.store, belay.ApprovalFilter{Session: in.Session})
	if err != nil {
		return out, err
	}
	for i := range all {
		if more, err := add(approvalOut{Approval: all[i]}); err != nil || !more {
			return out, err
		}
	}
	return out, nil
}

type approvalIn struct {
	Approval string `json:"approval" in:"path" required:"true" jsonschema:"the id of the approval"`
}

// approval finds an approval that the token may see.
func (s *Server) approval(ctx context.Context, q *request, id string) (belay.Approval, error) {
	for a, err := range s.store.Approvals(ctx, belay.ApprovalFilter{ID: id}) {
		if err != nil {
			return a, err
		}
		if ok, err := s.visible(q).sees(ctx, a.Session); err != nil {
			return belay.Approval{}, err
		} else if ok {
			return a, nil
		}
	}
	return belay.Approval{}, notFound("approval", id)
}

func readApproval(ctx context.Context, s *Server, q *request, in *approvalIn) (approvalOut, error) {
	a, err := s.approval(ctx, q, in.Approval)
	if err != nil {
		return approvalOut{}, err
	}
	input, err := inspect.InputOf(ctx, s.store, &a)
	if err != nil { // the transcript may have been compacted or pruned
		return approvalOut{Approval: a}, nil //nolint:nilerr // the approval itself is known
	}
	info, _, err := inspect.FindSession(ctx, s.store, a.Session)
	if err != nil {
		return approvalOut{}, err
	}
	out := outOf(belay.Question{Approval: a, Input: input, Agent: info.State.Agent})
	if out.Question == "" { // a question of the model has no effects to describe
		advice, err := s.project.Advise(ctx, s.store, &a, input)
		if err != nil {
			return out, err
		}
		out.Advice = &advice
	}
	return out, nil
}

type decideIn struct {
	Approval string  `json:"approval" in:"path" required:"true" jsonschema:"the id of the approval"`
	Hash     string  `json:"hash" required:"true" jsonschema:"the field hash of the approval: the decision is about exactly this input"`
	Allow    bool    `json:"allow" required:"true" jsonschema:"true to approve, false to deny"`
	Scope    string  `json:"scope" enum:"once,session,pattern" default:"once" jsonschema:"what an approval covers: this call, this tool in this session, or calls that the pattern covers"`
	Pattern  string  `json:"pattern,omitempty" jsonschema:"the pattern for the scope pattern, such as shell(git push *)"`
	Reason   string  `json:"reason,omitempty" jsonschema:"the reason, for the model"`
	Answer   *string `json:"answer,omitempty" jsonschema:"the answer to a question of the model"`
}

func decideApproval(ctx context.Context, s *Server, q *request, in *decideIn) (approvalOut, error) {
	a, err := s.approval(ctx, q, in.Approval)
	if err != nil {
		return approvalOut{}, err
	}
	d := belay.Decision{Allow: in.Allow, Reason: in.Reason}
	if a.Decided == nil && a.Hash == in.Hash {
		if d, err = s.decision(ctx, q, &a, in); err != nil {
			return approvalOut{}, err
		}
	}
	d.Approval, d.Hash, d.By, d.Time = a.ID, in.Hash, q.token.by(), time.Now()
	stored, err := s.store.Decide(ctx, d)
	if err != nil {
		return approvalOut{}, err
	}
	return approvalOut{Approval: stored}, nil
}

// decision makes the decision that a request asks for.
func (s *Server) decision(ctx context.Context, q *request, a *belay.Approval, in *decideIn) (belay.Decision, error) {
	d := belay.Decision{Allow: in.Allow, Reason: in.Reason}
	switch {
	case in.Scope == "pattern" && in.Pattern == "":
		return d, invalid("/pattern", "the scope pattern needs a pattern, such as shell(git push *)")
	case in.Scope != "pattern" && in.Pattern != "":
		return d, invalid("/pattern", "a pattern needs the scope pattern")
	case in.Scope == "session":
		d.Scope.Kind = belay.ScopeSession
	case in.Scope == "pattern":
		d.Scope = belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: in.Pattern}
	}
	if d.Scope.Kind == belay.ScopePattern && in.Allow {
		if err := s.project.CheckScope(ctx, s.store, a, in.Pattern); err != nil {
			return d, invalid("/pattern", "%v", err)
		}
	}
	if a.Tool != toolbox.AskUserTool {
		if in.Answer != nil {
			return d, invalid("/answer", "the approval is not a question of the model: leave the answer out")
		}
		return d, nil
	}
	input, err := inspect.InputOf(ctx, s.store, a)
	if err != nil {
		return d, err
	}
	question := belay.Question{Approval: *a, Input: input}
	if _, words := toolbox.ReadQuestion(question); !words || !in.Allow {
		return d, nil
	}
	if in.Answer == nil {
		return d, invalid("/answer", "the approval is a question of the model: send the answer, or allow=false to refuse it")
	}
	d, err = toolbox.Answer(question, q.token.by(), *in.Answer)
	if errors.Is(err, toolbox.ErrAnswer) {
		return d, invalid("/answer", "%s", strings.TrimPrefix(err.Error(), "toolbox: "))
	}
	return d, err
}
