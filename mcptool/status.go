package mcptool

import (
	"context"
	"errors"
	"slices"
)

// Status is how a server is.
type Status struct {
	// Server is its declaration.
	Server Server
	State  State
	// Err is why it is down, or was not started.
	Err error
	// Title and Version are what the server calls itself, once it was ready.
	Title, Version string
	// Tools are those that agents have of it.
	Tools []ToolStatus
	// Left are its tools that agents do not have, and why.
	Left []error
}

// ToolStatus is a tool as its server describes it.
type ToolStatus struct {
	// Name is the agent's name for it, and Original the server's.
	Name, Original string
	Description    string
	// ReadOnly and Destructive are what the server says about it.
	ReadOnly, Destructive bool
}

// Servers tells how the servers are, in the order in which they were added.
func (e *Extension) Servers() []Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]Status, 0, len(e.mounts))
	for _, m := range e.mounts {
		all = append(all, m.status())
	}
	return all
}

// Await waits until the servers are as wanted, or ctx is over.
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

// settled reports whether no server is about to be ready for the first time.
func settled(all []Status) bool {
	return !slices.ContainsFunc(all, func(s Status) bool { return s.State == StateStarting })
}

func (m *mount) status() Status {
	s := Status{Server: m.server, State: StateDown, Err: m.err}
	if m.server.Disabled {
		s.State = StateDisabled
	}
	if m.link == nil {
		return s
	}
	v := m.link.now.Load()
	s.State, s.Left = v.state, v.left
	if v.err != nil {
		s.Err = errors.New(m.link.spec.redact.Replace(v.err.Error()))
	}
	if v.info != nil && v.info.ServerInfo != nil {
		s.Title, s.Version = v.info.ServerInfo.Name, v.info.ServerInfo.Version
	}
	for _, t := range m.tools {
		s.Tools = append(s.Tools, ToolStatus{t.declaration.Name, t.name, t.description, t.readOnly, t.destructive})
	}
	return s
}
