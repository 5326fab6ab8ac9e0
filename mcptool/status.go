package mcptool

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Status is the status of a server.
type Status struct {
	// Server is the declaration of the server.
	Server Server
	State  State
	// Err is why the server is down or was not started.
	Err error
	// Title and Version come from the server's handshake. They are empty before the first
	// handshake.
	Title, Version string
	// Instructions are the server's instructions for its tools, cut to their limit.
	Instructions string
	// Tools are the tools of the server that agents can use.
	Tools []ToolStatus
	// Left has one error for each tool that agents cannot use.
	Left []error
	// Unmatched are the entries of Server.Tools that match no tool of the server. It is
	// empty while the server is not ready.
	Unmatched []string
}

// ToolStatus is a tool as its server describes it.
type ToolStatus struct {
	// Name is the agent's name for the tool. Original is the server's name for it.
	Name, Original string
	Description    string
	// ReadOnly and Destructive are the server's annotations of the tool.
	ReadOnly, Destructive bool
}

// Servers returns the status of the servers, in the order in which they were
// added.
func (e *Extension) Servers() []Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]Status, 0, len(e.mounts))
	for _, m := range e.mounts {
		all = append(all, m.status())
	}
	return all
}

// Await waits until wanted returns true for the status of the servers, or until ctx ends.
func (e *Extension) Await(ctx context.Context, wanted func([]Status) bool) error {
	for {
		e.mu.Lock()
		change := e.change
		e.mu.Unlock()
		if wanted(e.Servers()) {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Missing returns an error for each required server that is not ready, or nil.
func (e *Extension) Missing() error {
	var problems []error
	for _, s := range e.Servers() {
		if !s.Server.Required || s.State == StateReady {
			continue
		}
		why := s.Err
		switch {
		case s.State == StateDisabled:
			why = errors.New("it is disabled")
		case why == nil:
			why = errors.New("it is still starting")
		}
		problems = append(problems, fmt.Errorf("mcp server %q is required and not ready: %w", s.Server.Name, why))
	}
	return errors.Join(problems...)
}

// unmatched returns the patterns that match no tool of the server.
func (s *Server) unmatched(v *view) []string {
	return slices.DeleteFunc(slices.Clone(s.Tools), func(pattern string) bool {
		one := Server{Tools: []string{pattern}}
		return slices.ContainsFunc(v.tools, func(o *offered) bool { return one.wants(o.name) })
	})
}

func (m *mount) status() Status {
	s := Status{Server: m.server, State: StateDown, Err: m.err}
	if m.server.Disabled {
		s.State = StateDisabled
	}
	if m.link == nil {
		return s
	}
	v := m.seen // not the link's view, which may have tools that agents do not have yet
	s.State, s.Left = v.state, v.left
	if v.err != nil {
		s.Err = errors.New(m.link.spec.hide(v.err.Error()))
	}
	if v.info != nil && v.info.ServerInfo != nil {
		s.Title, s.Version = v.info.ServerInfo.Name, v.info.ServerInfo.Version
	}
	s.Instructions = m.instructions()
	if v.state == StateReady {
		s.Unmatched = m.server.unmatched(v)
	}
	for _, t := range m.tools {
		s.Tools = append(s.Tools, ToolStatus{t.declaration.Name, t.name, t.description, t.readOnly, t.destructive})
	}
	return s
}
