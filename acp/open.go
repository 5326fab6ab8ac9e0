package acp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp/internal/jsonrpc"
	"github.com/belay-run/belay/internal/inspect"
)

// opening is what the requests that open a session have in common.
type opening struct {
	dir     string
	dirs    []string
	servers []sdk.McpServer
	session string // "" for a new one
}

func (e *editor) newSession(p *sdk.NewSessionRequest) work {
	return func(ctx context.Context) (any, error) {
		s, err := e.open(ctx, &opening{p.Cwd, p.AdditionalDirectories, p.McpServers, ""})
		if err != nil {
			return nil, err
		}
		modes, options := s.choices(ctx)
		return jsonrpc.Reply{
			Result: &sdk.NewSessionResponse{SessionId: sdk.SessionId(s.id), Modes: modes, ConfigOptions: options},
			After:  s.advertise,
		}, nil
	}
}

func (e *editor) loadSession(p *sdk.LoadSessionRequest) work {
	return func(ctx context.Context) (any, error) {
		s, err := e.open(ctx, &opening{p.Cwd, p.AdditionalDirectories, p.McpServers, string(p.SessionId)})
		if err != nil {
			return nil, err
		}
		if err := s.replay(ctx); err != nil {
			return nil, err
		}
		modes, options := s.choices(ctx)
		return jsonrpc.Reply{Result: &sdk.LoadSessionResponse{Modes: modes, ConfigOptions: options}, After: s.reopened}, nil
	}
}

func (e *editor) resumeSession(p *sdk.ResumeSessionRequest) work {
	return func(ctx context.Context) (any, error) {
		s, err := e.open(ctx, &opening{p.Cwd, p.AdditionalDirectories, p.McpServers, string(p.SessionId)})
		if err != nil {
			return nil, err
		}
		modes, options := s.choices(ctx)
		return jsonrpc.Reply{Result: &sdk.ResumeSessionResponse{Modes: modes, ConfigOptions: options}, After: s.reopened}, nil
	}
}

// reopened tells the editor what a session from the store can do, and whether its last turn waits
// for the user: the protocol has questions only while a prompt runs.
func (s *session) reopened() {
	s.advertise()
	info, found, err := inspect.FindSession(context.Background(), s.space.Store, s.id)
	if err == nil && found && info.State.Turn != nil && info.State.Turn.Parked {
		s.note("The last turn waits for a decision or an answer: send a message to continue it.")
	}
}

// open opens a session. If the editor has it open already, it is closed first.
func (e *editor) open(ctx context.Context, o *opening) (*session, error) {
	for _, dir := range append([]string{o.dir}, o.dirs...) {
		if err := isDirectory(dir); err != nil {
			return nil, err
		}
	}
	servers, err := serversOf(o.servers)
	if err != nil {
		return nil, err
	}
	s := &session{e: e, id: o.session}
	if s.id == "" {
		s.id = inspect.NewSessionID(time.Now())
	} else if err := e.prepare(ctx, o); err != nil {
		return nil, err
	}
	s.space, err = e.server.source.Open(ctx, &Project{Dir: o.dir, Dirs: o.dirs, Session: s.id, Stored: o.session != "", Servers: servers, Notify: s.tell})
	if err != nil {
		return nil, told(err)
	}
	s.belay = s.space.Agent.Session(s.id)
	if err := e.keep(s); err != nil {
		return nil, errors.Join(err, s.close(ctx, errLeft))
	}
	return s, nil
}

// prepare checks that a stored session can be opened.
func (e *editor) prepare(ctx context.Context, o *opening) error {
	if inspect.IsChild(o.session) {
		return invalid("session %q belongs to a subagent: load its parent %q", o.session, inspect.ParentOf(o.session))
	}
	store, _, done, err := e.server.source.Sessions(ctx, o.dir)
	if err != nil {
		return told(err)
	}
	defer done()
	if _, found, err := inspect.FindSession(ctx, store, o.session); err != nil || !found {
		if err == nil {
			err = jsonrpc.Errorf(jsonrpc.CodeNotFound, "there is no session %q in the project of %s", o.session, o.dir)
		}
		return err
	}
	e.mu.Lock()
	before := e.sessions[o.session]
	if before != nil {
		before.mu.Lock()
		busy := before.stop != nil
		before.mu.Unlock()
		if busy {
			e.mu.Unlock()
			return errBusy
		}
		delete(e.sessions, o.session)
	}
	e.mu.Unlock()
	if before == nil {
		return nil
	}
	return before.close(ctx, errLeft)
}

// keep adds a session to those that are open.
func (e *editor) keep(s *session) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.gone:
		return errLeft
	case e.sessions[s.id] != nil:
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "session %q is being opened twice", s.id)
	case len(e.sessions) >= mostSessions:
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "%d sessions are open, which is the limit: close one with session/close", mostSessions)
	}
	e.sessions[s.id] = s
	return nil
}

// isDirectory checks a directory that an editor names.
func isDirectory(dir string) error {
	if !filepath.IsAbs(dir) {
		return invalid("the directory %q is not an absolute path", dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return invalid("the directory cannot be used: %v", err)
	}
	if !info.IsDir() {
		return invalid("%q is not a directory", dir)
	}
	return nil
}

// pageLength is how many sessions a page of a listing has.
const pageLength = 50

func (e *editor) listSessions(p *sdk.ListSessionsRequest) work {
	return func(ctx context.Context) (any, error) {
		dir := ""
		if p.Cwd != nil {
			if err := isDirectory(*p.Cwd); err != nil {
				return nil, err
			}
			dir = *p.Cwd
		}
		store, project, done, err := e.server.source.Sessions(ctx, dir)
		if err != nil {
			return nil, told(err)
		}
		defer done()
		filter := belay.SessionFilter{Limit: 4 * pageLength}
		if p.Cursor != nil {
			filter.After = *p.Cursor
		}
		return listed(ctx, store, filter, project, dir)
	}
}

// listed makes a page of a listing, without the sessions of subagents and those without a
// message. An editor that named a directory gets it back, because it compares the two.
func listed(ctx context.Context, store belay.ListStore, filter belay.SessionFilter, project, dir string) (*sdk.ListSessionsResponse, error) {
	if dir == "" {
		dir = project
	}
	out := &sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	read := 0
	for info, err := range store.Sessions(ctx, filter) {
		if err != nil {
			return nil, err
		}
		read++
		if !inspect.IsChild(info.ID) && info.Last > 0 {
			line := sdk.SessionInfo{SessionId: sdk.SessionId(info.ID), Cwd: dir, UpdatedAt: new(info.Changed.UTC().Format(time.RFC3339))}
			if title := titleOf(inspect.TitleOf(ctx, store, info)); title != "" {
				line.Title = &title
			}
			out.Sessions = append(out.Sessions, line)
		}
		if read == filter.Limit || len(out.Sessions) == pageLength {
			out.NextCursor = new(info.Cursor())
			break
		}
	}
	return out, nil
}
