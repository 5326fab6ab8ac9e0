package acp

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/belay-run/belay/acp/internal/jsonrpc"
)

// Options are the options of [New].
type Options struct {
	// Name and Version identify the agent to editors. Default to "belay" and "dev".
	Name, Version string
	// Person is who decides in the editor, for the record of approvals. Defaults to "the
	// user".
	Person string
	// MaxMessage is the length of the longest message in bytes. Defaults to 64 MiB.
	MaxMessage int
	// Heed is how often the store is asked whether somebody else has decided about a
	// question. Defaults to 500 milliseconds.
	Heed time.Duration
	// Logger gets what goes wrong. Defaults to no log.
	Logger *slog.Logger
}

// Server offers agents to editors. It is safe for concurrent use.
type Server struct {
	source Source
	opts   Options
}

// New returns a server of the agents of a source. The options may be nil.
func New(source Source, opts *Options) *Server {
	s := &Server{source: source}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Name, s.opts.Version = cmp.Or(s.opts.Name, "belay"), cmp.Or(s.opts.Version, "dev")
	s.opts.Person = cmp.Or(s.opts.Person, "the user")
	s.opts.Heed = cmp.Or(s.opts.Heed, 500*time.Millisecond)
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// Serve talks to one editor until the editor closes its stream or ctx ends. Turns that run
// are then aborted, and turns that wait for a decision stay parked. If in can be closed,
// Serve closes it when ctx ends.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if closer, ok := in.(io.Closer); ok {
		defer context.AfterFunc(ctx, func() { _ = closer.Close() })() // ignore errors: the read ends in any case
	}
	e := &editor{server: s, sessions: make(map[string]*session)}
	e.conn = jsonrpc.New(in, out, &jsonrpc.Options{MaxMessage: s.opts.MaxMessage, Logger: s.opts.Logger, Closing: e.leave})
	err := e.conn.Serve(ctx, e.accept)
	e.closeAll(context.WithoutCancel(ctx))
	return err
}

// editor is one connection.
type editor struct {
	server *Server
	conn   *jsonrpc.Conn

	mu       sync.Mutex
	ready    bool // initialize was called
	gone     bool // the editor has closed its stream
	client   client
	sessions map[string]*session
}

// now is the time, for approvals that expire.
func (*editor) now() time.Time { return time.Now() }
