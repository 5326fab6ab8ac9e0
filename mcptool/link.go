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
	// looking is how often Belay lists the tools of a server with a URL. This is needed
	// because Belay cannot see when such a server ends, and the stream that announces
	// changes can break unnoticed.
	looking = time.Minute
	// listing is the timeout for listing the tools again.
	listing = 30 * time.Second
	// These constants limit what a server may add to a model request.
	mostTools       = 512
	mostDescription = 16_000
	mostSchema      = 64 << 10
	mostDeclared    = 512 << 10 // for all tools of a server
	// relisting is the minimum time between two listings.
	relisting = 250 * time.Millisecond
)

// errClosed is the reason why a server ended when its last extension was closed.
var errClosed = errors.New("it was closed")

// State is the state of a server.
type State string

// The states of a server.
const (
	StateStarting State = "starting" // the first start
	StateReady    State = "ready"
	StateDown     State = "down" // Belay will start it again
	StateDisabled State = "disabled"
)

// view is an immutable snapshot of a server's state and tools.
type view struct {
	state State
	err   error // why the server is down
	tools []*offered
	left  []error // why tools are left out, one error for each
	info  *mcp.InitializeResult
}

// offered is a tool as its server describes it.
type offered struct {
	name, description string
	schema            json.RawMessage
	readOnly          bool
	destructive       bool
	// read runs a tool that Belay adds, such as read_resource. It is nil for the server's
	// own tools.
	read func(t *serverTool, ctx context.Context, f *life, call *belay.Invocation) (belay.Result, error)
}

func (o *offered) equal(other *offered) bool {
	return (o.read == nil) == (other.read == nil) && o.name == other.name && o.description == other.description && o.readOnly == other.readOnly && o.destructive == other.destructive &&
		string(o.schema) == string(other.schema)
}

// link manages one server for all extensions that use it. It starts the server, keeps the
// list of tools up to date, and restarts the server. It owns one goroutine. The goroutine
// ends when the last extension has released the link and the server has ended.
type link struct {
	name   string // the server's name in the first extension
	spec   *spec
	logger *slog.Logger
	start  time.Duration
	grace  time.Duration
	pause  time.Duration

	ctx   context.Context         //nolint:containedctx // it lives as long as the link
	end   context.CancelCauseFunc // ends the link
	done  chan struct{}           // closed when the link has ended
	pool  *Pool
	users int // number of extensions that use the link; guarded by Pool.mu
	held  int // number of running calls that use the link; guarded by Pool.mu

	discovers bool // the server rejects initialize and accepts server/discover; only run uses this

	now     atomic.Pointer[view]
	current atomic.Pointer[life] // the open MCP session, or nil
	deaths  atomic.Int64         // how often the server has ended since the last successful call
	changed chan struct{}        // has an element when the tools must be listed again

	prompted chan struct{} // has an element when the prompts must be listed again

	calls    atomic.Uint64
	progress sync.Map // by token: func(*mcp.ProgressNotificationParams)

	// announced is how many changes of its tools the server has announced. listed is the
	// value of announced when the last listing began.
	announced, listed atomic.Int64
	urgent            atomic.Bool // the next listing is not delayed

	mu       sync.Mutex
	watchers map[*mount]func()
	stirred  chan struct{} // closed by the next call of stir
	open     []*openCall   // the running calls, oldest first
}

func newLink(name string, start time.Duration, s *spec, opts *Options) *link {
	l := &link{
		name: name, spec: s, logger: opts.Logger, start: cmp.Or(start, opts.Start), grace: opts.Grace, pause: opts.Backoff,
		done: make(chan struct{}), changed: make(chan struct{}, 1), prompted: make(chan struct{}, 1), watchers: make(map[*mount]func()), stirred: make(chan struct{}),
	}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.now.Store(&view{state: StateStarting})
	return l
}

// watch registers f. The link calls f when its view changes.
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

// run is the goroutine of the link. It starts the server again and again until the link
// ends.
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

// backoff returns the pause before the next start. deaths is how often the server has
// ended in a row. The pause doubles each time.
func backoff(first time.Duration, deaths int64) time.Duration {
	pause := min(first, mostBackoff)
	for ; deaths > 1 && pause < mostBackoff; deaths-- {
		pause = min(2*pause, mostBackoff)
	}
	return pause
}

// live runs the server once, from its start to its end. It returns how long the server
// was ready and why it ended.
func (l *link) live() (ready time.Duration, err error) {
	f, err := l.begin()
	if err != nil {
		return 0, err
	}
	if err = l.list(f, l.start); err == nil {
		since := time.Now()
		l.logger.Info("mcp server is ready", "server", l.name, "tools", len(l.now.Load().tools))
		go l.followPrompts(f) // ends with the session
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
			if pause := relisting - time.Since(last); pause > 0 && !urgent { // some servers announce changes all the time
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

// life is one MCP session with a server.
type life struct {
	session *mcp.ClientSession
	pipe    *pipe           // nil for a server with a URL
	ctx     context.Context //nolint:containedctx // it lives as long as the session: calls end with it
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when the session has ended
	ended   error         // why a server with a URL ended; valid when over is closed
	broken  chan error    // gets the error of a call that found the session broken

	prompts       atomic.Pointer[[]Prompt]
	listedPrompts chan struct{} // closed when the prompts were listed once, or could not be listed
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

// breaks marks a session as broken after a call failed. The session gets no more calls.
func (l *link) breaks(f *life, err error) {
	l.current.CompareAndSwap(f, nil)
	l.stir()
	select {
	case f.broken <- err:
	default: // already reported
	}
}

// watch waits until the session has ended, and then cancels its calls.
func (f *life) watch() {
	if f.pipe != nil {
		<-f.pipe.over
	} else {
		f.ended = f.session.Wait()
	}
	f.cancel(f.err())
	close(f.over)
}

// bury ends a session. For a program, it waits until the program has ended. For a server
// with a URL, it waits at most the grace time.
func (l *link) bury(f *life, why error) {
	l.current.Store(nil)
	l.stir()
	f.cancel(why) // the SDK tells the server to cancel running calls
	if f.pipe != nil {
		_ = pipeEnd{f.pipe}.Close() // Close never fails
		<-f.pipe.over
	}
	closed := make(chan struct{})
	go func() { // ends with the session; a server with a URL that does not answer can delay this
		defer close(closed)
		_ = f.session.Close() // the session has ended, with or without an error
	}()
	timer := time.NewTimer(l.grace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// ready publishes the view of a session, and lets agents call its tools.
func (l *link) ready(f *life, v *view) {
	l.current.Store(f)
	l.show(v)
}

// redacted returns an error without secrets, for logs and users.
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

// progressed passes a server's progress notification to the running call.
func (l *link) progressed(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	if f, ok := l.progress.Load(token); ok {
		f.(func(*mcp.ProgressNotificationParams))(r.Params)
	}
}

func (l *link) token() string { return strconv.FormatUint(l.calls.Add(1), 10) }

// version returns the version of the running program. The handshake sends it to servers.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
})
