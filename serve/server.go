package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/console"
)

// Store is the store of a server: store/sqlite or store/postgres.
type Store interface {
	belay.JournalStore
	belay.ManageStore
	belay.RequeueStore
	belay.KeyStore
}

// Options are the settings of a Server.
type Options struct {
	// Tokens are the tokens that clients may use. They are required.
	Tokens *Tokens
	// Workers is how many turns this process runs at once. Zero means none: workers in other
	// processes run the turns. Defaults to 0.
	Workers int
	// Hosts are the host names of the server, besides the names of this machine. A request
	// with another name in its Host header is refused. Defaults to none.
	Hosts []string
	// TrustProxy makes the server read the address of the client from X-Forwarded-For. Set it
	// only if every request comes through your own proxy. Defaults to false.
	TrustProxy bool
	// MaxBody is the maximum size of a request body in bytes. The body of startTurn, which may
	// have files, can be 16 times larger. Defaults to 1 MiB.
	MaxBody int64
	// Connections is the maximum number of open connections. Defaults to 4096.
	Connections int
	// Rate is how many requests a token may send in a second, on average. Defaults to 500.
	Rate float64
	// Streams is how many event streams a token may have open. A request that waits for the end
	// of a turn counts too. It is also the maximum number of MCP sessions of a token. Defaults
	// to 2000.
	Streams int
	// Grace is how long a turn may take to finish its current step when the server stops.
	// Defaults to 30 seconds.
	Grace time.Duration
	// Ping is the time between two comments in an idle event stream, which keep the connection
	// open. Defaults to 15 seconds.
	Ping time.Duration
	// Metrics answers GET /metrics, for tokens with the role read and without labels: the
	// metrics are about all sessions. Defaults to none: there is no such address.
	Metrics http.Handler
	// Lag is called for each event of a running turn that a stream could take for its client,
	// with the time since the event. It must not block. Defaults to none.
	Lag func(time.Duration)
	// TraceURL is the address of the page that shows a trace in your trace viewer, such as
	// "https://jaeger.example/trace/{trace}". With it, the console links each turn to its
	// trace. Defaults to none.
	TraceURL string
	// MCPOnly leaves out everything but /mcp, /healthz and /readyz. Defaults to false.
	MCPOnly bool
	// Logger gets errors that are not the fault of a client. By default they are discarded.
	Logger *slog.Logger
}

// Server serves the API of a host.
type Server struct {
	opts    Options
	host    *host.Host
	store   Store
	project *inspect.Project
	worker  *engine.Worker // nil: other processes run the turns
	log     *slog.Logger
	feed    *feed
	failed  *failedLogins
	usages  *usages
	mcp     *mcpSessions

	audiences   audiences
	timeouts    timeouts
	backtesting chan struct{} // holds a value while a backtest runs
	auditing    chan struct{} // holds a value for each question of an audit that is being answered

	draining context.Context //nolint:containedctx // it ends when the server stops
	drain    context.CancelFunc
}

// New returns a server for a host. The host's store must be store/sqlite or store/postgres.
// If Options.Workers is more than 0, open the host with NoJobs: the server runs the jobs too.
func New(h *host.Host, opts *Options) (*Server, error) {
	if h == nil || opts == nil || opts.Tokens == nil {
		return nil, errors.New("new server: the host or Options.Tokens is nil: set both")
	}
	store, ok := h.Store().(Store)
	if !ok {
		return nil, fmt.Errorf("new server: a store of type %T has no queue of turns: use store/sqlite or store/postgres", h.Store())
	}
	s := &Server{opts: *opts, host: h, store: store, project: h.Project(), failed: newFailedLogins(), timeouts: defaultTimeouts, backtesting: make(chan struct{}, 1), auditing: make(chan struct{}, 2)}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.opts.MaxBody = cmp.Or(s.opts.MaxBody, 1<<20)
	s.opts.Connections = cmp.Or(s.opts.Connections, 4096)
	s.opts.Rate = cmp.Or(s.opts.Rate, 500)
	s.opts.Streams = cmp.Or(s.opts.Streams, 2000)
	s.usages, s.mcp = newUsages(s.opts.Rate, s.opts.Streams), newMCPSessions(s.opts.Streams)
	s.opts.Grace = cmp.Or(s.opts.Grace, 30*time.Second)
	s.opts.Ping = cmp.Or(s.opts.Ping, 15*time.Second)
	if s.log = s.opts.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.feed = newFeed(s)
	if s.opts.Workers < 0 || s.opts.MaxBody < 0 || s.opts.Connections < 0 || s.opts.Rate < 0 || s.opts.Streams < 0 {
		return nil, errors.New("new server: Workers, MaxBody, Connections, Rate and Streams must not be negative")
	}
	if s.opts.Workers > 0 {
		var err error
		s.worker, err = engine.New(store, h.Agent, &engine.Options{Turns: s.opts.Workers, Grace: s.opts.Grace, Logger: s.log})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// headers of every response: nothing is cached, and a browser runs nothing and frames
// nothing. All responses share the values.
var headers = http.Header{
	"Cache-Control":                {"no-store"},
	"Content-Security-Policy":      {"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Referrer-Policy":              {"no-referrer"},
	"X-Content-Type-Options":       {"nosniff"},
	"X-Frame-Options":              {"DENY"},
}

// Handler returns the handler of the whole API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(pathMCP, s.mcpHandler())
	missing := func(w http.ResponseWriter, r *http.Request) { notFound("resource", r.URL.Path).send(w) }
	methods := make(map[string][]string)
	handle := func(method, path string, f http.HandlerFunc) {
		mux.HandleFunc(method+" "+path, f)
		methods[path] = append(methods[path], method)
	}
	handle("GET", "/healthz", func(w http.ResponseWriter, _ *http.Request) { s.sendJSON(w, http.StatusOK, health{"ok"}) })
	handle("GET", "/readyz", s.ready)
	if s.opts.MCPOnly {
		mux.HandleFunc("/", missing)
		return s.guard(mux)
	}
	if s.opts.Metrics != nil {
		handle("GET", "/metrics", s.metrics)
	}
	handle("GET", "/v1/openapi.json", static("application/json", openAPI))
	handle("GET", "/v1/docs", static("text/html; charset=utf-8", referencePage))
	handle("GET", "/v1/docs.css", static("text/css; charset=utf-8", referenceStyle))
	all := operations()
	for i := range all {
		op := &all[i]
		handle(op.method, op.path, func(w http.ResponseWriter, r *http.Request) { s.serve(op, w, r) })
	}
	for path, allowed := range methods { // the mux's own answer is not a problem document
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			problem(http.StatusMethodNotAllowed, codes.RequestMethod, "this address allows only %s", strings.Join(allowed, " and ")).send(w)
		})
	}
	mux.HandleFunc("/v1/", missing)
	handler := openAIErrors(s.guard(mux))
	pages, err := s.console(handler)
	if err != nil {
		s.log.Error("the console does not start", "error", err)
		mux.HandleFunc("/", missing)
		return handler
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if pages.Handles(r) {
			pages.ServeHTTP(w, r)
			return
		}
		missing(w, r)
	})
	return handler
}

// console returns the pages for people. They use the API through its handler.
func (s *Server) console(api http.Handler) (*console.Console, error) {
	key, err := s.opts.Tokens.consoleKey()
	if err != nil {
		return nil, err
	}
	return console.New(api, &console.Options{Key: key, Draining: s.draining, Logger: s.log, TraceURL: s.opts.TraceURL})
}

// isClean reports whether the mux takes a path as it is. It redirects all other paths, with a
// page that is not a problem document.
func isClean(escaped string) bool {
	clean := path.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && clean != "/" {
		clean += "/"
	}
	return strings.HasPrefix(escaped, "/") && clean == escaped
}

// refusal returns why a token may not use an operation, or nil.
func (s *Server) refusal(op *operation, token *Token, r *http.Request) *Problem {
	if !token.may(op.role) {
		return problem(http.StatusForbidden, codeForbidden, "the token %q lacks the role %s", token.Name, op.role)
	}
	if op.unlimited && len(token.Labels) > 0 {
		return notFound("resource", r.URL.Path)
	}
	return nil
}

// serve runs one operation.
func (s *Server) serve(op *operation, w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
				panic(p)
			}
			s.log.ErrorContext(ctx, "panic while serving a request", "operation", op.id, "panic", p)
			s.problemOf(ctx, errors.New("panic")).send(w)
		}
	}()
	control := http.NewResponseController(w)
	token, p := s.authenticate(r)
	if p == nil {
		p = s.usages.request(token, time.Now())
	}
	if p != nil {
		p.send(w)
		return
	}
	if p := s.refusal(op, token, r); p != nil {
		p.send(w)
		return
	}
	limit := s.opts.MaxBody
	if op.files {
		limit *= withFiles
	}
	input, err := op.decode(r, r.PathValue, limit)
	if err != nil {
		s.problemFor(ctx, token, err).send(w)
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	q := &request{op: op, token: token, w: w, r: r}
	if op.stream != nil {
		if err := op.stream(ctx, s, q, input); err != nil {
			s.problemFor(ctx, token, err).send(w)
		}
		return
	}
	out, err := op.call(ctx, s, q, input)
	_ = control.SetWriteDeadline(time.Now().Add(s.timeouts.body)) // the operation may have waited for a turn
	switch {
	case err != nil:
		s.problemFor(ctx, token, err).send(w)
	case op.out == nil:
		w.WriteHeader(op.status)
	default:
		status := op.status
		if o, ok := out.(interface{ httpStatus() int }); ok {
			status = o.httpStatus()
		}
		s.sendJSON(w, status, out)
	}
}

// timeouts limit how long a slow client can use a connection, and say how often the server looks.
type timeouts struct {
	// header and body are how long a client may take to send the header and the rest of a
	// request. A client may also take body to read a response, or each partSize bytes of it.
	header, body time.Duration
	// event is how long a client may take to read an event, or each partSize bytes of it. A
	// client that takes longer is disconnected. It can continue with the last id that it has.
	event time.Duration
	// ask is how long the user of an MCP client may take to fill in a form. Then the turn stays
	// parked, and the approval can be decided elsewhere.
	ask time.Duration
	// look is how often a request that waits for a queued turn looks whether the turn can begin.
	look time.Duration
}

var defaultTimeouts = timeouts{header: 10 * time.Second, body: 30 * time.Second, event: 10 * time.Second, ask: 10 * time.Minute, look: 5 * time.Second}

func (s *Server) sendJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(&patientWriter{w: w, control: http.NewResponseController(w), each: s.timeouts.body})
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) //nolint:errchkjson // the client has left; tests encode every response
}

// static serves a text that is the same on every server.
func static(kind string, text func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text()) // ignore errors: the client has left
	}
}

// health is the body of /healthz and /readyz.
type health struct {
	Status string `json:"status"`
}

// ready reports whether the server takes requests: it does not stop, and its store answers.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if s.stopping() {
		s.sendJSON(w, http.StatusServiceUnavailable, health{"draining"})
		return
	}
	if _, err := s.store.Load(ctx); err != nil {
		s.log.WarnContext(ctx, "the store does not answer", "error", err)
		s.sendJSON(w, http.StatusServiceUnavailable, health{"the store does not answer"})
		return
	}
	s.sendJSON(w, http.StatusOK, health{"ready"})
}

// stopping reports whether the server stops.
func (s *Server) stopping() bool {
	return s.draining.Err() != nil
}

// Serve serves the API on a listener, and runs turns, until ctx ends. Then it starts no more
// turns, hands over running turns after their current step, ends the event streams, and
// returns. It does the same, and returns an error, if it can no longer run turns or accept
// connections. It refuses an address that is not loopback if there are no tokens.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if err := s.mayListen(listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: s.timeouts.header, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	var worked chan error                                                               // nil: this server runs no turns
	go func() { served <- server.Serve(limitListener(listener, s.opts.Connections)) }() // ends with Shutdown
	working, stop := context.WithCancel(ctx)
	defer stop()
	sharing, endShare := context.WithCancel(context.WithoutCancel(ctx))
	shared := make(chan struct{})
	go func() { // ends with endShare
		defer close(shared)
		s.host.Share(sharing)
	}()
	defer func() { endShare(); <-shared }()
	if s.worker != nil {
		worked = make(chan error, 1)
		go func() { worked <- s.worker.Run(working) }() // ends when all turns have ended or are handed over
	}
	var err error
	select {
	case err = <-served:
	case err = <-worked:
		if worked = nil; err == nil && ctx.Err() == nil {
			err = errors.New("the worker has ended")
		}
		if err != nil {
			err = fmt.Errorf("the server runs no more turns: %w", err)
		}
	case <-ctx.Done():
	}
	s.drain()
	stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Grace)
	defer cancel()
	if shut := server.Shutdown(ending); shut != nil {
		err = errors.Join(err, server.Close())
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if ended := s.mcp.end(); ended != nil {
		s.log.DebugContext(ctx, "an MCP session ended with an error", "error", ended)
	}
	if worked != nil {
		err = errors.Join(err, <-worked)
	}
	return err
}

// mayListen returns an error if an address needs tokens and there are none.
func (s *Server) mayListen(addr net.Addr) error {
	if isLoopback(addr) {
		return nil
	}
	all, err := s.opts.Tokens.List()
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Name != localName {
			return nil
		}
	}
	return fmt.Errorf("the address %s is open to other machines, and there are no tokens: create one with `belay token create NAME --role run`, or listen on 127.0.0.1", addr)
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(addr net.Addr) bool {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return addr.Network() == "unix"
}
