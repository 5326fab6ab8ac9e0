package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

func listApprovals(ctx context.Context, s *Server, q *request, in *api.ListApprovals) (api.ApprovalList, error) {
	out := api.ApprovalList{Approvals: []api.Approval{}}
	if in.Session != "" {
		if _, err := s.session(ctx, q, in.Session); err != nil {
			return out, err
		}
	}
	seen := s.visible(q)
	if in.All {
		return s.allApprovals(ctx, seen, in)
	}
	for question, err := range belay.Questions(ctx, s.store, belay.ApprovalFilter{Session: in.Session}) {
		if err != nil {
			return out, err
		}
		ok, err := seen.sees(ctx, question.Session)
		if err != nil {
			return out, err
		}
		if ok {
			out.Approvals = append(out.Approvals, inspect.ApprovalOf(question))
		}
		if len(out.Approvals) == in.Limit {
			break
		}
	}
	return out, nil
}

// allApprovals returns a page of approvals, also of those that are decided. The cursor is the
// id of the last approval of the page, in the order of the store.
func (s *Server) allApprovals(ctx context.Context, seen *visible, in *api.ListApprovals) (api.ApprovalList, error) {
	out := api.ApprovalList{Approvals: []api.Approval{}}
	if in.After != "" {
		if _, err := s.approval(ctx, seen.q, in.After); err != nil {
			return out, problem(http.StatusBadRequest, codes.CursorInvalid, "the cursor %.80q is invalid: list the approvals again from the beginning", in.After)
		}
	}
	page, err := s.approvalsAfter(ctx, seen, in, in.Limit+1)
	if err != nil {
		return out, err
	}
	if len(page) > in.Limit {
		page = page[:in.Limit]
		out.Next = page[in.Limit-1].ID
	}
	if err := inspect.OrderApprovals(ctx, s.store, page); err != nil {
		return out, err
	}
	for i := range page {
		out.Approvals = append(out.Approvals, api.Approval{Approval: page[i]})
	}
	return out, nil
}

// approvalsAfter returns the first approvals that the token may see, in the order of the
// store. It reads in batches, because the token may see few of them.
func (s *Server) approvalsAfter(ctx context.Context, seen *visible, in *api.ListApprovals, count int) ([]belay.Approval, error) {
	var page []belay.Approval
	filter := belay.ApprovalFilter{Session: in.Session, Pending: in.Undecided, After: in.After, Limit: count}
	for {
		read := 0
		for a, err := range s.store.Approvals(ctx, filter) {
			if err != nil {
				return nil, err
			}
			read, filter.After = read+1, a.ID
			if ok, err := seen.sees(ctx, a.Session); err != nil {
				return nil, err
			} else if ok {
				page = append(page, a)
			}
			if len(page) == count {
				return page, nil
			}
		}
		if read < filter.Limit {
			return page, nil
		}
	}
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

func readApproval(ctx context.Context, s *Server, q *request, in *approvalIn) (api.Approval, error) {
	a, err := s.approval(ctx, q, in.Approval)
	if err != nil {
		return api.Approval{}, err
	}
	return s.project.Approval(ctx, s.store, &a)
}

func decideApproval(ctx context.Context, s *Server, q *request, in *api.DecideApproval) (api.Approval, error) {
	a, err := s.approval(ctx, q, in.Approval)
	if err != nil {
		return api.Approval{}, err
	}
	d := belay.Decision{Allow: in.Allow, Reason: in.Reason}
	if a.Decided == nil && a.Hash == in.Hash {
		if d, err = s.decision(ctx, q, &a, in); err != nil {
			return api.Approval{}, err
		}
	}
	d.Approval, d.Hash, d.By, d.Time = a.ID, in.Hash, q.token.by(), time.Now()
	stored, err := s.store.Decide(ctx, d)
	if err != nil {
		return api.Approval{}, err
	}
	return api.Approval{Approval: stored}, nil
}

// decision makes the decision that a request asks for.
func (s *Server) decision(ctx context.Context, q *request, a *belay.Approval, in *api.DecideApproval) (belay.Decision, error) {
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
	if d.Scope.Kind != belay.ScopeOnce && in.Allow && a.Tool == toolbox.PlanTool {
		return d, invalid("/scope", "an approval of a plan is for this plan only: use the scope once")
	}
	if d.Scope.Kind == belay.ScopePattern && in.Allow {
		if err := s.project.CheckScope(ctx, s.store, a, in.Pattern); err != nil {
			return d, invalid("/pattern", "%v", err)
		}
	}
	if !toolbox.IsQuestion(a) {
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
