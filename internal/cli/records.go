package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/auditreport"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

// records is where commands read and change sessions, approvals and records of hooks: the store
// of the project, or a server (--server). Both do the same, so a command has one output.
type records interface {
	sessionRecords
	approvalRecords

	// Runs returns records of hooks, the oldest first. With --follow it also returns those that
	// come later.
	Runs(ctx context.Context, o *runsOptions) ([]hook.Run, <-chan followed, error)
	// Usage adds up what sessions have used: by agent, day, model or label:NAME.
	Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]api.UsageRow, error)
	// Audit answers a question over all sessions.
	Audit(ctx context.Context, q *auditreport.Question, filter auditreport.Filter) (*auditreport.Report, error)
	// Load returns what the workers do. It returns nil if the token may not see it.
	Load(ctx context.Context) (*belay.Load, error)
}

// sessionRecords are the sessions.
type sessionRecords interface {
	// Sessions yields the sessions that match, also those of subagents. The last changed come
	// first.
	Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[api.Session, error]
	// Session returns the session with exactly this id, or belay.ErrNotFound.
	Session(ctx context.Context, id string) (api.Session, error)
	// Read yields the messages of a session with numbers higher than after.
	Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
	// Calls returns the calls of the open step of a session, with their results so far.
	Calls(ctx context.Context, session string) ([]belay.CallRecord, error)
	// Queue returns the turns of a session that have not begun.
	Queue(ctx context.Context, session string) ([]api.QueuedTurn, error)
	// Watch yields the messages of a session as they are stored, and nil after each change of
	// its state.
	Watch(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
	// Update changes the title or the labels of a session. Delete deletes the session.
	Update(ctx context.Context, in api.UpdateSession) error
	Delete(ctx context.Context, session string) error
}

// approvalRecords are the approvals.
type approvalRecords interface {
	// Approvals yields the approvals that match, oldest first.
	Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error]
	// Approval adds the call of an approval, and what the call would do.
	Approval(ctx context.Context, approval *belay.Approval) (api.Approval, error)
	// Decide stores a decision. If the approval was already decided, it returns the stored
	// approval and belay.ErrDecided.
	Decide(ctx context.Context, approval *belay.Approval, in api.DecideApproval) (belay.Approval, error)
	// Grants returns the approvals that cover more than one call, of one session, or of all if
	// session is empty. Those of the session that changed last come first.
	Grants(ctx context.Context, session string) ([]api.Grant, error)
	// Revoke removes a grant.
	Revoke(ctx context.Context, session, grant string) error
}

// records opens the server or the store that the settings name, and calls f with it.
func (a *app) records(ctx context.Context, f func(records) error) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	if settings.Server != "" {
		return a.atServer(settings, func(c *serverClient) error { return f(&serverRecords{c}) })
	}
	return a.look(ctx, func(store assembly.Store) error { return f(&storeRecords{a, store}) })
}

// findRecord finds a session by its id, or by a prefix that only its id has. An empty word means
// the session that changed last.
func findRecord(ctx context.Context, r records, word string) (api.Session, error) {
	return pickSession(func(f belay.SessionFilter) iter.Seq2[api.Session, error] { return r.Sessions(ctx, f) }, func(s api.Session) string { return s.ID }, word)
}

// pickSession finds a session by its id, or by a prefix that only its id has. An empty word
// means the first session.
func pickSession[S any](list func(belay.SessionFilter) iter.Seq2[S, error], id func(S) string, word string) (S, error) {
	var none S
	var found []S
	for one, err := range list(belay.SessionFilter{Prefix: word}) {
		if err != nil {
			return none, err
		}
		if id(one) == word {
			return one, nil
		}
		if inspect.IsChild(id(one)) && !inspect.IsChild(word) {
			continue
		}
		found = append(found, one)
		if word == "" {
			break
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case word == "":
		return none, errors.New("there are no sessions yet: `belay run \"task\"` creates the first")
	case len(found) > 1:
		var ids []string
		for _, one := range found[:min(len(found), 5)] {
			ids = append(ids, id(one))
		}
		if len(found) > 5 {
			ids = append(ids, "…")
		}
		return none, fmt.Errorf("%q matches the ids of %d sessions: %s", word, len(found), strings.Join(ids, ", "))
	}
	var all []string
	for one, err := range list(belay.SessionFilter{Limit: mostNear}) {
		if err != nil {
			return none, err
		}
		if !inspect.IsChild(id(one)) {
			all = append(all, id(one))
		}
	}
	return none, fmt.Errorf("there is no session %q%s: `belay sessions` lists them", word, near.Hint(word, all))
}

// mostNear limits how many sessions are searched for a similar id.
const mostNear = 1000

// storeRecords are the records in the store of the project.
type storeRecords struct {
	a     *app
	store assembly.Store
}

var _ records = (*storeRecords)(nil)

func (r *storeRecords) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[api.Session, error] {
	return func(yield func(api.Session, error) bool) {
		for info, err := range r.store.Sessions(ctx, filter) {
			var one api.Session
			if err == nil {
				one, err = inspect.SessionOf(ctx, r.store, info)
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

func (r *storeRecords) Session(ctx context.Context, id string) (api.Session, error) {
	info, found, err := inspect.FindSession(ctx, r.store, id)
	if err == nil && !found {
		err = fmt.Errorf("session %q: %w", id, belay.ErrNotFound)
	}
	if err != nil {
		return api.Session{}, err
	}
	return inspect.SessionOf(ctx, r.store, info)
}

func (r *storeRecords) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return r.store.Read(ctx, session, after)
}

func (r *storeRecords) Calls(ctx context.Context, session string) ([]belay.CallRecord, error) {
	info, _, err := inspect.FindSession(ctx, r.store, session)
	if err != nil {
		return nil, err
	}
	return inspect.OpenCalls(ctx, r.store, &info)
}

func (r *storeRecords) Queue(ctx context.Context, session string) ([]api.QueuedTurn, error) {
	queued, err := r.store.Queued(ctx, session)
	var all []api.QueuedTurn
	for i := range queued {
		t := &queued[i]
		all = append(all, api.QueuedTurn{ID: t.ID, Agent: t.Agent, Model: t.Model, Text: t.Text, Time: t.Time})
	}
	return all, err
}

func (r *storeRecords) Watch(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		for update, err := range engine.Watch(ctx, r.store, session, after) {
			if !yield(update.Message, err) {
				return
			}
		}
	}
}

func (r *storeRecords) Update(ctx context.Context, in api.UpdateSession) error {
	return r.store.Describe(ctx, in.Session, belay.SessionUpdate{Title: in.Title, Labels: in.Labels})
}

func (r *storeRecords) Delete(ctx context.Context, session string) error {
	return r.project().Delete(ctx, r.store, session)
}

func (r *storeRecords) project() *inspect.Project {
	return &inspect.Project{From: r.a.assembler(), Settings: r.a.settings}
}

func (r *storeRecords) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return r.store.Approvals(ctx, filter)
}

func (r *storeRecords) Approval(ctx context.Context, approval *belay.Approval) (api.Approval, error) {
	return r.project().Approval(ctx, r.store, approval)
}

func (r *storeRecords) Decide(ctx context.Context, approval *belay.Approval, in api.DecideApproval) (belay.Approval, error) {
	d := belay.Decision{Allow: in.Allow, Reason: in.Reason}
	switch in.Scope {
	case api.ScopeSession:
		d.Scope.Kind = belay.ScopeSession
	case api.ScopePattern:
		d.Scope = belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: in.Pattern}
		if approval.Decided == nil {
			if err := r.project().CheckScope(ctx, r.store, approval, in.Pattern); err != nil {
				return *approval, scopeError(in.Pattern, err)
			}
		}
	}
	if in.Answer != nil {
		input, err := inspect.InputOf(ctx, r.store, approval)
		if err != nil {
			return *approval, err
		}
		d, err = toolbox.Answer(belay.Question{Approval: *approval, Input: input}, who(), *in.Answer)
		if err != nil {
			return *approval, answerError(approval, err)
		}
	}
	d.Approval, d.Hash, d.By, d.Time = approval.ID, in.Hash, who(), time.Now()
	return r.store.Decide(ctx, d)
}

func (r *storeRecords) Grants(ctx context.Context, session string) ([]api.Grant, error) {
	var all []api.Grant
	for s, err := range r.store.Sessions(ctx, belay.SessionFilter{Prefix: session}) {
		if err != nil {
			return nil, err
		}
		if session != "" && s.ID != session {
			continue
		}
		for _, g := range s.State.Grants {
			all = append(all, api.Grant{Session: s.ID, Grant: g})
		}
	}
	return all, nil
}

func (r *storeRecords) Revoke(ctx context.Context, session, grant string) (err error) {
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: r.store, RefuseBusy: true, Logger: r.a.logger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.Close(context.WithoutCancel(ctx))) }()
	return agent.Session(session).Revoke(ctx, grant)
}

// scopeError is the error for a pattern that cannot be the scope of an approval.
func scopeError(pattern string, err error) error {
	if !strings.Contains(pattern, "(") {
		return usage("--scope: %w%s: give once, session, or a pattern such as 'shell(git push *)'", err, near.Hint(pattern, []string{"once", "session"}))
	}
	return usage("--scope: %w", err)
}

// answerError is the error for an answer that does not fit the question.
func answerError(approval *belay.Approval, err error) error {
	if errors.Is(err, toolbox.ErrAnswer) {
		return usage("approval %s: %s", approval.ID, oneLine(strings.TrimPrefix(err.Error(), "toolbox: ")))
	}
	return usage("%w", err)
}

func (r *storeRecords) Runs(ctx context.Context, o *runsOptions) ([]hook.Run, <-chan followed, error) {
	journal, ok := r.store.Journal().(hook.FollowJournal)
	if !ok {
		return nil, nil, errors.New("this store cannot list the records of hooks")
	}
	var coming <-chan followed
	if o.follow { // start before the list is read, so that no record is missed
		coming = sendRuns(ctx, journal.Follow(ctx, o.filter))
	}
	runs, err := o.list(ctx, journal)
	return runs, coming, err
}

func (r *storeRecords) Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]api.UsageRow, error) {
	store, ok := r.store.(belay.UsageStore)
	if !ok {
		return nil, fmt.Errorf("a store of type %T cannot add up usage", r.store)
	}
	filter := belay.UsageFilter{Since: since, Labels: labels, By: belay.UsageKey(by)}
	if name, ok := strings.CutPrefix(by, "label:"); ok {
		filter.By, filter.Label = belay.ByLabel, name
	}
	if by == "label:" || !slices.Contains([]belay.UsageKey{belay.ByAgent, belay.ByDay, belay.ByModel, belay.ByLabel}, filter.By) || by == "label" {
		return nil, usage("--by: %q is unknown: use agent, day, model or label:NAME", by)
	}
	sums, err := store.Usage(ctx, filter)
	rows := make([]api.UsageRow, len(sums))
	for i, sum := range sums {
		rows[i] = api.UsageRow{Key: sum.Key, Usage: sum.Usage, Turns: sum.Turns, Sessions: sum.Sessions}
	}
	return rows, err
}

func (r *storeRecords) Load(ctx context.Context) (*belay.Load, error) {
	load, err := r.store.Load(ctx)
	return &load, err
}

// list returns the newest matching records, the oldest of them first.
func (o *runsOptions) list(ctx context.Context, journal hook.ListJournal) ([]hook.Run, error) {
	filter := o.filter
	filter.Newest = true
	filter.Limit = 0 // the loop below counts only records that are shown
	if o.all && o.run == "" {
		filter.Limit = o.filter.Limit
	}
	var runs []hook.Run
	for r, err := range journal.List(ctx, filter) {
		if err != nil {
			return nil, err
		}
		if o.shown(&r) {
			runs = append(runs, r)
		}
		if o.filter.Limit > 0 && len(runs) == o.filter.Limit {
			break
		}
	}
	slices.Reverse(runs)
	return runs, nil
}

// followed is a new record, or the error that ended the stream of records.
type followed struct {
	run hook.Run
	err error
}

// sendRuns sends records to a channel until ctx is done.
func sendRuns(ctx context.Context, runs iter.Seq2[hook.Run, error]) <-chan followed {
	coming := make(chan followed)
	go func() { // ends with ctx
		defer close(coming)
		for r, err := range runs {
			select {
			case coming <- followed{r, err}:
			case <-ctx.Done():
				return // nobody receives any more
			}
		}
	}()
	return coming
}
