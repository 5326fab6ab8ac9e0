package memstore

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Options are the settings of a Store. A nil pointer is valid.
type Options struct {
	// MaxRuns is the maximum number of hook runs. The store drops the oldest runs. Defaults
	// to 16,384.
	MaxRuns int
	// MaxJobs is the maximum number of waiting jobs. Defaults to 1,024.
	MaxJobs int
	// Clock replaces the machine's clock in tests. Defaults to the machine's clock.
	Clock hook.Clock
}

// Store keeps sessions in memory.
type Store struct {
	clock   hook.Clock // nil: the machine's clock
	journal *hook.MemoryJournal
	queue   *hook.MemoryQueue

	mu        sync.Mutex
	epoch     int64 // epoch of the newest hold on any session
	changed   int64 // time of the last change of any session, in nanoseconds since 1970
	sessions  map[string]*session
	approvals map[string]*approval // approvals of all sessions, by id
	asked     int                  // number of approvals ever stored
	spare     *belay.TurnState     // see Store.remember
	// spareBesides is what the last turn without calls has left: see Store.say.
	spareBesides *besides
}

// session is one session. The store's lock guards it.
type session struct {
	epoch   int64 // epoch of the newest hold
	held    bool  // true until the session is released
	expired bool  // true if the holder counts as gone, see Store.Expire

	created, changed int64 // in nanoseconds since 1970

	title  string
	labels map[string]string // the store replaces the map and never changes it

	messages []*belay.Message // all messages; amend makes a new slice, because readers may use the old one
	response int64            // number of the last response, 0 if there is none
	besides  *besides         // nil if the session needs none of its fields

	state belay.SessionState // its slices and pointers belong to the store
}

// besides holds the fields that most sessions do not need.
type besides struct {
	visible   []*belay.Message   // messages that the model sees; nil: all messages
	calls     []belay.CallRecord // calls of the last response, by index
	approvals []*approval        // in the order in which they were asked
	asked     int                // index of the first approval of the last response
}

// has returns a copy of the optional fields, for reading.
func (se *session) has() besides {
	if se.besides == nil {
		return besides{}
	}
	return *se.besides
}

// own returns the optional fields for writing, and creates them if necessary. The caller
// holds the store's lock.
func (s *Store) own(se *session) *besides {
	if se.besides == nil {
		if se.besides, s.spareBesides = s.spareBesides, nil; se.besides == nil {
			se.besides = new(besides)
		}
	}
	return se.besides
}

type approval struct {
	belay.Approval
	of     *session
	number int // 1 for the first approval ever stored, 2 for the next
}

// New returns an empty store.
func New(opts *Options) *Store {
	var o Options
	if opts != nil {
		o = *opts
	}
	s := &Store{
		clock:     o.Clock,
		journal:   hook.NewMemoryJournal(cmp.Or(max(o.MaxRuns, 0), 16384)),
		sessions:  make(map[string]*session),
		approvals: make(map[string]*approval),
	}
	s.queue = hook.NewMemoryQueue(commitJournal{s.journal}, &hook.MemoryQueueOptions{Capacity: o.MaxJobs, Clock: o.Clock})
	return s
}

// Journal returns the store's journal of hook runs, a [hook.ListJournal].
func (s *Store) Journal() hook.Journal { return s.journal } //nolint:ireturn // belay.JournalStore wants it so

// Queue returns the store's job queue, a [hook.ClaimQueue] and a
// [hook.StatQueue].
func (s *Store) Queue() hook.Queue { return s.queue } //nolint:ireturn // belay.JournalStore wants it so

// Forget removes a session with its messages, calls and approvals. It does not remove the
// session's hook runs and jobs: [Options] limits their number. [Store.Delete] removes them
// too. Forget returns belay.ErrNotFound if the session does not exist, and belay.ErrHeld if
// the session is held.
func (s *Store) Forget(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	se, ok := s.sessions[name]
	switch {
	case !ok:
		return fmt.Errorf("forget session %q: %w", name, belay.ErrNotFound)
	case se.isHeld():
		return fmt.Errorf("forget session %q: %w", name, belay.ErrHeld)
	}
	for _, a := range se.has().approvals {
		delete(s.approvals, a.ID)
	}
	delete(s.sessions, name)
	return nil
}

func (s *Store) now() time.Time {
	if s.clock != nil {
		return s.clock.Now()
	}
	return time.Now()
}

// commitJournal is the journal that the queue uses. When Commit enqueues jobs, the queue
// calls Append with an empty run, and Append stores the runs of the commit instead (see
// Store.record). The queue calls Append last, when it can no longer reject the jobs. So the
// store keeps both the runs and the jobs, or neither.
type commitJournal struct{ *hook.MemoryJournal }

// commitRuns is the context key under which Commit passes its runs to commitJournal.
type commitRuns struct{}

func (j commitJournal) Append(ctx context.Context, runs []hook.Run) error {
	if carried, ok := ctx.Value(commitRuns{}).([]hook.Run); ok {
		runs = carried
	}
	return j.MemoryJournal.Append(ctx, runs)
}

var (
	_ belay.JournalStore = (*Store)(nil)
	_ belay.ManageStore  = (*Store)(nil)
)
