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

// Options are the settings of an [Extension]. A nil *Options is valid. If several
// extensions share a server, the server uses the options of the first extension.
type Options struct {
	// Pool lets extensions share servers that have the same configuration. Defaults to a
	// pool for this extension alone.
	Pool *Pool
	// Wait is how long [New] waits for servers to be ready. For a single server,
	// [Server].Start and [Server].Required change this time. Tools of slower servers
	// appear when their server is ready. A negative value means no waiting. Defaults to 5
	// seconds.
	Wait time.Duration
	// Start is the maximum time for a server's start and handshake. Defaults to 1 minute.
	Start time.Duration
	// Grace is the time between SIGTERM and SIGKILL when Belay stops a server's process
	// group. Defaults to 2 seconds.
	Grace time.Duration
	// Backoff is the pause before Belay restarts a server. The pause doubles each time
	// the server ends, up to 30 seconds. It starts again at Backoff after the server has
	// answered a call or was ready for more than 30 seconds. Defaults to 100
	// milliseconds.
	Backoff time.Duration
	// Dir is the working directory of servers without a Dir of their own. Defaults to the
	// working directory of the Belay process.
	Dir string
	// Environ is the environment, as KEY=value, that servers get variables from. Defaults
	// to the environment of the Belay process.
	Environ []string
	// Transport sends the requests to servers with a URL. The default transport uses no
	// proxy, and does not connect to host names that resolve to private addresses.
	Transport http.RoundTripper
	// Logins are the user's logins to servers with a URL. Defaults to none.
	Logins *Logins
	// Logger logs the standard error and the log messages of servers, and when servers start and end. Defaults
	// to no logging.
	Logger *slog.Logger
}

// Extension gives an agent the tools of MCP servers. Make one with [New], and put it into
// the agent's Options.Extensions. Closing the agent closes the extension. To share
// servers, give each agent its own extension and give all extensions one [Pool].
type Extension struct {
	opts Options
	env  *environ
	now  atomic.Pointer[toolbox]

	over context.Context //nolint:containedctx // it lives as long as the extension: calls end with it
	end  context.CancelFunc

	changing sync.Mutex // held while servers are added or removed
	mu       sync.Mutex // guards the fields below
	mounts   []*mount
	gone     []*link           // removed servers that may still be running
	destroys map[string]string // tools that a server has ever marked as destructive, with the server's name
	change   chan struct{}     // closed at the next change
}

// toolbox is an immutable snapshot of all tools.
type toolbox struct {
	tools  []belay.Tool
	byName map[string]*serverTool
	taken  []error // one error for each name that two tools share
}

// mount is a server in an extension.
type mount struct {
	server Server
	link   *link // nil if the server is disabled or cannot start
	err    error // why the server cannot start
	seen   *view // the view of the link from which tools was made
	tools  []*serverTool
	lease  *belay.Lease
}

var (
	_ belay.StepToolExtension = (*Extension)(nil)
	_ belay.HookExtension     = (*Extension)(nil)
	_ belay.PromptExtension   = (*Extension)(nil)
	_ belay.ScopeExtension    = (*Extension)(nil)
	_ belay.NameExtension     = (*Extension)(nil)
	_ belay.CloseExtension    = (*Extension)(nil)
)

// New makes an extension and starts its servers. A server that does not start is not an
// error: [Extension.Servers] reports it, and Belay tries again. New returns when each
// server is ready, has failed once or exceeds its wait time (see Options.Wait), or when ctx
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

// Name returns "mcp". Errors use it.
func (e *Extension) Name() string { return "mcp" }

// Add adds all given servers and starts them. On an error it adds none. Agents see the
// tools in the first model request after the servers are ready. Closing the lease removes
// the tools. A removed server ends after its last calls, unless another extension uses
// it.
func (e *Extension) Add(servers ...Server) (*belay.Lease, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	added, err := e.sound(nil, servers)
	if err != nil {
		return nil, err
	}
	return e.swap(nil, added), nil
}

// Replace starts new servers and removes the servers of an old lease, which may be nil.
// All tools change together: when each new server is ready, has failed once or exceeds its
// wait time (see Options.Wait), or when ctx ends. On an error the old servers stay.
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

// sound checks servers and starts them. Their names must differ from the names of the
// existing servers, except those of the lease that will be replaced.
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
			problems = append(problems, fmt.Errorf("mcp server %q: two servers have this name, declared in %s and in %s: rename one of them", s.Name, other.where(), s.where()))
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

// settle waits until each server is ready or has failed once. It stops waiting for a
// server after the server's wait time, and for all servers when ctx or the extension
// ends.
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
	for _, m := range added { // servers with a longer wait time come later
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

// settled reports whether a server has started or failed and the tools reflect this. The
// caller holds e.mu.
func (e *Extension) settled(m *mount) bool {
	if m.link == nil {
		return true
	}
	v := m.link.now.Load()
	return v.state != StateStarting && (m.seen == v || !slices.Contains(e.mounts, m)) // before swap mounts the server, there are no tools to check
}

// swap makes the added servers visible to agents and removes the servers of the old
// lease.
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
	return c // Env and Headers need no copy: resolve reads them at once
}

// begin gets the link of a server from the pool and watches the link.
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
	if e.opts.Logins != nil && spec.url != "" && !spec.hasAuthorization() { // a declared header is stronger than a login
		spec.logins, spec.login = e.opts.Logins, m.server.Name
	}
	m.link = e.opts.Pool.take(&m.server, spec, &e.opts)
	m.link.watch(m, e.follow)
}

// follow updates the tools when a link has changed.
func (e *Extension) follow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gather()
}

// gather makes the tools from the views of all links. The caller holds e.mu.
func (e *Extension) gather() {
	box := &toolbox{byName: make(map[string]*serverTool)}
	for _, m := range e.mounts {
		m.gather(e)
		for _, t := range m.tools {
			if other := box.byName[t.declaration.Name]; other != nil {
				err := fmt.Errorf("mcp: tool %s: servers %q and %q both have a tool with this name: agents get only the tool of the first server", t.declaration.Name, other.server, t.server)
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

// gather makes the tools of one server. It reuses tools that have not changed.
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

// remove removes servers. The caller holds e.mu.
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

// leave returns the link of a server to the pool.
func (e *Extension) leave(m *mount) {
	if m.link == nil {
		return
	}
	m.link.unwatch(m)
	e.opts.Pool.letGo(m.link)
	e.gone = append(slices.DeleteFunc(e.gone, (*link).isOver), m.link)
}

// StepTools returns the tools of all servers. It returns the same values until the tools
// change. If a server has announced a change, StepTools waits up to 2 seconds for the new
// list.
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

// Hooks returns two hooks. The hook mcp.destructive asks a person before each call of a
// tool that its server marks as destructive, even if the floor (the permission check)
// would allow the call. A server cannot loosen a check: marking a tool as harmless
// changes nothing. The hook mcp.instructions adds the instructions of the servers to the
// prompt.
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
	// A tool stays destructive once a server has marked it so. The reason: a running turn
	// may still call a tool that was removed or changed after the turn's request.
	e.mu.Lock()
	server, destroys := e.destroys[call.Tool()]
	full := len(e.destroys) == mostDestroying
	e.mu.Unlock()
	t := e.now.Load().byName[call.Tool()]
	switch {
	case destroys:
		return belay.Ask(fmt.Sprintf("MCP server %q says that %s may destroy something", server, call.Tool())), nil
	case full && (t == nil || t.destructive):
		return belay.Ask("this tool may be destructive: MCP servers marked more tools as destructive than Belay remembers"), nil
	default:
		return belay.Pass, nil
	}
}

// mostDestroying is the maximum number of tool names in Extension.destroys.
const mostDestroying = 10_000

// Close ends running calls and releases all servers. It waits until the servers that no
// other extension uses have ended, or until ctx ends.
func (e *Extension) Close(ctx context.Context) error {
	e.end()
	e.changing.Lock()
	e.mu.Lock()
	e.remove(e.mounts)
	e.mu.Unlock()
	e.changing.Unlock()
	return e.Drain(ctx)
}

// Drain waits until the removed servers that no other extension uses have ended, or until
// ctx ends.
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

func (l *link) isOver() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
