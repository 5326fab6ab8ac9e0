package hook

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

// Journal keeps the records of runs. The conformance suite in hooktest checks what a
// journal must do.
type Journal interface {
	// Append stores all of the records or none. A record replaces an earlier record with
	// the same ID that is not final. A stored final state never changes: Append drops a
	// late "started", accepts the same final state again, and returns ErrSettled for
	// another final state.
	Append(ctx context.Context, runs []Run) error
}

// ListJournal is a Journal that can be read. Without it, runs cannot be listed.
type ListJournal interface {
	Journal
	// List yields the runs that match the filter, oldest first unless the filter says
	// otherwise.
	List(ctx context.Context, filter Filter) iter.Seq2[Run, error]
}

// FollowJournal is a Journal that can be read while it is written. With a journal that does
// not have Follow, callers must call List repeatedly.
type FollowJournal interface {
	ListJournal
	// Follow yields runs that match the filter and are stored from now on, by this process
	// or another, until ctx is done. A run is yielded when it begins and again when it
	// ends, or only once if the journal sees both at the same time. Follow ignores the
	// filter's Limit and Newest.
	//
	// Each run has a Position, which is greater than those before. All processes see the same
	// positions. Follow with Filter.After continues after a position: it misses no run, and
	// yields none twice.
	Follow(ctx context.Context, filter Filter) iter.Seq2[Run, error]
	// Last returns the last position.
	Last(ctx context.Context) (int64, error)
}

// ErrSettled reports that a run is already in another final state.
var ErrSettled = errors.New("hook: the run has already ended in another state")

// Filter selects runs. Every field that is set must match.
type Filter struct {
	Session      string
	Turn         string
	Phase        string
	Subscription string
	States       []State
	Job          string
	// Since and Until limit the start time of the runs. Until is exclusive.
	Since, Until time.Time
	// Newest yields the newest runs first, so that a Limit selects the last runs. Defaults
	// to false: oldest first.
	Newest bool
	// Limit is the maximum number of runs. Defaults to all.
	Limit int
	// After makes Follow begin after a position: see [FollowJournal]. A negative value means
	// the beginning of the journal. Defaults to 0: Follow begins with the next run.
	After int64
}

// Match reports whether the filter selects the run.
func (f Filter) Match(r Run) bool {
	return (f.Session == "" || f.Session == r.Scope.Session) &&
		(f.Turn == "" || f.Turn == r.Scope.Turn) &&
		(f.Phase == "" || f.Phase == r.Phase) &&
		(f.Subscription == "" || f.Subscription == r.Subscription) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.Job == "" || f.Job == r.Job) &&
		(f.Since.IsZero() || !r.Started.Before(f.Since)) &&
		(f.Until.IsZero() || r.Started.Before(f.Until))
}
