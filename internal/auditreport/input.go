package auditreport

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/recorded"
)

// input is what a question reads.
type input struct {
	Filter

	source Source
}

// sessions returns the sessions that the filter selects, the last changed first. A session of a
// subagent has the labels of its parent.
func (in *input) sessions(ctx context.Context) (all []belay.SessionInfo, err error) {
	labelled := map[string]bool{}
	if len(in.Labels) > 0 {
		for s, err := range in.source.Sessions(ctx, belay.SessionFilter{Labels: in.Labels}) {
			if err != nil {
				return nil, err
			}
			labelled[root(s.ID)] = true
		}
	}
	for s, err := range in.source.Sessions(ctx, belay.SessionFilter{Prefix: in.Session, Since: in.Since}) {
		if err != nil {
			return nil, err
		}
		if in.covers(s.ID) && (len(in.Labels) == 0 || labelled[root(s.ID)]) && !s.Changed.Before(in.Since) {
			all = append(all, s)
		}
	}
	return all, nil
}

// root returns the session that a session of a subagent belongs to.
func root(session string) string {
	top, _, _ := strings.Cut(session, "/")
	return top
}

// covers reports whether a session is the one of the filter, or belongs to one of its subagents.
func (in *input) covers(id string) bool {
	return in.Session == "" || id == in.Session || strings.HasPrefix(id, in.Session+"/")
}

// wanted returns a function that reports whether records of a session count.
func (in *input) wanted(ctx context.Context) (func(session string) bool, error) {
	if len(in.Labels) == 0 {
		return in.covers, nil
	}
	always := *in
	always.Since = time.Time{} // a record can be newer than the last change of its session
	list, err := always.sessions(ctx)
	ids := make(map[string]bool, len(list))
	for i := range list {
		ids[list[i].ID] = true
	}
	return func(session string) bool { return ids[session] }, err
}

// runs passes each record that the filter selects to each.
func (in *input) runs(ctx context.Context, each func(*hook.Run), states ...hook.State) error {
	wanted, err := in.wanted(ctx)
	if err != nil {
		return err
	}
	for r, err := range in.source.Runs(ctx, in.Since, states) {
		if err != nil {
			return err
		}
		if r.Subscription != "" && wanted(r.Scope.Session) {
			each(&r)
		}
	}
	return nil
}

// blocked returns why hooks blocked the last turn of sessions, by the id of the hook's record. A
// session keeps only how its last turn ended.
func (in *input) blocked(ctx context.Context) (map[string]string, error) {
	always := *in
	always.Since = time.Time{} // as for wanted
	list, err := always.sessions(ctx)
	if err != nil {
		return nil, err
	}
	endings := make(map[string]*belay.Ending)
	for i := range list {
		if s := &list[i].State; s.Last == belay.EndBlocked && s.Ending != nil && s.Turn == nil {
			endings[list[i].ID] = s.Ending
		}
	}
	if len(endings) == 0 {
		return nil, nil // the journal is long
	}
	last := make(map[string]hook.Run) // the last denial of the hook that ended the session's last turn
	err = in.runs(ctx, func(r *hook.Run) {
		e := endings[r.Scope.Session]
		if e == nil || e.By != r.Subscription || r.Shadow || r.Severity < hook.SeverityDeny {
			return
		}
		if known, ok := last[r.Scope.Session]; !ok || !r.Started.Before(known.Started) {
			last[r.Scope.Session] = *r
		}
	})
	reasons := make(map[string]string, len(last))
	for session := range last {
		reasons[last[session].ID] = endings[session].Why
	}
	return reasons, err
}

// calls passes each call that the filter selects to each. The calls that a fork has copied are
// those of the other session.
func (in *input) calls(ctx context.Context, each func(*recorded.Call)) error {
	sessions, err := in.sessions(ctx)
	if err != nil {
		return err
	}
	for i := range sessions {
		id, from := sessions[i].ID, recorded.Copied(sessions[i].State.ForkedFrom)
		for c, err := range recorded.Calls(id, in.source.Read(ctx, id, from)) {
			if errors.Is(err, belay.ErrNotFound) {
				break // the session was deleted after it was listed
			}
			if err != nil {
				return err
			}
			if !c.Time.Before(in.Since) {
				each(&c)
			}
		}
	}
	return nil
}
