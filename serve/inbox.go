package serve

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// inbox lists approvals, with what a person needs to choose one: the session's title and agent,
// and what the user asked for.
func inbox(ctx context.Context, s *Server, q *request, in *api.ListApprovals) (api.ApprovalList, error) {
	out, err := listApprovals(ctx, s, q, in)
	if err != nil {
		return out, err
	}
	type session struct{ title, agent, turn, message string }
	known := make(map[string]session)
	now := time.Now()
	for i := range out.Approvals {
		a := &out.Approvals[i]
		of, ok := known[a.Session]
		if !ok {
			info, found, err := inspect.FindSession(ctx, s.store, a.Session)
			if err != nil {
				return out, err
			}
			if found {
				message, err := inspect.UserMessage(ctx, s.store, &info)
				if err != nil {
					return out, err
				}
				of = session{title: inspect.Beginning(inspect.TitleOf(ctx, s.store, info), inspect.MessageLength), agent: info.State.Agent, message: message}
				if info.State.Turn != nil {
					of.turn = info.State.Turn.ID
				}
			}
			known[a.Session] = of
		}
		a.Title, a.Agent = of.title, of.agent
		if a.Turn == of.turn { // the message of an earlier turn is in the transcript, which would cost more
			a.Message = of.message
		}
		a.Expired = a.Decided == nil && inspect.IsExpired(&a.Approval, now)
	}
	return out, nil
}

// countApprovals counts what listApprovals lists. It reads no transcript, so that every page of
// the console can show the number.
func countApprovals(ctx context.Context, s *Server, q *request, _ *noInput) (api.ApprovalCount, error) {
	var out api.ApprovalCount
	seen := s.visible(q)
	open := make(map[string]string) // the turns by session
	for info, err := range s.store.Sessions(ctx, belay.SessionFilter{Open: true}) {
		if err != nil {
			return out, err
		}
		ok, err := seen.sees(ctx, info.ID)
		if err != nil {
			return out, err
		}
		if ok {
			open[info.ID] = info.State.Turn.ID
			out.Waiting += len(info.State.Turn.Waits)
		}
	}
	now := time.Now()
	for a, err := range s.store.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err != nil {
			return out, err
		}
		if turn, ok := open[a.Session]; ok && turn == a.Turn && !inspect.IsExpired(&a, now) {
			out.Waiting++
		}
	}
	return out, nil
}

// describedApproval returns an approval as the token may see it. The preview shows what is in a
// file now, so it is only for tokens that may decide.
func describedApproval(ctx context.Context, s *Server, q *request, in *approvalIn) (api.Approval, error) {
	out, err := readApproval(ctx, s, q, in)
	if err != nil || out.Advice == nil {
		return out, err
	}
	advice := *out.Advice
	if !q.token.may(RoleApprove) {
		advice.Preview = nil
	}
	out.Advice = q.token.advice(&advice, out.Input)
	return out, nil
}
