package riverjobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/belay-run/belay/hook"
)

// Backend is the store that the jobs belong to. TTx is the type of its transactions, which
// River's driver must also use.
type Backend[TTx any] interface {
	// Write runs f in a transaction. When Write returns nil, the data is durable. The
	// transaction may contain other writes, each of which succeeds or fails alone.
	Write(ctx context.Context, f func(ctx context.Context, tx TTx) error) error
	// AppendRuns stores runs in the transaction, as hook.Journal requires.
	AppendRuns(ctx context.Context, tx TTx, runs []hook.Run) error
	// TakeKeys reserves keys and returns the keys that were free.
	TakeKeys(ctx context.Context, tx TTx, keys []string) ([]string, error)
	// KeyDone reports whether a job with this key has succeeded.
	KeyDone(ctx context.Context, tx TTx, key string) (bool, error)
	// EndKey is called when the job of a key has ended. If done is true, the key stays
	// reserved. Otherwise the key is free again.
	EndKey(ctx context.Context, tx TTx, key string, done bool) error
}

// LockBackend is a Backend with concurrent transactions that do not see each other's
// writes. For any other Backend, the queue assumes that writes run one after the other.
type LockBackend[TTx any] interface {
	Backend[TTx]
	// LockQueue takes a lock and waits for it if necessary. The lock lasts until the
	// transaction ends.
	LockQueue(ctx context.Context, tx TTx) error
}

// Options are a queue's settings. A nil pointer is valid.
type Options struct {
	// ID identifies this process in River's tables. It has at most 100 characters and must
	// be unique among living processes. Defaults to a random id.
	ID string
	// Capacity is the maximum number of waiting jobs. Defaults to 1,024.
	Capacity int
	// Workers is how many jobs run at once. Defaults to 4.
	Workers int
	// Poll is how often the queue looks for due jobs. Defaults to 100 ms.
	Poll time.Duration
	// Grace is how long running jobs may continue after Work is stopped. Then they are
	// cancelled. Defaults to 10 s.
	Grace time.Duration
	// Logger gets the warnings and errors of River and of the queue. Defaults to
	// slog.Default.
	Logger *slog.Logger
}

// Queue keeps jobs in River's tables. It is an interface, and New returns one, so that only
// the two packages which call New compile River's client: the compiler generates the methods of
// a generic type again in every package that can reach them.
type Queue[TTx any] interface { //nolint:interfacebloat // it has one implementation, and replaces a struct
	hook.StatQueue
	hook.WorkQueue
	// ID returns the client id with which this queue claims jobs.
	ID() string
	// Migrate creates or migrates River's tables. Do not call it inside a Write.
	Migrate(ctx context.Context) error
	// Current reports whether River's tables are up to date.
	Current(ctx context.Context) (bool, error)
	// Insert stores jobs in a transaction of the caller. It ignores a job if another job with
	// the same key waits, runs or has succeeded. If the queue is full, it returns
	// [hook.ErrQueueFull]. After an error the caller must roll back.
	Insert(ctx context.Context, tx TTx, jobs []hook.Job) error
	// Jobs returns the attempts that match, the newest first. Do not call it inside a Write.
	Jobs(ctx context.Context, filter hook.JobFilter) ([]hook.StoredJob, error)
	// RetryJob makes a waiting job due now, or makes a new attempt at a job that has ended
	// without success. insert stores the job of the new attempt.
	RetryJob(ctx context.Context, id string, insert func(ctx context.Context, tx TTx, job hook.Job) error) (hook.StoredJob, error)
	// CancelJob ends a job that waits, and frees its key.
	CancelJob(ctx context.Context, id string) (hook.StoredJob, error)
	// Recover settles the attempts of dead clients. Their runs become interrupted. Idempotent
	// jobs are due again after a pause, unless they had the maximum number of attempts. Other
	// jobs end. Recover calls gone once for each client that has claimed an unsettled job. gone
	// reports whether the client is dead. If Recover is interrupted, call it again. Do not call
	// it inside a Write.
	Recover(ctx context.Context, gone func(clientID string) bool) (Recovered, error)
	// Remove removes all jobs of a session, including ended ones, in a transaction of the
	// caller. It returns false if one of the jobs is running, and then the caller must roll
	// back. Otherwise the caller must free the keys.
	Remove(ctx context.Context, tx TTx, session string) (bool, error)
	// WorkTended is like Work, with maintenance. No call of Tend is running when WorkTended
	// returns.
	WorkTended(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time), t Tending) error
}

// engine is the Queue.
type engine[TTx any] struct {
	driver  riverdriver.Driver[TTx]
	backend Backend[TTx]
	opts    Options
	log     *slog.Logger
	working atomic.Bool
}

// New returns a queue on a River driver and a backend.
func New[TTx any](driver riverdriver.Driver[TTx], backend Backend[TTx], opts *Options) (Queue[TTx], error) {
	if driver == nil || !driver.PoolIsSet() {
		return nil, errors.New("riverjobs: the River driver is nil or has no database")
	}
	if backend == nil {
		return nil, errors.New("riverjobs: the backend is nil")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Capacity < 0 || o.Workers < 0 || o.Poll < 0 || o.Grace < 0 {
		return nil, fmt.Errorf("riverjobs: capacity is %d, workers is %d, poll is %s, grace is %s: none of them may be negative", o.Capacity, o.Workers, o.Poll, o.Grace)
	}
	if len(o.ID) > 100 {
		return nil, fmt.Errorf("riverjobs: the id has %d characters: use at most 100", len(o.ID))
	}
	if o.ID == "" {
		o.ID = "belay-" + rand.Text()
	}
	o.Capacity = cmp.Or(o.Capacity, 1024)
	o.Workers = cmp.Or(o.Workers, 4)
	o.Poll = cmp.Or(o.Poll, 100*time.Millisecond)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &engine[TTx]{driver: driver, backend: backend, opts: o, log: slog.New(warnings{o.Logger.Handler()})}, nil
}

// ID does what Queue says.
func (q *engine[TTx]) ID() string { return q.opts.ID }

// Migrate does what Queue says.
func (q *engine[TTx]) Migrate(ctx context.Context) error {
	migrator, err := rivermigrate.New(q.driver, &rivermigrate.Config{Logger: q.log})
	if err != nil {
		return fmt.Errorf("migrate the job tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the job tables: %w", err)
	}
	return nil
}

// Current does what Queue says.
func (q *engine[TTx]) Current(ctx context.Context) (bool, error) {
	migrator, err := rivermigrate.New(q.driver, &rivermigrate.Config{Logger: q.log})
	if err != nil {
		return false, fmt.Errorf("check the job tables: %w", err)
	}
	found, err := migrator.Validate(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("check the job tables: %w", err)
	}
	return found.OK, nil
}

// warnings is a log handler that drops messages below the level of warnings, because River
// logs many.
type warnings struct{ slog.Handler }

// Enabled reports whether the level is logged.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the minimum level.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the minimum level.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
