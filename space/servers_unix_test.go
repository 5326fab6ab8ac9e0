//go:build unix

package space_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/space"
)

// echoServer is the script of an MCP server. It writes its process id to the file $ROLL.
// Its only tool returns the server's word and the secret that the server can see. If the
// variable GATE is set, the tool first waits until it has read the pipe $GATE.
const echoServer = `#!/bin/sh
echo $$ >>"$ROLL"
while read -r line; do
	id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case "$line" in
	*'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}' ;;
	*'"method":"tools/list"'*) result='{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}' ;;
	*'"method":"tools/call"'*)
		if [ -n "$GATE" ]; then
			echo called >>"$ROLL"
			cat "$GATE" >/dev/null
		fi
		result='{"content":[{"type":"text","text":"WORD '$SECRET'"}]}' ;;
	*'"method":"notifications/'*) continue ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}\n' "$id"; continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// serverPlace returns a space with a server that answers with the given word.
func serverPlace(t testing.TB, word string) (*place, *roll) {
	t.Helper()
	p := newPlace(t)
	r := newRoll(t)
	p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0"}`)
	p.put("mcp.json", `{"mcpServers": {"echo": {"command": "./mcp/echo.sh", "env": {"ROLL": "`+r.file+`", "SECRET": "${SECRET:-nothing}", "GATE": "${GATE:-}"}}}}`)
	p.say(word)
	return p, r
}

func (p *place) say(word string) { p.put("mcp/echo.sh", strings.ReplaceAll(echoServer, "WORD", word)) }

// roll is a pipe that servers write lines to.
type roll struct {
	t    testing.TB
	file string
	pipe *os.File
	from *bufio.Reader
	got  []string
}

func newRoll(t testing.TB) *roll {
	t.Helper()
	r := &roll{t: t, file: filepath.Join(t.TempDir(), "roll")}
	if err := syscall.Mkfifo(r.file, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.pipe, err = os.OpenFile(r.file, os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil { // opened for writing, too, so that reading does not end when a writer closes the pipe
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.pipe.Close() }) // the pipe was only read
	r.from = bufio.NewReader(r.pipe)
	return r
}

func (r *roll) lines() []string {
	r.t.Helper()
	for r.next(time.Now().Add(time.Millisecond)) {
	}
	return r.got
}

// until waits until n lines were written.
func (r *roll) until(n int) []string {
	r.t.Helper()
	for len(r.got) < n {
		if !r.next(time.Now().Add(time.Minute)) {
			r.t.Fatalf("the roll has %q, want %d lines", r.got, n)
		}
	}
	return r.got
}

// next reads a line. It returns false if no line comes before the given time.
func (r *roll) next(before time.Time) bool {
	r.t.Helper()
	if err := r.pipe.SetReadDeadline(before); err != nil {
		r.t.Fatal(err)
	}
	line, err := r.from.ReadString('\n')
	if err != nil {
		return false
	}
	r.got = append(r.got, strings.TrimSpace(line))
	return true
}

func pid(t testing.TB, line string) int {
	t.Helper()
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func alive(t testing.TB, line string) bool {
	t.Helper()
	return syscall.Kill(pid(t, line), 0) == nil
}

// withServers adds an extension for MCP servers to an agent.
func (a *agent) withServers(t testing.TB) *mcptool.Extension {
	t.Helper()
	e, err := mcptool.New(t.Context(), nil, &mcptool.Options{Backoff: time.Millisecond, Environ: []string{"PATH=" + os.Getenv("PATH"), "SECRET=hunter2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	a.target.Servers = e
	return e
}

// said returns the answer of the tool of the space's server.
func said(t testing.TB, e *mcptool.Extension) string {
	t.Helper()
	const name = "acme-echo__say"
	for _, tool := range e.StepTools("") {
		if tool.Declaration().Name != name {
			continue
		}
		result, err := tool.Call(context.Background(), &belay.Invocation{Tool: name, Input: json.RawMessage(`{}`)})
		if err != nil {
			t.Error(err)
		}
		return result.Text
	}
	return "there is no " + name
}

// The MCP servers of a space start after the space is trusted. Their names have the prefix
// of the space, and they see only the environment of hooks. After Unload no process is
// left.
//
// SPEC W-01, W-05, W-06
func TestServersOfASpace(t *testing.T) {
	t.Parallel()
	p, r := serverPlace(t, "hello")
	a := p.newAgent(&space.Options{Declare: declare.Options{Environ: []string{"PATH=" + os.Getenv("PATH")}}})
	e := a.withServers(t)
	lease := a.install(t, p.load(hook.OriginSpace))
	if got := e.Servers(); len(got) != 0 || len(r.lines()) != 0 {
		t.Fatalf("before it is trusted there are %+v, and %q were started", got, r.lines())
	}
	if n := noteAbout(t, lease.Notes(), "acme-echo"); n.Phase != "" || !strings.Contains(n.Reason, "not trusted yet") || filepath.Base(n.File) != "mcp.json" || n.Line == 0 {
		t.Errorf("the note is %+v", n)
	}
	p.trusted(hook.OriginSpace)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, e); got != "hello nothing" {
		t.Errorf("the tool says %q, want its word and no secret", got)
	}
	started := r.lines()
	if len(started) != 1 || !alive(t, started[0]) {
		t.Errorf("%q were started, want one that lives", started)
	}
	if err := lease.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.Servers(); len(got) != 0 || alive(t, started[0]) {
		t.Errorf("after unloading there are %+v, and its process lives: %v", got, alive(t, started[0]))
	}
}

// If the files of a space have changed, its server is not started again.
//
// SPEC W-06
func TestAChangedServerDoesNotStart(t *testing.T) {
	t.Parallel()
	p, r := serverPlace(t, "hello")
	s := p.trusted(hook.OriginSpace)
	a := p.newAgent(nil)
	e := a.withServers(t)
	a.install(t, s)
	first := r.until(1)[0]
	p.say("goodbye")
	if err := syscall.Kill(pid(t, first), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := e.Await(t.Context(), func(all []mcptool.Status) bool {
		return all[0].Err != nil && strings.Contains(all[0].Err.Error(), "changed since they were trusted")
	})
	if err != nil || len(r.lines()) != 1 {
		t.Errorf("%v, %q were started", err, r.lines())
	}
}

// Reload starts changed servers before it replaces the old ones. An old server ends after
// its last call.
//
// SPEC W-02
func TestServersAreReloaded(t *testing.T) {
	t.Parallel()
	p, r := serverPlace(t, "one")
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	a := p.newAgent(&space.Options{Declare: declare.Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "GATE=" + gate}}})
	e := a.withServers(t)
	lease := a.install(t, p.trusted(hook.OriginSpace))
	first := r.until(1)[0]
	call := make(chan string, 1)
	go func() { call <- said(t, e) }()
	r.until(2)

	p.say("two")
	p.put("mcp.json", `{"mcpServers": {"echo": {"comand": "./mcp/echo.sh"}}}`)
	if err := lease.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), `mcp.json:1: server "echo": unknown key "comand" (did you mean "command"?)`) {
		t.Errorf("a reload with a mistake: %v", err)
	}
	if got := e.Servers(); len(got) != 1 || got[0].State != mcptool.StateReady || !alive(t, first) {
		t.Errorf("after it there are %+v", got)
	}
	p.put("mcp.json", `{"mcpServers": {"echo": {"command": "./mcp/echo.sh", "env": {"ROLL": "`+r.file+`"}}}}`)
	p.trusted(hook.OriginSpace)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := r.lines()
	if got := said(t, e); got != "two " || len(second) != 3 {
		t.Errorf("after a reload the tool says %q, the roll is %q", got, second)
	}
	if !alive(t, first) {
		t.Error("the server that a call is under way with was ended")
	}
	if err := os.WriteFile(gate, []byte("go on"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-call; got != "one nothing" {
		t.Errorf("the call under way ended with %q", got)
	}
	if err := e.Drain(t.Context()); err != nil || alive(t, first) || !alive(t, second[2]) {
		t.Errorf("%v, the first lives: %v, the second: %v", err, alive(t, first), alive(t, second[2]))
	}
	// A new grant does not change a running server.
	if _, err := p.trust.Add(p.load(hook.OriginSpace), "a person", space.GrantNetwork); err != nil {
		t.Fatal(err)
	}
	if err := lease.Reload(t.Context()); err != nil || len(r.lines()) != 3 {
		t.Errorf("%v, the roll is %q", err, r.lines())
	}
	// If only the program has changed, and not its declaration, the server is restarted.
	p.say("three")
	p.trusted(hook.OriginSpace)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, e); got != "three " || len(r.lines()) != 4 {
		t.Errorf("the tool says %q, the roll is %q", got, r.lines())
	}
}

// NoCommands also switches off servers. A server with a URL needs a grant. Servers are
// confined like the hooks of their directory.
//
// SPEC W-05, W-07
func TestServersAreHeldLikeHooks(t *testing.T) {
	t.Parallel()
	p, r := serverPlace(t, "hello")
	p.put("mcp.json", `{"mcpServers": {
  "echo": {"command": "./mcp/echo.sh", "env": {"ROLL": "`+r.file+`"}},
  "off": {"command": "sh", "disabled": true},
  "far": {"url": "https://mcp.example.com"}}}`)
	if got := p.load(hook.OriginSpace).Needs(); !slices.Equal(got, []string{space.GrantNetwork}) {
		t.Errorf("it needs %q", got)
	}
	s := p.trusted(hook.OriginSpace)
	servers, notes, err := p.newAgent(&space.Options{NoCommands: true}).host.Servers(s)
	if err != nil || len(servers) != 0 || len(notes) != 2 {
		t.Errorf("%+v, %+v, %v", servers, notes, err)
	}
	if n := noteAbout(t, notes, "acme-echo"); !strings.Contains(n.Reason, "switched off all commands") {
		t.Errorf("%+v", n)
	}
	if n := noteAbout(t, notes, "acme-far"); !strings.Contains(n.Reason, "the grant network is missing") || !strings.Contains(n.Reason, "--grant network`") {
		t.Errorf("%+v", n)
	}

	p.trusted(hook.OriginSpace, space.GrantNetwork)
	var confined []string
	a := p.newAgent(&space.Options{Declare: declare.Options{Confine: func(ctx context.Context, d *declare.Declaration, run *declare.Execution) error {
		confined = append(space.Confined(ctx), d.ID)
		run.Argv = append([]string{"confined"}, run.Argv...)
		return nil
	}}})
	servers, notes, err = a.host.Servers(s)
	if err != nil || len(servers) != 2 || len(notes) != 0 {
		t.Fatalf("%+v, %+v, %v", servers, notes, err)
	}
	argv, err := servers[0].Prepare(t.Context(), []string{"echo.sh"})
	if err != nil || !slices.Equal(argv, []string{"confined", "echo.sh"}) || !slices.Equal(confined, []string{"network", "acme-echo"}) {
		t.Errorf("it runs as %q, %v; confined were %q", argv, err, confined)
	}
	if argv, err = servers[1].Prepare(t.Context(), nil); err != nil || argv != nil {
		t.Errorf("an address: %q, %v", argv, err)
	}
	p.trusted(hook.OriginSpace)
	if _, err = servers[1].Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the grant network is missing") {
		t.Errorf("without the grant: %v", err)
	}
}

// If two servers have the same name, the error names both, and nothing of the space is
// installed.
//
// SPEC E-03, W-01
func TestServersOfOneName(t *testing.T) {
	t.Parallel()
	p, r := serverPlace(t, "hello")
	p.put("hooks/a.yaml", "hooks:\n  - {id: a, phase: tool.pre, action: {deny: never}}\n")
	a := p.newAgent(nil)
	e := a.withServers(t)
	if _, err := e.Add(mcptool.Server{Name: "acme-echo", Command: "sh", Disabled: true, File: "other.json", Line: 3}); err != nil {
		t.Fatal(err)
	}
	_, err := a.host.Install(t.Context(), p.trusted(hook.OriginSpace), a.target)
	if err == nil || !strings.Contains(err.Error(), "other.json:3") || !strings.Contains(err.Error(), "mcp.json:1") {
		t.Errorf("%v, want both places", err)
	}
	wantVerdict(t, a.ask(t, "write"), belay.ToolPass, "")
	if len(e.Servers()) != 1 || len(r.lines()) != 0 {
		t.Errorf("%+v, %q were started", e.Servers(), r.lines())
	}
}

// Mistakes in mcp.json are reported with file and line. Examples are programs that are
// missing or that trust does not cover.
//
// SPEC W-04, W-06
func TestMistakesOfServers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"mcpServers": {"a": {"command": "./mcp/none.sh"}}}`:                                `mcp.json:1: server "acme-a": the program mcp/none.sh does not exist`,
		`{"mcpServers": {"a": {"command": "./mcp/plain"}}}`:                                  "is not executable: run chmod +x mcp/plain",
		`{"mcpServers": {"a": {"command": "./mcp"}}}`:                                        "is not a file",
		`{"mcpServers": {"a": {"command": "./tools/run.sh"}}}`:                               "move the program into mcp/",
		"{\"mcpServers\": {\n\"a\": {\"command\": \"sh\", \"args\": [\"./tools/run.sh\"]}}}": "mcp.json:2: server \"acme-a\": trust does not cover its program",
		`{"mcpServers": []}`: "mcp.json:1: ",
	} {
		p := newPlace(t)
		p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0"}`)
		p.put("mcp/plain", "no program")
		p.put("tools/run.sh", "#!/bin/sh\n")
		p.put("mcp.json", text)
		if _, err := space.Load(p.dir, hook.OriginSpace); err == nil || !strings.Contains(err.Error(), want) || len(space.Problems(err)) != 1 {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	p := newPlace(t)
	p.put("mcp/run.sh", "#!/bin/sh\n")
	p.put("mcp.json", `{"mcpServers": {"a": {"command": "sh", "args": ["./mcp/run.sh", "./elsewhere"]}}}`)
	s := p.load(hook.OriginProject)
	if got := s.Servers[0]; got.Name != "project-a" || !slices.Equal(got.Args, []string{filepath.Join(p.dir, "mcp", "run.sh"), "./elsewhere"}) {
		t.Errorf("%+v", got)
	}
	before := s.Hash
	p.put("mcp/run.sh", "#!/bin/sh\necho\n")
	if p.load(hook.OriginProject).Hash == before {
		t.Error("trust is not about the program of a server")
	}
}
