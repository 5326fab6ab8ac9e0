package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Options are the settings of an [Extension]. A nil *Options is valid. A server that
// several extensions share uses the options of the first.
type Options struct {
	// Pool may be shared with other extensions, to share servers of the same
	// configuration. Defaults to a private pool.
	Pool *Pool
	// Wait is how long [New] waits for servers to be ready. Tools of slower servers
	// appear when they are ready. Negative means not to wait. Defaults to 5 seconds.
	Wait time.Duration
	// Start is how long a server has to start and answer the handshake. Defaults to 1
	// minute.
	Start time.Duration
	// Grace is how long a server's process group has between SIGTERM and SIGKILL.
	// Defaults to 2 seconds.
	Grace time.Duration
	// Backoff is the pause before a server is started again. It doubles, up to 30
	// seconds, each time the server ends without having answered a call and without
	// having been ready for 30 seconds. Defaults to 100 milliseconds.
	Backoff time.Duration
	// Dir is the working directory of servers that name none. Defaults to that of the
	// process.
	Dir string
	// Environ is the host's environment, as KEY=value. Defaults to that of the process.
	Environ []string
	// Transport sends the requests to servers with a URL. Defaults to one that uses no
	// proxy, and that does not connect to host names that resolve to private addresses.
	Transport http.RoundTripper
	// Logger gets the standard error of servers, and their starts and ends. Defaults
	// to discarding them.
	Logger *slog.Logger
}

// Extension gives an agent the tools of MCP servers. Make one with [New], and put it into
// the agent's Options.Extensions. It is closed with its agent. To share servers, give each
// agent its own extension and all of them one [Pool].
type Extension struct {
	opts Options
	env  *environ
	now  atomic.Pointer[toolbox]

	over context.Context //nolint:containedctx // it lives as long as the extension: calls end with it
	end  context.CancelFunc

	changing sync.Mutex // held while servers are added or removed
	mu       sync.Mutex // guards what follows
	mounts   []*mount
	gone     []*link           // servers that are ending
	destroys map[string]string // tools that are or were marked as destructive, with their servers
	change   chan struct{}     // closed with the next change
}

// toolbox holds the tools at one moment. It never changes.
type toolbox struct {
	tools  []belay.Tool
	byName map[string]*serverTool
	taken  []error // names that two tools share
}

// mount is a server in an extension.
type mount struct {
	server Server
	link   *link // nil if it must not start
	err    error // why it cannot start
	seen   *view // the view that tools was made from
	tools  []*serverTool
	lease  *belay.Lease
}

var (
	_ belay.StepToolExtension = (*Extension)(nil)
	_ belay.HookExtension     = (*Extension)(nil)
	_ belay.PromptExtension   = (*Extension)(nil)
	_ belay.ScopeExtension    = (*Extension)(nil)
	_ belay.CloseExtension    = (*Extension)(nil)
)

// New makes an extension of servers and starts them. A server that cannot be started is
// not an error: [Extension.Servers] reports it, and it is tried again. New returns when
// each server was ready or has failed once, when Options.Wait has passed, or when ctx
// ends.
func New(ctx context.Context, servers []Server, opts *Options) (*Extension, error) {
	e := &Extension{change: make(chan struct{}), destroys: make(map[string]string)}
	if opts != nil {
		e.opts = *opts
	}
	if err := e.opts.complete(); err != nil {
		return nil, err
	}
	e.env = newEnviron(e.opts.Environ)
	e.over, e.end = context.WithCancel(context.Background())
	e.now.Store(&toolbox{})
	if _, err := e.Add(servers...); err != nil {
		return nil, err
	}
	e.mu.Lock()
	mounts := e.mounts
	e.mu.Unlock()
	e.settle(ctx, mounts)
	return e, nil
}

func (o *Options) complete() error {
	if o.Pool == nil {
		o.Pool = new(Pool)
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{{"wait", &o.Wait, 5 * time.Second}, {"start", &o.Start, time.Minute}, {"grace", &o.Grace, 2 * time.Second}, {"backoff", &o.Backoff, firstBackoff}} {
		if *d.value == 0 {
			*d.value = d.or
		}
		if *d.value < 0 && d.name != "wait" {
			return fmt.Errorf("mcp: %s must not be negative", d.name)
		}
	}
	return nil
}

// Name returns the name for errors.
func (e *Extension) Name() string { return "mcp" }

// Add adds servers, all or none, and starts them. Agents see their tools in the first
// model request after they are ready. Closing the lease removes the tools, and stops
// servers that no one else uses after their last calls.
func (e *Extension) Add(servers ...Server) (*belay.Lease, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	added, err := e.sound(nil, servers)
	if err != nil {
		return nil, err
	}
	return e.swap(nil, added), nil
}

// Replace starts new servers and removes those of a lease, which may be nil. It switches
// the tools when each new server was ready or has failed once, when Options.Wait has
// passed, or when ctx ends. On an error the old servers stay.
func (e *Extension) Replace(ctx context.Context, old *belay.Lease, servers ...Server) (*belay.Lease, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	added, err := e.sound(old, servers)
	if err != nil {
		return nil, err
	}
	e.settle(ctx, added)
	return e.swap(old, added), nil
}

// sound checks that servers fit the existing ones, except those of a lease, and starts
// them.
func (e *Extension) sound(but *belay.Lease, servers []Server) ([]*mount, error) {
	if e.over.Err() != nil {
		return nil, errors.New("mcp: the extension is closed")
	}
	var problems []error
	owners := make(map[string]*Server)
	e.mu.Lock()
	for _, m := range e.mounts {
		if but == nil || m.lease != but {
			owners[m.server.Name] = &m.server
		}
	}
	e.mu.Unlock()
	added := make([]*mount, 0, len(servers))
	for i := range servers {
		s := servers[i].clone()
		if err := s.sound(); err != nil {
			problems = append(problems, err)
			continue
		}
		if other := owners[s.Name]; other != nil {
			problems = append(problems, fmt.Errorf("mcp server %q: there are two of that name, from %s and from %s: rename one of them", s.Name, other.where(), s.where()))
			continue
		}
		owners[s.Name] = &s
		added = append(added, &mount{server: s})
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	for _, m := range added {
		e.begin(m)
	}
	return added, nil
}

// settle waits until each server was ready or has failed once, or its wait time has
// passed, or ctx or the extension ends.
func (e *Extension) settle(ctx context.Context, added []*mount) {
	if e.opts.Wait < 0 {
		return
	}
	began := time.Now()
	bound := func(m *mount) time.Duration {
		if m.server.Required {
			return cmp.Or(m.server.Start, e.opts.Start)
		}
		return cmp.Or(m.server.Start, e.opts.Wait)
	}
	added = slices.SortedStableFunc(slices.Values(added), func(a, b *mount) int { return cmp.Compare(bound(a), bound(b)) })
	for _, m := range added { // those that take longer come later
		e.settleOne(ctx, m, began.Add(bound(m)))
	}
}

func (e *Extension) settleOne(ctx context.Context, m *mount, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		e.mu.Lock()
		change, settled := e.change, e.settled(m)
		e.mu.Unlock()
		if settled {
			return
		}
		select {
		case <-change:
		case <-ctx.Done():
			return
		case <-e.over.Done():
			return
		}
	}
}

// settled reports whether a server has started or failed, and agents see that. The caller
// holds e.mu.
func (e *Extension) settled(m *mount) bool {
	if m.link == nil {
		return true
	}
	v := m.link.now.Load()
	return v.state != StateStarting && (m.seen == v || !slices.Contains(e.mounts, m)) // one that is not mounted yet is not seen
}

// swap shows servers and removes those of a lease.
func (e *Extension) swap(old *belay.Lease, added []*mount) *belay.Lease {
	lease := belay.NewLease(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.remove(added)
	})
	for _, m := range added {
		m.lease = lease
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var gone []*mount
	if old != nil {
		gone = slices.DeleteFunc(slices.Clone(e.mounts), func(m *mount) bool { return m.lease != old })
	}
	e.mounts = append(slices.Clone(e.mounts), added...)
	e.remove(gone)
	return lease
}

func (s *Server) clone() Server {
	c := *s
	c.Args, c.Tools = slices.Clone(s.Args), slices.Clone(s.Tools)
	return c // the maps are only read, without delay
}

// begin takes the link of a server and watches its changes.
func (e *Extension) begin(m *mount) {
	if m.server.Disabled {
		return
	}
	spec, err := resolve(&m.server, e.env, e.opts.Dir)
	if err != nil {
		m.err = err
		e.opts.Logger.Warn("mcp server is not started", "server", m.server.Name, "error", err)
		return
	}
	spec.transport = e.opts.Transport
	m.link = e.opts.Pool.take(&m.server, spec, &e.opts)
	m.link.watch(m, e.follow)
}

// follow is called when a link changes.
func (e *Extension) follow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gather()
}

// gather makes the tools from the views of the links.
func (e *Extension) gather() {
	box := &toolbox{byName: make(map[string]*serverTool)}
	for _, m := range e.mounts {
		m.gather(e)
		for _, t := range m.tools {
			if other := box.byName[t.declaration.Name]; other != nil {
				err := fmt.Errorf("mcp: tool %s: servers %q and %q both have one of that name: the second is left out", t.declaration.Name, other.server, t.server)
				box.taken = append(box.taken, err)
				continue
			}
			box.byName[t.declaration.Name] = t
			if t.destructive && len(e.destroys) < mostDestroying {
				e.destroys[t.declaration.Name] = t.server
			}
			box.tools = append(box.tools, t)
		}
	}
	if before := e.now.Load(); before == nil || !slices.Equal(before.tools, box.tools) || len(before.taken) != len(box.taken) {
		e.now.Store(box)
	}
	close(e.change)
	e.change = make(chan struct{})
}

// gather makes the tools of a server. It reuses tools that have not changed.
func (m *mount) gather(e *Extension) {
	if m.link == nil {
		return
	}
	v := m.link.now.Load()
	if v == m.seen {
		return
	}
	m.seen = v
	before := m.tools
	m.tools = nil
	for _, o := range v.tools {
		if !m.server.wants(o.name) {
			continue
		}
		if at := slices.IndexFunc(before, func(t *serverTool) bool { return t.equal(o) }); at >= 0 {
			m.tools = append(m.tools, before[at])
			continue
		}
		m.tools = append(m.tools, &serverTool{
			offered: o, server: m.server.Name, link: m.link, over: e.over,
			declaration: belay.ToolDeclaration{Name: ToolName(m.server.Name, o.name), Description: o.description, InputSchema: o.schema},
		})
	}
}

// remove removes servers.
func (e *Extension) remove(gone []*mount) {
	e.mounts = slices.DeleteFunc(slices.Clone(e.mounts), func(m *mount) bool {
		if !slices.Contains(gone, m) {
			return false
		}
		e.leave(m)
		return true
	})
	e.gather()
}

// leave releases the link of a server.
func (e *Extension) leave(m *mount) {
	if m.link == nil {
		return
	}
	m.link.unwatch(m)
	e.opts.Pool.letGo(m.link)
	e.gone = append(slices.DeleteFunc(e.gone, (*link).isOver), m.link)
}

// StepTools returns the tools of the servers, the same values as long as they do not
// change. It waits a moment for tools that a server has announced and not yet listed.
func (e *Extension) StepTools(string) []belay.Tool {
	e.mu.Lock()
	mounts := e.mounts
	e.mu.Unlock()
	var late <-chan time.Time // one deadline for all servers
	for _, m := range mounts {
		if m.link == nil || m.link.isCaughtUp() {
			continue
		}
		if late == nil {
			late = time.After(catchingUp)
		}
		if !m.link.catchUp(late, e.over.Done()) {
			break
		}
	}
	return e.now.Load().tools
}

// Hooks returns two hooks. One is a gate that asks a person before each call of a tool that
// its server marks as destructive, even where the floor would allow the call. Annotations
// never loosen a check: marking a tool as harmless changes nothing. The other adds the
// instructions of the servers to the prompt.
func (e *Extension) Hooks() []hook.Subscription {
	instructions := belay.TurnPrePromptCompile.On("mcp.instructions", e.instruct, &hook.Options{
		Description: "adds the instructions of MCP servers to the prompt", Version: "1", Capabilities: hook.CanAddSections, Visibility: hook.VisibleInDebug, NoInherit: true,
	})
	return []hook.Subscription{instructions, belay.ToolPre.On("mcp.destructive", e.judge, &hook.Options{
		Description: "asks for approval before a tool that its MCP server marks as destructive", Version: "1",
		Match: hook.Match{Tools: []string{"*" + separator + "*"}}, Visibility: hook.VisibleInDebug,
		NoInherit: true, // a subagent with these tools has an extension of its own
	})}
}

func (e *Extension) judge(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	// A turn may still have a tool that was removed or changed after its request. So a
	// tool stays destructive once it was marked as such.
	e.mu.Lock()
	server, destroys := e.destroys[call.Tool()]
	full := len(e.destroys) == mostDestroying
	e.mu.Unlock()
	t := e.now.Load().byName[call.Tool()]
	switch {
	case destroys:
		return belay.Ask(fmt.Sprintf("MCP server %q says that %s may destroy something", server, call.Tool())), nil
	case full && (t == nil || t.destructive):
		return belay.Ask("MCP servers had so many destructive tools that this one may have been one of them"), nil
	default:
		return belay.Pass, nil
	}
}

// mostDestroying is how many names of destructive tools are kept.
const mostDestroying = 10_000

// Close ends running calls and releases all servers. It waits until servers that no one
// else uses have ended, or until ctx ends.
func (e *Extension) Close(ctx context.Context) error {
	e.end()
	e.changing.Lock()
	e.mu.Lock()
	e.remove(e.mounts)
	e.mu.Unlock()
	e.changing.Unlock()
	return e.Drain(ctx)
}

// Drain waits until removed servers that no one else uses have ended, or until ctx
// ends.
func (e *Extension) Drain(ctx context.Context) error {
	e.mu.Lock()
	gone := slices.Clone(e.gone)
	e.mu.Unlock()
	for _, l := range gone {
		if l.pool.has(l) {
			continue
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return fmt.Errorf("mcp: servers are still running: %w", context.Cause(ctx))
		}
	}
	return nil
}

// isOver reports whether a link has ended.
func (l *link) isOver() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
