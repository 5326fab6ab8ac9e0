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
	// looking is how often a server with a URL is asked for its tools. Its end is not
	// visible from here, and the stream that announces changes can break unnoticed.
	looking = time.Minute
	// listing is the timeout for listing the tools again.
	listing = 30 * time.Second
	// mostTools and mostDescription bound what a server may add to a request.
	mostTools       = 512
	mostDescription = 16_000
	mostSchema      = 64 << 10
	mostDeclared    = 512 << 10 // of all its tools
	// relisting is the minimum time between two listings.
	relisting = 250 * time.Millisecond
)

// errClosed is the error of a closed extension.
var errClosed = errors.New("it was closed")

// State is the state of a server.
type State string

// The states.
const (
	StateStarting State = "starting" // for the first time
	StateReady    State = "ready"
	StateDown     State = "down" // and will be tried again
	StateDisabled State = "disabled"
)

// view is a snapshot of a server's tools and state. It never changes.
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
	// read is the function of a tool that Belay adds for the server. Nil for tools of the
	// server.
	read func(t *serverTool, ctx context.Context, f *life, call *belay.Invocation) (belay.Result, error)
}

func (o *offered) equal(other *offered) bool {
	return (o.read == nil) == (other.read == nil) && o.name == other.name && o.description == other.description && o.readOnly == other.readOnly && o.destructive == other.destructive &&
		string(o.schema) == string(other.schema)
}

// link manages one server for all extensions that use it: it starts the server, follows
// its tools, and restarts it. It owns one goroutine, which ends when the last extension
// has released the link and the server has ended.
type link struct {
	name   string // of the first extension
	spec   *spec
	logger *slog.Logger
	start  time.Duration
	grace  time.Duration
	pause  time.Duration

	ctx   context.Context         //nolint:containedctx // it lives as long as the link
	end   context.CancelCauseFunc // ends it
	done  chan struct{}           // closed when the link has ended
	pool  *Pool
	users int // extensions that use it; guarded by the pool
	held  int // by calls; likewise

	discovers bool // it rejects initialize and accepts server/discover; only used by run

	now     atomic.Pointer[view]
	current atomic.Pointer[life] // nil while there is none
	deaths  atomic.Int64         // since a call succeeded
	changed chan struct{}        // has one when the tools have changed

	calls    atomic.Uint64
	progress sync.Map // by token: func(*mcp.ProgressNotificationParams)

	// How many changes of its tools the server has announced, and how many of them were
	// known when the tools were last listed.
	announced, listed atomic.Int64
	urgent            atomic.Bool // the next listing is not delayed

	mu       sync.Mutex
	watchers map[*mount]func()
	stirred  chan struct{} // closed with the next change of the list of tools
	open     []*openCall   // the running calls, oldest first
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

// watch registers f, which is called when the view changes.
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

// backoff returns the delay after so many deaths in a row. It doubles with each.
func backoff(first time.Duration, deaths int64) time.Duration {
	pause := min(first, mostBackoff)
	for ; deaths > 1 && pause < mostBackoff; deaths-- {
		pause = min(2*pause, mostBackoff)
	}
	return pause
}

// live runs the server once, from its start to its end. It returns how long the server
// was ready, not counting the time to start, and why it ended.
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

// follow keeps the list of tools up to date until the session ends.
func (l *link) follow(f *life) error {
	var tick <-chan time.Time
	if f.pipe == nil {
		ticker := time.NewTicker(looking)
		defer ticker.Stop()
		tick = ticker.C
	}
	var later <-chan time.Time // set while a listing is delayed
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
			if pause := relisting - time.Since(last); pause > 0 && !urgent { // it may announce this all the time
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
	pipe    *pipe           // nil for a server with a URL
	ctx     context.Context //nolint:containedctx // it lives as long as the session: calls end with it
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when the session is
	ended   error         // of a server with a URL; valid when over is closed
	broken  chan error    // has one when a call found it broken
}

// err returns why a session ended.
func (f *life) err() error {
	if f.pipe != nil {
		return f.pipe.err
	}
	if f.ended == nil {
		return errors.New("it ended the session")
	}
	return httpReason(f.ended)
}

// breaks reports that a call found the session broken. The session gets no more
// calls.
func (l *link) breaks(f *life, err error) {
	l.current.CompareAndSwap(f, nil)
	l.stir()
	select {
	case f.broken <- err:
	default: // already reported
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

// bury ends a session and waits until the process has ended.
func (l *link) bury(f *life, why error) {
	l.current.Store(nil)
	l.stir()
	f.cancel(why) // running calls are cancelled at the server
	if f.pipe != nil {
		_ = pipeEnd{f.pipe}.Close() // it has no errors
		<-f.pipe.over
	}
	closed := make(chan struct{})
	go func() { // ends with the session; only a URL that does not answer can delay it
		defer close(closed)
		_ = f.session.Close() // the session is over in any case
	}()
	timer := time.NewTimer(l.grace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// ready shows the tools of a session. From now on they can be called.
func (l *link) ready(f *life, v *view) {
	l.current.Store(f)
	l.show(v)
}

// redacted returns an error without secrets, for logs and people.
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

// progressed passes on a server's progress of a running call.
func (l *link) progressed(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	if f, ok := l.progress.Load(token); ok {
		f.(func(*mcp.ProgressNotificationParams))(r.Params)
	}
}

// token returns a new progress token.
func (l *link) token() string { return strconv.FormatUint(l.calls.Add(1), 10) }

// version returns the version of the program, which servers get in the
// handshake.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
})
