package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

type listRunsIn struct {
	Session      string    `json:"session,omitempty" in:"query" jsonschema:"only of this session"`
	Turn         string    `json:"turn,omitempty" in:"query" jsonschema:"only of this turn"`
	Phase        string    `json:"phase,omitempty" in:"query" jsonschema:"only at this phase"`
	Subscription string    `json:"subscription,omitempty" in:"query" jsonschema:"only of this hook, by its subscription id"`
	State        []string  `json:"state,omitempty" in:"query" jsonschema:"only in this state; may be repeated"`
	Since        time.Time `json:"since,omitzero" in:"query" jsonschema:"only runs that started at this time or later"`
	All          bool      `json:"all,omitempty" in:"query" jsonschema:"also records that are only for debugging or for the journal"`
	Limit        int       `json:"limit" in:"query" minimum:"1" maximum:"1000" default:"100" jsonschema:"the maximum number of records"`
}

// runList is a list of hook runs.
type runList struct {
	Runs []hook.Run `json:"runs"`
}

// filter makes the filter of the journal.
func (in *listRunsIn) filter() (hook.Filter, error) {
	f := hook.Filter{Session: in.Session, Turn: in.Turn, Phase: in.Phase, Subscription: in.Subscription, Since: in.Since, Newest: true}
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

func listRuns(ctx context.Context, s *Server, q *request, in *listRunsIn) (runList, error) {
	out := runList{Runs: []hook.Run{}}
	if in.Session != "" {
		if _, err := s.session(ctx, q, in.Session); err != nil {
			return out, err
		}
	}
	filter, err := in.filter()
	if err != nil {
		return out, err
	}
	journal, err := s.journal()
	if err != nil {
		return out, err
	}
	seen := s.visible(q)
	for r, err := range journal.List(ctx, filter) {
		if err != nil {
			return out, err
		}
		ok, err := seen.ofToken(ctx, &r)
		if err != nil {
			return out, err
		}
		if ok && shown(&r, in.All) {
			out.Runs = append(out.Runs, q.token.run(r))
		}
		if len(out.Runs) == in.Limit {
			break
		}
	}
	return out, nil
}

type followRunsIn struct {
	Session string `json:"session,omitempty" in:"query" jsonschema:"only of this session"`
	All     bool   `json:"all,omitempty" in:"query" jsonschema:"also records that are only for debugging or for the journal"`
}

func runEvents(ctx context.Context, s *Server, q *request, in *followRunsIn) error {
	if in.Session != "" {
		if _, err := s.session(ctx, q, in.Session); err != nil {
			return err
		}
	}
	journal, err := s.journal()
	if err != nil {
		return err
	}
	return s.streamEvents(ctx, q, in.Session, func(ctx context.Context, send func(frame) bool) error {
		for r, err := range journal.Follow(ctx, hook.Filter{Session: in.Session}) {
			if err != nil {
				return err
			}
			ok, err := s.visible(q).ofToken(ctx, &r) // the labels may have changed since the last run
			if err != nil {
				return err
			}
			if ok && shown(&r, in.All) && !send(frame{event: "run", data: q.token.run(r)}) {
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
	var all []hook.Run
	at := -1
	for r, err := range journal.List(ctx, hook.Filter{Session: info.ID}) {
		if err != nil {
			return hook.Run{}, nil, err
		}
		if r.ID == in.Run {
			at = len(all)
		}
		all = append(all, r)
	}
	if at < 0 {
		return hook.Run{}, nil, notFound("run", in.Run)
	}
	run := all[at]
	return run, slices.DeleteFunc(all, func(r hook.Run) bool { return r.Scope.Turn != run.Scope.Turn }), nil
}

func readRun(ctx context.Context, s *Server, q *request, in *runIn) (hook.Run, error) {
	run, _, err := s.turnRuns(ctx, q, in)
	return q.token.run(run), err
}

// explanation explains the dispatch of a hook run.
type explanation struct {
	hook.Explanation
	// Codes explain the codes in the entries and diagnostics.
	Codes []codes.Info `json:"codes,omitempty"`
}

// explainRun explains the dispatch of a run with the records of the turn and the present
// plan of the phase.
func explainRun(ctx context.Context, s *Server, q *request, in *runIn) (explanation, error) {
	run, all, err := s.turnRuns(ctx, q, in)
	if err != nil {
		return explanation{}, err
	}
	plan := hook.Plan{Phase: run.Phase}
	if !q.token.isTenant() { // the plan shows the hooks of the project
		plans, err := s.project.Plans(ctx, run.Phase, "")
		if err != nil {
			return explanation{}, err
		}
		for i := range plans {
			plan = plans[i].Plan
		}
	}
	out := explanation{}
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
