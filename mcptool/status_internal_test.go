package mcptool

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server's status is ready only after agents have its tools.
//
// SPEC E-09
func TestReadyMeansThatTheToolsAreThere(t *testing.T) {
	t.Parallel()
	e, err := New(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(t.Context()) }()
	m := &mount{server: Server{Name: "raw"}, link: &link{name: "raw", spec: &spec{known: newKnown(nil)}}}
	m.link.now.Store(&view{state: StateStarting})
	e.swap(nil, []*mount{m})
	m.link.now.Store(&view{state: StateReady, info: &mcp.InitializeResult{}, tools: []*offered{{name: "echo", schema: []byte(`{"type":"object"}`)}}})
	if s := e.Servers()[0]; s.State != StateStarting || len(e.StepTools("main")) != 0 || e.settled(m) {
		t.Errorf("the server is %s, with %d tools", s.State, len(e.StepTools("main")))
	}
	e.follow()
	if s := e.Servers()[0]; s.State != StateReady || len(e.StepTools("main")) != 1 || !e.settled(m) {
		t.Errorf("the server is %s, with %d tools", s.State, len(e.StepTools("main")))
	}
	m.link = nil // there is no process to end
}
