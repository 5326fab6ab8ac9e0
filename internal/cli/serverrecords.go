package cli

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// serverRecords are the records of a server.
type serverRecords struct{ c *serverClient }

var _ records = (*serverRecords)(nil)

// Pages are as large as the server allows.
const (
	sessionsPage  = 500
	approvalsPage = 500
	grantsPage    = 500
	runsPage      = 1000
)

func (r *serverRecords) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[api.Session, error] {
	page := sessionsPage
	if filter.Limit > 0 {
		page = min(filter.Limit, page)
	}
	all := r.c.Sessions(ctx, api.ListSessions{Prefix: cmp.Or(filter.ID, filter.Prefix), Since: filter.Since, Label: filter.Labels, Open: filter.Open, Children: true, After: filter.After, Limit: page})
	return func(yield func(api.Session, error) bool) {
		count := 0
		for one, err := range all {
			if err == nil && filter.ID != "" && one.ID != filter.ID {
				continue
			}
			if count++; !yield(one, err) || err != nil || count == filter.Limit {
				return
			}
		}
	}
}

func (r *serverRecords) Session(ctx context.Context, id string) (api.Session, error) {
	return r.c.ReadSession(ctx, id)
}

func (r *serverRecords) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return r.c.Messages(ctx, session, after)
}

func (r *serverRecords) Calls(ctx context.Context, session string) ([]belay.CallRecord, error) {
	s, err := r.c.ReadSession(ctx, session)
	return s.Calls, err
}

func (r *serverRecords) Queue(ctx context.Context, session string) ([]api.QueuedTurn, error) {
	queue, err := r.c.ListQueue(ctx, session)
	return queue.Turns, err
}

// statePoll is how often Watch reads the state of a session. Most changes come as events, but
// no event says that a worker was killed.
const statePoll = 5 * time.Second

// Watch reads messages and the state whenever an event of the session says that something was
// stored.
func (r *serverRecords) Watch(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		first, err := r.c.ReadSession(ctx, session)
		if err != nil {
			yield(nil, err)
			return
		}
		stirred, failed := make(chan struct{}, 1), make(chan error, 1)
		go func() { failed <- r.stir(ctx, session, first.Position, stirred) }() // ends with ctx, or with an error
		w := &serverWatch{r: r, session: session, after: after, yield: yield}
		poll := time.NewTicker(statePoll)
		defer poll.Stop()
		for {
			if err := w.update(ctx); err != nil || w.left {
				if err != nil && ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			select {
			case <-stirred:
			case <-poll.C:
			case err := <-failed:
				if err != nil && ctx.Err() == nil {
					yield(nil, err)
				}
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// stir sends a signal for each event that changes what is stored of a session.
func (r *serverRecords) stir(ctx context.Context, session, after string, stirred chan<- struct{}) error {
	last := after
	for e, err := range r.c.Events(ctx, session, after) {
		if _, missed := errors.AsType[*belay.MissedError](err); err != nil && !missed {
			return err
		}
		if err == nil && e.Position == last && e.Kind != belay.EventTurnStart { // a delta or the like
			continue
		}
		last = cmp.Or(e.Position, last)
		select {
		case stirred <- struct{}{}:
		default: // a signal already waits
		}
	}
	return nil
}

// serverWatch is one call of Watch.
type serverWatch struct {
	r       *serverRecords
	session string
	after   int64  // the number of the last message
	state   string // the last state
	yield   func(*belay.Message, error) bool
	left    bool // the consumer has left
}

// update yields the new messages, and nil if the state has changed.
func (w *serverWatch) update(ctx context.Context) error {
	s, err := w.r.c.ReadSession(ctx, w.session)
	if err != nil {
		return err
	}
	if s.Last > w.after {
		for m, err := range w.r.c.Messages(ctx, w.session, w.after) {
			if err != nil {
				return err
			}
			if w.left = !w.yield(m, nil); w.left {
				return nil
			}
			w.after = m.Seq
		}
	}
	if state := s.State + " " + s.Position; state != w.state {
		w.state = state
		w.left = !w.yield(nil, nil)
	}
	return nil
}

func (r *serverRecords) Update(ctx context.Context, in api.UpdateSession) error {
	_, err := r.c.UpdateSession(ctx, in)
	return err
}

func (r *serverRecords) Delete(ctx context.Context, session string) error {
	return r.c.DeleteSession(ctx, session)
}

func (r *serverRecords) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(yield func(belay.Approval, error) bool) {
		in := api.ListApprovals{Session: filter.Session, All: true, Undecided: filter.Pending, After: filter.After, Limit: approvalsPage}
		count := 0
		for {
			page, err := r.c.ListApprovals(ctx, in)
			if err != nil {
				yield(belay.Approval{}, err)
				return
			}
			for i := range page.Approvals {
				if count++; !yield(page.Approvals[i].Approval, nil) || count == filter.Limit {
					return
				}
			}
			if in.After = page.Next; in.After == "" {
				return
			}
		}
	}
}

func (r *serverRecords) Approval(ctx context.Context, approval *belay.Approval) (api.Approval, error) {
	return r.c.ReadApproval(ctx, approval.ID)
}

func (r *serverRecords) Decide(ctx context.Context, approval *belay.Approval, in api.DecideApproval) (belay.Approval, error) {
	decided, err := r.c.DecideApproval(ctx, in)
	problem, _ := errors.AsType[*api.Problem](err)
	switch {
	case err == nil:
		return decided.Approval, nil
	case errors.Is(err, belay.ErrDecided):
		if stored, unread := r.c.ReadApproval(ctx, approval.ID); unread == nil {
			return stored.Approval, err
		}
	case problem != nil && problem.Field == "/pattern":
		return *approval, scopeError(in.Pattern, err)
	case problem != nil && problem.Field == "/answer":
		return *approval, usage("approval %s: %w", approval.ID, err)
	}
	return *approval, err
}

func (r *serverRecords) Grants(ctx context.Context, session string) ([]api.Grant, error) {
	in := api.ListGrants{Session: session, Limit: grantsPage}
	var all []api.Grant
	for {
		page, err := r.c.ListGrants(ctx, in)
		all = append(all, page.Grants...)
		if in.After = page.Next; err != nil || in.After == "" {
			return all, err
		}
	}
}

func (r *serverRecords) Revoke(ctx context.Context, session, grant string) error {
	return r.c.RevokeGrant(ctx, session, grant)
}

// perPage returns how many records to ask a server for.
func (o *runsOptions) perPage() int {
	if o.filter.Limit > 0 && o.run == "" {
		return min(o.filter.Limit, runsPage)
	}
	return runsPage
}

// Runs reads the list page by page. The pages are separated by the start times of the records.
func (r *serverRecords) Runs(ctx context.Context, o *runsOptions) ([]hook.Run, <-chan followed, error) {
	f := &o.filter
	in := api.ListRuns{Session: f.Session, Turn: f.Turn, Phase: f.Phase, Subscription: f.Subscription, State: o.states, Since: f.Since, All: o.all || o.run != ""}
	var runs []hook.Run
	type key struct{ session, run string }
	seen := make(map[key]bool)
	for f.Limit == 0 || len(runs) < f.Limit {
		in.Limit = o.perPage()
		page, err := r.c.ListRuns(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		before := len(seen)
		for i := range page.Runs {
			one := &page.Runs[i]
			if k := (key{one.Scope.Session, one.ID}); !seen[k] {
				seen[k] = true
				if o.shown(one) {
					runs = append(runs, *one)
				}
			}
		}
		if len(page.Runs) < in.Limit || len(seen) == before {
			break
		}
		in.Until = page.Runs[len(page.Runs)-1].Started.Add(1) // other records may have started at the same time
	}
	if f.Limit > 0 {
		runs = runs[:min(len(runs), f.Limit)]
	}
	slices.Reverse(runs)
	if !o.follow {
		return runs, nil, nil
	}
	var since time.Time
	if len(runs) > 0 {
		since = runs[len(runs)-1].Started
	}
	coming := func(yield func(hook.Run, error) bool) {
		for one, err := range r.c.RunEvents(ctx, api.RunEvents{Session: f.Session, All: o.all}, since) {
			if err == nil && !f.Match(one) {
				continue
			}
			if !yield(one, err) {
				return
			}
		}
	}
	return runs, sendRuns(ctx, coming), nil
}

func (r *serverRecords) Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]api.UsageRow, error) {
	used, err := r.c.ReadUsage(ctx, api.ReadUsage{Label: labels, Since: since, By: by})
	return used.Rows, err
}

func (r *serverRecords) Load(ctx context.Context) (*belay.Load, error) {
	load, err := r.c.ReadWorkers(ctx)
	if errors.Is(err, belay.ErrNotFound) { // the token is limited to labels
		return nil, nil //nolint:nilnil // see the interface
	}
	return &load.Turns, err
}
