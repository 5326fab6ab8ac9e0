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
	// MaxRuns is how many records of hooks are kept; older ones are dropped.
	// Defaults to 16,384.
	MaxRuns int
	// MaxJobs is how many jobs can wait. Defaults to 1,024.
	MaxJobs int
	// Clock is for tests. Defaults to the machine's clock.
	Clock hook.Clock
}

// Store keeps sessions in memory.
type Store struct {
	clock   hook.Clock // nil: the machine's
	journal *hook.MemoryJournal
	queue   *hook.MemoryQueue

	mu        sync.Mutex
	epoch     int64 // of the newest hold on any session
	changed   int64 // the time of the last change of any session
	sessions  map[string]*session
	approvals map[string]*approval // by id, of all sessions
	asked     int                  // number of approvals ever stored
}

// session is one session. The store's lock guards it.
type session struct {
	epoch   int64 // epoch of the newest hold
	held    bool  // until it is released or taken over
	expired bool  // the holder counts as gone

	created, changed int64 // in nanoseconds since 1970

	title  string
	labels map[string]string // never changed in place

	messages []*belay.Message // all messages; only appended to, never changed
	response int64            // number of the last response, 0 if there is none
	besides  *besides         // nil: nothing

	state belay.SessionState // its slices and pointers belong to the store
}

// besides holds the fields that most sessions do not need.
type besides struct {
	visible   []*belay.Message   // messages that the model sees; nil: all messages
	calls     []belay.CallRecord // calls of the last response, by index
	approvals []*approval        // in the order in which they were asked
	asked     int                // index of the first approval of the last response
}

// has returns the optional fields for reading.
func (se *session) has() besides {
	if se.besides == nil {
		return besides{}
	}
	return *se.besides
}

// own returns the optional fields for writing.
func (se *session) own() *besides {
	if se.besides == nil {
		se.besides = new(besides)
	}
	return se.besides
}

// approval is an approval with its session.
type approval struct {
	belay.Approval
	of     *session
	number int // in the order in which approvals were first stored
}

// New makes an empty store.
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

// Forget removes a session with its messages, calls and approvals. The records
// of its hooks and its jobs stay: they have their own limits. Delete also removes
// those. Forget returns belay.ErrNotFound if there is no such session, and
// belay.ErrHeld if it is held.
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

// commitJournal is the journal that the queue uses. For the jobs of a commit
// it stores the runs of that commit. The queue calls it last, when the jobs
// can no longer be rejected, so that both are stored or neither.
type commitJournal struct{ *hook.MemoryJournal }

// commitRuns is the context key of the runs that a commit stores with its
// jobs.
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
