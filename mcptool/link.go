package mcptool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

const (
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 30 * time.Second
	// looking is how often a server at an address is asked for its tools: it cannot be
	// seen to die, and a stream that should tell of changes can break unseen.
	looking = time.Minute
	// listing is how long a server has to list its tools again.
	listing = 30 * time.Second
	// mostTools and mostDescription bound what a server may add to a request.
	mostTools       = 512
	mostDescription = 16_000
	mostSchema      = 64 << 10
	mostDeclared    = 512 << 10 // of all its tools
	// relisting is the least time between two looks at a list of tools.
	relisting = 250 * time.Millisecond
)

// errClosed says that the extension was closed.
var errClosed = errors.New("it was closed")

// State is how a server is.
type State string

// The states.
const (
	StateStarting State = "starting" // for the first time
	StateReady    State = "ready"
	StateDown     State = "down" // and tried again
	StateDisabled State = "disabled"
)

// view is what a link shows. It never changes.
type view struct {
	state State
	err   error // why it is down
	tools []*offered
	left  []error // tools that are left out, and why
	info  *mcp.InitializeResult
}

// offered is a tool as its server describes it.
type offered struct {
	name, description string
	schema            json.RawMessage
	readOnly          bool
	destructive       bool
	// read is how a tool of our own works, which the server does not have. Nil for its own.
	read func(t *serverTool, ctx context.Context, f *life, call *belay.Invocation) (belay.Result, error)
}

func (o *offered) equal(other *offered) bool {
	return (o.read == nil) == (other.read == nil) && o.name == other.name && o.description == other.description && o.readOnly == other.readOnly && o.destructive == other.destructive &&
		string(o.schema) == string(other.schema)
}

// link keeps one server for all who have it: starts it, follows its tools, and starts it
// again when it is gone. It owns one goroutine, which ends when the last of them lets it
// go and the server is gone.
type link struct {
	name   string // of whoever was first
	spec   *spec
	logger *slog.Logger
	start  time.Duration
	grace  time.Duration
	pause  time.Duration

	ctx   context.Context         //nolint:containedctx // it is the life of the link
	end   context.CancelCauseFunc // ends it
	done  chan struct{}           // closed when nothing is left of it
	pool  *Pool
	users int // that have it; guarded by the pool
	held  int // by calls; likewise

	discovers bool // it refuses initialize, and takes server/discover; used by run alone

	now     atomic.Pointer[view]
	current atomic.Pointer[life] // nil while there is none
	deaths  atomic.Int64         // since a call succeeded
	changed chan struct{}        // has one when the tools have changed

	calls    atomic.Uint64
	progress sync.Map // by token: func(*mcp.ProgressNotificationParams)

	// How many changes of its tools the server has announced, and how many of them were
	// known when the tools were last listed.
	announced, listed atomic.Int64
	urgent            atomic.Bool // the next look at the tools is not put off

	mu       sync.Mutex
	watchers map[*mount]func()
	stirred  chan struct{} // closed with the next news about the list of tools
	open     []*openCall   // the calls under way, the oldest first
}

func newLink(name string, start time.Duration, s *spec, opts *Options) *link {
	l := &link{
		name: name, spec: s, logger: opts.Logger, start: cmp.Or(start, opts.Start), grace: opts.Grace, pause: opts.Backoff,
		done: make(chan struct{}), changed: make(chan struct{}, 1), watchers: make(map[*mount]func()), stirred: make(chan struct{}),
	}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.now.Store(&view{state: StateStarting})
	return l
}

// watch has f called whenever the link shows something else.
func (l *link) watch(m *mount, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers[m] = f
}

func (l *link) unwatch(m *mount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watchers, m)
}

func (l *link) show(v *view) {
	l.now.Store(v)
	l.mu.Lock()
	told := make([]func(), 0, len(l.watchers))
	for _, f := range l.watchers {
		told = append(told, f)
	}
	l.mu.Unlock()
	for _, f := range told {
		f()
	}
}

// run is the goroutine of the link.
func (l *link) run() {
	defer close(l.done)
	last := ""
	for {
		ready, err := l.live()
		err = l.redacted(err)
		if l.ctx.Err() != nil {
			l.show(&view{state: StateDown, err: errClosed})
			return
		}
		if ready > mostBackoff {
			l.deaths.Store(0)
		}
		pause := backoff(l.pause, l.deaths.Add(1))
		v := *l.now.Load()
		v.state, v.err = StateDown, err
		l.show(&v)
		if text := err.Error(); text != last {
			last = text
			l.logger.Warn("mcp server is not available", "server", l.name, "error", err, "restart_in", pause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			timer.Stop()
		}
	}
}

// backoff is the pause after a death, of so many in a row: it doubles with each.
func backoff(first time.Duration, deaths int64) time.Duration {
	pause := min(first, mostBackoff)
	for ; deaths > 1 && pause < mostBackoff; deaths-- {
		pause = min(2*pause, mostBackoff)
	}
	return pause
}

// live is one life of the server, from its start to its end. It returns how long it was
// ready, which one that takes long to start and then fails was not, and why it ended.
func (l *link) live() (ready time.Duration, err error) {
	f, err := l.begin()
	if err != nil {
		return 0, err
	}
	if err = l.list(f, l.start); err == nil {
		since := time.Now()
		l.logger.Info("mcp server is ready", "server", l.name, "tools", len(l.now.Load().tools))
		err = l.follow(f)
		ready = time.Since(since)
	}
	l.bury(f, err)
	return ready, err
}

// follow keeps the list of tools as it is, until the life ends.
func (l *link) follow(f *life) error {
	var tick <-chan time.Time
	if f.pipe == nil {
		ticker := time.NewTicker(looking)
		defer ticker.Stop()
		tick = ticker.C
	}
	var later <-chan time.Time // set while a look is put off
	last := time.Now()
	relist := func() {
		later, last = nil, time.Now()
		if err := l.list(f, listing); err != nil {
			l.logger.Warn("mcp server does not list its tools", "server", l.name, "error", l.redacted(err))
		}
	}
	for {
		select {
		case <-f.over:
			return f.err()
		case err := <-f.broken:
			return err
		case <-l.ctx.Done():
			return errClosed
		case <-l.changed:
			urgent := l.urgent.Swap(false)
			if pause := relisting - time.Since(last); pause > 0 && !urgent { // it may be saying so all the time
				if later == nil {
					later = time.After(pause)
				}
				continue
			}
			relist()
		case <-later:
			relist()
		case <-tick:
			if err := l.list(f, listing); err != nil {
				return err
			}
		}
	}
}

// life is a session with a server.
type life struct {
	session *mcp.ClientSession
	pipe    *pipe           // nil for a server at an address
	ctx     context.Context //nolint:containedctx // it is the life itself: calls end with it
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when the session is
	ended   error         // of a server at an address; to be read when over
	broken  chan error    // has one when a call found it broken
}

// err is why a life is over.
func (f *life) err() error {
	if f.pipe != nil {
		return f.pipe.err
	}
	if f.ended == nil {
		return errors.New("it ended the session")
	}
	return httpReason(f.ended)
}

// breaks says that a call found a session broken. It has no more calls from then on.
func (l *link) breaks(f *life, err error) {
	l.current.CompareAndSwap(f, nil)
	l.stir()
	select {
	case f.broken <- err:
	default: // it is known already
	}
}

// watch waits for the end of a session.
func (f *life) watch() {
	if f.pipe != nil {
		<-f.pipe.over
	} else {
		f.ended = f.session.Wait()
	}
	f.cancel(f.err())
	close(f.over)
}

// bury ends a life and returns when nothing is left of it.
func (l *link) bury(f *life, why error) {
	l.current.Store(nil)
	l.stir()
	f.cancel(why) // calls under way are told to the server as cancelled
	if f.pipe != nil {
		_ = pipeEnd{f.pipe}.Close() // it has no errors
		<-f.pipe.over
	}
	closed := make(chan struct{})
	go func() { // ends when the session is, which nothing holds up but an address that does not answer
		defer close(closed)
		_ = f.session.Close() // it is over, whatever it says
	}()
	timer := time.NewTimer(l.grace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// ready shows the tools of a life, which can be called from then on.
func (l *link) ready(f *life, v *view) {
	l.current.Store(f)
	l.show(v)
}

// redacted is an error without secrets, for logs and people.
func (l *link) redacted(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if hidden := l.spec.hide(text); hidden != text {
		return errors.New(hidden)
	}
	return err
}

// progressed hands on what a server says about a call under way.
func (l *link) progressed(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	if f, ok := l.progress.Load(token); ok {
		f.(func(*mcp.ProgressNotificationParams))(r.Params)
	}
}

// token makes a name for a call.
func (l *link) token() string { return strconv.FormatUint(l.calls.Add(1), 10) }

// version is that of the program, for servers that want to know.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
})
