package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve/api"
)

// listGrants lists the grants, those of the session that changed last first.
func listGrants(ctx context.Context, s *Server, q *request, in *api.ListGrants) (api.GrantList, error) {
	out := api.GrantList{Grants: []api.Grant{}}
	add := func(info *belay.SessionInfo) {
		for _, g := range info.State.Grants {
			out.Grants = append(out.Grants, api.Grant{Session: info.ID, Grant: g})
		}
	}
	if in.Session != "" {
		info, err := s.session(ctx, q, in.Session)
		if err == nil {
			add(&info)
		}
		return out, err
	}
	filter := belay.SessionFilter{Labels: maps.Clone(q.token.Labels), After: in.After}
	looked, last := 0, ""
	for info, err := range s.pages(ctx, filter, grantsBatch) {
		if err != nil {
			return out, err
		}
		if len(out.Grants) >= in.Limit || looked == mostWork {
			out.Next = last
			break
		}
		looked, last = looked+1, info.Cursor()
		add(&info)
	}
	return out, nil
}

// grantsBatch is how many sessions listGrants reads at once.
const grantsBatch = 500

// revokeGrant removes a grant. The state of a session belongs to the process that runs its turn,
// so a grant cannot be removed while a turn runs.
func revokeGrant(ctx context.Context, s *Server, q *request, in *api.RevokeGrant) (none, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return none{}, err
	}
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: s.store, RefuseBusy: true, Logger: s.log}) // revoking needs no model
	if err != nil {
		return none{}, err
	}
	defer func() { _ = agent.Close(context.WithoutCancel(ctx)) }() // ignore errors: it ran no turn
	err = agent.Session(info.ID).Revoke(ctx, in.Grant)
	switch {
	case errors.Is(err, belay.ErrNotFound):
		err = notFound("grant", in.Grant)
	case errors.Is(err, belay.ErrHeld):
		err = problem(http.StatusConflict, codes.SessionHeld, "a turn of the session is running: abort it, or revoke the grant when it has ended")
	}
	return none{}, err
}
