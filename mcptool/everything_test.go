package mcptool_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// everything is the reference server of the protocol. The test uses this server only if
// it is in the cache of npx, and downloads nothing.
const everything = "@modelcontextprotocol/server-everything"

// SPEC E-09
func TestEverything(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skipf("NOT COVERED: %s: there is no npx: %v", everything, err)
	}
	dir := t.TempDir()
	e := open(t, quick(mcptool.Options{Dir: dir}), mcptool.Server{Name: "every", Command: "npx", Args: []string{"--offline", "-y", everything}, Dir: t.TempDir()})
	s := await(t, e, "every", func(s mcptool.Status) bool { return s.State != mcptool.StateStarting })
	if s.State != mcptool.StateReady {
		t.Skipf("NOT COVERED: %s: npx does not have it (npm cache add %s): %v", everything, everything, s.Err)
	}
	if len(s.Left) > 0 || len(s.Tools) < 5 {
		t.Errorf("status = %+v", s)
	}
	if r := call(t, e, "every__echo", `{"message":"hello"}`); !strings.Contains(r.Text, "hello") || r.IsError {
		t.Errorf("echo: result = %+v", r)
	}
	if r := call(t, e, "every__get-sum", `{"a":2,"b":3}`); !strings.Contains(r.Text, "5") {
		t.Errorf("get-sum: result = %+v", r)
	}
	if r := call(t, e, "every__get-tiny-image", `{}`); len(r.Media) != 1 || r.Media[0].MIME != "image/png" || len(r.Media[0].Data) == 0 {
		t.Errorf("get-tiny-image: result = %+v", r)
	}
	if r := call(t, e, "every__get-structured-content", `{"location":"Chicago"}`); len(r.Render) == 0 || r.Text == "" {
		t.Errorf("get-structured-content: result = %+v", r)
	}
	if r := call(t, e, "every__get-sum", `{"a":"two"}`); !r.IsError || !slices.Contains([]belay.ResultClass{belay.ClassInvalid, belay.ClassFailed}, r.Class) {
		t.Errorf("an input that the server refuses: result = %+v", r)
	}
	if r := call(t, e, "every__get-roots-list", `{}`); !strings.Contains(r.Text, "file://"+dir) {
		t.Errorf("get-roots-list: result = %+v", r)
	}
	if !strings.Contains(s.Instructions, "Everything Server") {
		t.Errorf("instructions = %q", s.Instructions)
	}
	resources, err := e.Resources(t.Context(), "every")
	if err != nil || len(resources) < 5 {
		t.Errorf("resources = %+v, %v", resources, err)
	}
	prompts, err := e.Prompts(t.Context(), "every")
	if err != nil || len(prompts) < 3 || !e.Binds("main", "every:args-prompt") {
		t.Errorf("prompts = %+v, %v", prompts, err)
	}
	p := &person{answers: []string{"Ann"}} // then it waits, and the call ends with the turn
	asking, cancel := context.WithCancel(t.Context())
	agent, _ := agentOf(t, e, belay.Options{Asker: askerFunc(func(ctx context.Context, in belay.Inquiry) (string, error) {
		if p.answered() {
			cancel()
		}
		return p.Ask(ctx, in)
	})}, scripted.Call{Tool: "every__trigger-elicitation-request", Input: `{}`})
	_, _ = agent.Session("s").Turn(asking, "see /every:args-prompt Oslo and @every:demo://resource/static/document/features.md") // it is aborted at the second question
	if asked := p.questions(); len(asked) != 2 || !strings.Contains(asked[0].Text, "MCP server every asks: ") {
		t.Errorf("the user was asked %+v", asked)
	}
}
