package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// runFilter makes the filter of the journal.
func runFilter(in *api.ListRuns) (hook.Filter, error) {
	f := hook.Filter{Session: in.Session, Turn: in.Turn, Phase: in.Phase, Subscription: in.Subscription, Since: in.Since, Until: in.Until, Newest: true}
	for _, word := range in.State {
		var state hook.State
		if err := state.UnmarshalText([]byte(word)); err != nil {
			return f, invalid("/state", "there is no state %q: use one of %s", word, strings.Join(stateNames(), ", "))
		}
		f.States = append(f.States, state)
	}
	return f, nil
}

func stateNames() []string {
	var names []string
	for s := hook.Started; s <= hook.Interrupted; s++ {
		names = append(names, s.String())
	}
	return names
}

// shown reports whether a record is for everybody who reads the journal.
func shown(r *hook.Run, all bool) bool {
	return all || r.Visibility == hook.VisibleInAudit || r.Visibility == hook.VisibleToUser
}

// journal returns the journal of the store.
func (s *Server) journal() (hook.FollowJournal, error) { //nolint:ireturn // the store says which
	journal, ok := s.store.Journal().(hook.FollowJournal)
	if !ok {
		return nil, errors.New("the store's records cannot be listed")
	}
	return journal, nil
}

// ofToken reports whether the token may see a run. A run that belongs to no session is for
// tokens without labels.
func (v *visible) ofToken(ctx context.Context, r *hook.Run) (bool, error) {
	if r.Scope.Session == "" {
		return len(v.q.token.Labels) == 0, nil
	}
	return v.sees(ctx, r.Scope.Session)
}

func listRuns(ctx context.Context, s *Server, q *request, in *api.ListRuns) (api.RunList, error) {
	out := api.RunList{Runs: []hook.Run{}}
	if in.Session != "" {
		if _, err := s.session(ctx, q, in.Session); err != nil {
			return out, err
		}
	}
	filter, err := runFilter(in)
	if err != nil {
		return out, err
	}
	// Most records are for everybody, so the first attempt reads few of them.
	for filter.Limit = min(2*in.Limit, mostRuns); ; filter.Limit = mostRuns {
		read, err := s.readRuns(ctx, q, in, filter, &out)
		if err != nil {
			return out, err
		}
		if len(out.Runs) == in.Limit || read < filter.Limit {
			return out, nil
		}
		if filter.Limit == mostRuns {
			out.Partial = true
			return out, nil
		}
	}
}

// mostRuns is how many records listRuns reads at most.
const mostRuns = 20_000

// readRuns fills a list with the records that the token may see. It returns how many records
// it read.
func (s *Server) readRuns(ctx context.Context, q *request, in *api.ListRuns, filter hook.Filter, out *api.RunList) (read int, err error) {
	journal, err := s.journal()
	if err != nil {
		return 0, err
	}
	out.Runs = out.Runs[:0]
	seen := s.visible(q)
	for r, err := range journal.List(ctx, filter) {
		if err != nil {
			return read, err
		}
		read++
		ok, err := seen.ofToken(ctx, &r)
		if err != nil {
			return read, err
		}
		if ok && shown(&r, in.All) {
			out.Runs = append(out.Runs, q.token.run(r))
		}
		if len(out.Runs) == in.Limit {
			break
		}
	}
	return read, nil
}

func runEvents(ctx context.Context, s *Server, q *request, in *api.RunEvents) error {
	if in.Session != "" {
		if _, err := s.session(ctx, q, in.Session); err != nil {
			return err
		}
	}
	journal, err := s.journal()
	if err != nil {
		return err
	}
	after := cmp.Or(q.r.Header.Get("Last-Event-ID"), in.After)
	at, err := strconv.ParseInt(cmp.Or(after, "0"), 10, 64)
	if err != nil || at < 0 {
		return problem(http.StatusBadRequest, codes.CursorInvalid, "the id %.80q is invalid: use the id of an event of this stream", after)
	}
	if after == "" {
		if at, err = journal.Last(ctx); err != nil {
			return err
		}
	}
	return s.streamEvents(ctx, q, in.Session, func(ctx context.Context, send func(frame) bool) error {
		// A client that loses the connection before the first record must know where to continue.
		if !send(frame{id: strconv.FormatInt(at, 10), event: api.EventPosition, data: struct{}{}}) {
			return nil
		}
		for r, err := range journal.Follow(ctx, hook.Filter{Session: in.Session, After: cmp.Or(at, -1)}) {
			if err != nil {
				return err
			}
			ok, err := s.visible(q).ofToken(ctx, &r) // the labels may have changed since the last run
			if err != nil {
				return err
			}
			if ok && shown(&r, in.All) && !send(frame{id: strconv.FormatInt(r.Position, 10), event: "run", data: q.token.run(r)}) {
				return nil
			}
		}
		return nil
	})
}

type runIn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Run     string `json:"run" in:"path" required:"true" jsonschema:"the id of the run"`
}

// turnRuns returns a run, and all runs of its turn.
func (s *Server) turnRuns(ctx context.Context, q *request, in *runIn) (hook.Run, []hook.Run, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return hook.Run{}, nil, err
	}
	journal, err := s.journal()
	if err != nil {
		return hook.Run{}, nil, err
	}
	// People mostly ask about a recent run, so the search begins at the end.
	for r, err := range journal.List(ctx, hook.Filter{Session: info.ID, Newest: true}) {
		if err != nil {
			return hook.Run{}, nil, err
		}
		if r.ID != in.Run {
			continue
		}
		var all []hook.Run
		for of, err := range journal.List(ctx, hook.Filter{Session: info.ID, Turn: r.Scope.Turn}) {
			if err != nil {
				return hook.Run{}, nil, err
			}
			if of.Scope.Turn == r.Scope.Turn { // a filter without a turn selects all runs
				all = append(all, of)
			}
		}
		return r, all, nil
	}
	return hook.Run{}, nil, notFound("run", in.Run)
}

func readRun(ctx context.Context, s *Server, q *request, in *runIn) (hook.Run, error) {
	run, _, err := s.turnRuns(ctx, q, in)
	return q.token.run(run), err
}

// explainRun explains the dispatch of a run with the records of the turn and the present
// plan of the phase.
func explainRun(ctx context.Context, s *Server, q *request, in *runIn) (api.Explanation, error) {
	run, all, err := s.turnRuns(ctx, q, in)
	if err != nil {
		return api.Explanation{}, err
	}
	plan := hook.Plan{Phase: run.Phase}
	if !q.token.isTenant() { // the plan shows the hooks of the project
		plans, err := s.project.Plans(ctx, run.Phase, "")
		if err != nil {
			return api.Explanation{}, err
		}
		for i := range plans {
			plan = plans[i].Plan
		}
	}
	out := api.Explanation{}
	for _, x := range hook.ExplainRuns(plan, all) {
		if x.Dispatch == run.Dispatch {
			out.Explanation = q.token.explanation(x)
		}
	}
	used := make(map[codes.Code]bool)
	for i := range out.Entries {
		used[out.Entries[i].Code] = true
	}
	for i := range out.Diagnostics {
		used[out.Diagnostics[i].Code] = true
	}
	for _, c := range codes.All() {
		if used[c.Code] {
			out.Codes = append(out.Codes, c)
		}
	}
	return out, nil
}
