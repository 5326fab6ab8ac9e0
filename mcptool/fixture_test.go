package mcptool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// child returns a server whose program is this test program, see serve.
func child(t *testing.T, name, kind string, env map[string]string) mcptool.Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{serverVariable: kind, raceVariable: noPause}
	maps.Copy(all, env)
	return mcptool.Server{Name: name, Command: program, Args: []string{"-test.run=^$"}, Env: all}
}

// quick returns options for tests: long waits for the start, and no pause before a
// restart.
func quick(more mcptool.Options) *mcptool.Options {
	if more.Wait == 0 {
		more.Wait = patience
	}
	if more.Backoff == 0 {
		more.Backoff = time.Millisecond
	}
	return &more
}

// open makes an extension and closes it at the end of the test.
func open(t *testing.T, opts *mcptool.Options, servers ...mcptool.Server) *mcptool.Extension {
	t.Helper()
	e, err := mcptool.New(t.Context(), servers, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, e) })
	return e
}

func shut(t *testing.T, e *mcptool.Extension) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
}

// await waits until the server's status fulfils wanted.
func await(t *testing.T, e *mcptool.Extension, name string, wanted func(mcptool.Status) bool) mcptool.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last mcptool.Status
	err := e.Await(ctx, func(all []mcptool.Status) bool {
		for _, s := range all {
			if s.Server.Name == name {
				last = s
				return wanted(s)
			}
		}
		return false
	})
	if err != nil {
		t.Fatalf("server %s: %+v: %v", name, last, err)
	}
	return last
}

func inState(state mcptool.State) func(mcptool.Status) bool {
	return func(s mcptool.Status) bool { return s.State == state }
}

// names returns the names of the extension's tools.
func names(e *mcptool.Extension) []string {
	var all []string
	for _, t := range e.StepTools("main") {
		all = append(all, t.Declaration().Name)
	}
	return all
}

// tool returns the tool with the given name.
func tool(t *testing.T, e *mcptool.Extension, name string) belay.Tool {
	t.Helper()
	for _, one := range e.StepTools("main") {
		if one.Declaration().Name == name {
			return one
		}
	}
	t.Fatalf("there is no tool %s: there are %v", name, names(e))
	return nil
}

// call calls a tool as an agent would.
func call(t *testing.T, e *mcptool.Extension, name, input string) belay.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := tool(t, e, name).Call(ctx, &belay.Invocation{ID: "call_1", Tool: name, Input: json.RawMessage(input)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// records keeps the output of a logger.
type records struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

func contains(list []string, name string) bool { return slices.Contains(list, name) }
