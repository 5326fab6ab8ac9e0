package acp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/provider/scripted"
)

// raw is an editor that sends lines.
type raw struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Scanner
}

func connectRaw(t *testing.T, source acp.Source, opts *acp.Options) *raw {
	t.Helper()
	agentIn, in := io.Pipe()
	from, agentOut := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- acp.New(source, opts).Serve(context.Background(), agentIn, agentOut)
		_ = agentOut.Close() // ignore errors: a pipe has none
	}()
	t.Cleanup(func() {
		go func() { _, _ = io.Copy(io.Discard, from) }() // ends with Serve
		_ = in.Close()                                   // ignore errors: a pipe has none
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	r := &raw{t: t, in: in, out: bufio.NewScanner(from)}
	r.out.Buffer(nil, 1<<20)
	return r
}

func (r *raw) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// response returns the response to a request, and leaves out notifications.
func (r *raw) response() string {
	r.t.Helper()
	for r.out.Scan() {
		if !strings.Contains(r.out.Text(), `"method":`) {
			return r.out.Text()
		}
	}
	r.t.Fatal("the connection has ended")
	return ""
}

// Whatever an editor sends in whatever order gets an error, and the connection goes on.
//
// SPEC U-05
func TestHostileEditor(t *testing.T) {
	t.Parallel()
	dir := project(t, nil)
	r := connectRaw(t, hosts(dir, scripted.Step{Text: "still here"}), &acp.Options{MaxMessage: 4 << 10})
	ask := func(id int, method, params, want string) {
		t.Helper()
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
		if got := r.response(); !strings.Contains(got, want) {
			t.Errorf("%s %.60s: the response is %s, want %s", method, params, got, want)
		}
	}
	ask(1, "session/new", `{"cwd":"/","mcpServers":[]}`, "send initialize first")
	ask(2, "initialize", `{"protocolVersion":"one"}`, `"code":-32602`)
	ask(3, "initialize", `{"protocolVersion":99}`, `"protocolVersion":1`)
	ask(4, "initialize", `{"protocolVersion":1}`, "already called")
	ask(5, "session/steal", `{}`, `"code":-32601`)
	ask(6, "session/prompt", `{"sessionId":"nobody","prompt":[]}`, "no open session")
	ask(7, "session/prompt", `{"prompt":7}`, `"code":-32602`)
	ask(8, "session/new", `{"cwd":"relative","mcpServers":[]}`, "not an absolute path")
	ask(9, "session/new", `{"cwd":"/nowhere/at/all","mcpServers":[]}`, "cannot be used")
	ask(10, "session/load", fmt.Sprintf(`{"sessionId":"../../etc","cwd":%q,"mcpServers":[]}`, dir), `"error"`)
	ask(11, "session/load", fmt.Sprintf(`{"sessionId":"nobody","cwd":%q,"mcpServers":[]}`, dir), "there is no session")
	ask(12, "session/list", `{"cursor":"x'; drop table sessions"}`, `"id":12`)
	ask(13, "authenticate", `{"methodId":"root"}`, "no authentication method")
	ask(14, "session/new", `{"cwd":"`+strings.Repeat("a", 5000)+`"}`, "longer than 4096 bytes")
	ask(15, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[{"type":"sse","name":"x","url":"https://example.com","headers":[]}]}`, dir), "SSE")
	r.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nobody"}}`)
	r.send(`{"jsonrpc":"2.0","id":77,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
	ask(16, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir), `"sessionId":"`)
	ask(17, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir), `"sessionId":"`)
	_, id, _ := strings.Cut(r.out.Text(), `"sessionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	ask(18, "session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"god"}`, id), "no mode")
	ask(19, "session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"sandbox","value":"off"}`, id), "no option")
	ask(20, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[]}`, id), "the prompt is empty")
	ask(21, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","data":"***","mimeType":"image/png"}]}`, id), "base64")
	ask(22, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"audio","data":"","mimeType":"audio/wav"}]}`, id), "audio")
	ask(23, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"Hello?"}]}`, id), `"stopReason":"end_turn"`)
}

// A cancel that directly follows its prompt is not lost.
//
// SPEC U-05
func TestCancelRightAfterPrompt(t *testing.T) {
	t.Parallel()
	dir := project(t, nil)
	steps := make([]scripted.Step, 40)
	for i := range steps {
		steps[i] = scripted.Step{Calls: []scripted.Call{{Tool: "list", Input: fmt.Sprintf(`{"path": ".", "depth": %d}`, i%3+1)}}}
	}
	r := connectRaw(t, hosts(dir, steps...), nil)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	r.response()
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, dir))
	_, id, _ := strings.Cut(r.response(), `"sessionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"List."}]}}`+"\n"+
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id, id))
	if got := r.response(); !strings.Contains(got, `"stopReason":"cancelled"`) {
		t.Errorf("the response is %s", got)
	}
}
