//go:build unix

package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/otlptest"
)

// collected is the environment of a command that sends to a collector, soon after each span.
func collected(url string) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_METRIC_EXPORT_INTERVAL=100", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_RESOURCE_ATTRIBUTES=team=a%20b"}
}

// with runs belay with more variables, and returns its output.
func with(t *testing.T, env []string, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, dir, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code says it
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// The planted secrets. The first three are content, and must not be sent. The last one looks
// like a key, and must not be sent with the content either.
const (
	inPrompt = "violet-umbrella"
	inInput  = "copper-anvil"
	inAnswer = "silent-meadow"
	aKey     = "sk-proj-0123456789abcdef"
)

// delegating are the files of a main agent that hands a task to a subagent, whose call needs
// approval.
func delegating() map[string]string {
	return map[string]string{
		"belay.yaml": "permit:\n  rules: [ask write(**)]\n",
		"main.yaml":  "follow_transcript: true\nsteps:\n  - calls: [{tool: invoke_subagent, input: {name: scribe, prompt: write it}}]\n  - text: all done " + inAnswer + "\n",
		"scribe.yaml": "follow_transcript: true\nsteps:\n  - calls: [{tool: write, input: {path: notes.md, content: \"" + inInput + " " + aKey + "\"}}]\n" +
			"  - fault: {hang: true}\n",
	}
}

func scribeIn(t *testing.T, dir string) {
	t.Helper()
	agents := filepath.Join(dir, "belay", "agents") // the user's directory
	if err := os.MkdirAll(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(agents, "scribe.md"), []byte("---\nname: scribe\ndescription: Writes.\ntools: read, write\nmodel: scripted/"+filepath.Join(dir, "scribe.yaml")+"\n---\nYou write.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A turn that is parked with an approval of its subagent, continued by a process that is
// killed, and ended by another one, is one tree, with workers and without. Nothing of its content
// is sent.
//
// SPEC O-01, O-04
func TestInterruptedTurnIsOneTrace(t *testing.T) {
	t.Parallel()
	model := []string{"--model", "scripted/main.yaml"}
	for name, lines := range map[string]struct{ parks, killed, ends []string }{
		"run and resume": {[]string{"run", "--mode", "standard", "--as", "first", "write " + inPrompt}, []string{"resume", "first"}, []string{"resume", "first"}},
		"workers":        {[]string{"worker", "--once", "--mode", "standard"}, []string{"worker"}, []string{"worker", "--once"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := otlptest.New(t, nil)
			dir := project(t, delegating())
			scribeIn(t, dir)
			env := collected(collector.URL)
			if lines.parks[0] == "worker" {
				if _, errs, code := with(t, nil, dir, "submit", "--as", "first", "write "+inPrompt); code != 0 {
					t.Fatalf("submit: exit code %d: %s", code, errs)
				}
			}
			if _, errs, _ := with(t, env, dir, append(lines.parks, model...)...); !strings.Contains(errs, "parked") {
				t.Fatalf("the turn is not parked: %s", errs)
			}
			if _, errs, code := with(t, env, dir, "approvals", "approve", "ap-"); code != 0 {
				t.Fatalf("approve: exit code %d: %s", code, errs)
			}
			cmd := command(t, dir, append(lines.killed, model...)...)
			cmd.Env = append(cmd.Env, env...)
			second := &child{Cmd: cmd, t: t}
			second.run()
			collector.Await(func() bool { // the step with the call is over, and now the model of the subagent hangs
				return collector.Named("execute_tool write") != nil && collector.Named("step 1") != nil && collector.Metrics["belay.approval.wait"] != nil
			})
			second.signal(os.Kill)
			second.ended()
			if _, errs, code := with(t, env, dir, append(lines.ends, model...)...); code != 0 {
				t.Fatalf("the end of the turn: exit code %d: %s", code, errs)
			}
			if out, errs, code := with(t, nil, dir, "show", "first"); code != 0 || !strings.Contains(out, "all done") {
				t.Fatalf("belay show: exit code %d: %s%s", code, out, errs)
			}
			isOneTree(t, collector, dir)
		})
	}
}

// isOneTree asserts that the collector has one tree of the session "first", of three processes and
// without content.
func isOneTree(t *testing.T, collector *otlptest.Receiver, dir string) {
	t.Helper()
	collector.Lock()
	turn, trace := "", ""
	if s := collector.Named("invoke_agent main"); s != nil {
		turn, trace = otlptest.Attribute(s.GetAttributes(), "belay.turn"), hex.EncodeToString(s.GetTraceId())
		if got := otlptest.Attribute(s.GetAttributes(), "gen_ai.conversation.id"); got != "first" {
			t.Errorf("the session of the turn is %q", got)
		}
	}
	instances := make(map[string]bool)
	for _, about := range collector.Resources {
		instances[otlptest.Attribute(about.GetAttributes(), "service.instance.id")] = true
		if got := otlptest.Attribute(about.GetAttributes(), "team"); got != "a b" {
			t.Errorf("the resource has team=%q", got)
		}
	}
	if len(instances) != 3 {
		t.Errorf("%d processes have sent something, want 3", len(instances))
	}
	for _, secret := range []string{inPrompt, inInput, inAnswer, aKey} {
		if bytes.Contains(collector.Bodies, []byte(secret)) {
			t.Errorf("the collector got %q", secret)
		}
	}
	collector.Unlock()
	names := collector.Tree(trace)
	for _, name := range []string{"invoke_agent main", "invoke_agent scribe", "execute_tool invoke_subagent", "execute_tool write", "approval write", "step 1", "step 2", "run"} {
		if names[name] == 0 {
			t.Errorf("the trace has no span %q: %v", name, names)
		}
	}
	for _, m := range []string{"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "belay.turn.duration", "belay.tool.duration", "belay.approval.wait", "belay.commit.duration"} {
		if collector.Metrics[m] == nil {
			t.Errorf("the collector got no metric %s", m)
		}
	}
	// The stored session leads to the trace, and the other way round.
	if out, errs, code := with(t, nil, dir, "show", "--json", "first"); code != 0 || !strings.Contains(out, turn) {
		t.Errorf("belay show: exit code %d, without the turn %q: %s%s", code, turn, out, errs)
	}
}

// With the setting, content is sent without what looks like a secret.
func TestContentIsSentIfAsked(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t, nil)
	dir := project(t, map[string]string{"s.yaml": "steps:\n  - calls: [{tool: list, input: {path: .}}]\n  - text: " + inAnswer + " " + aKey + "\n"})
	env := append(collected(collector.URL), "BELAY_TELEMETRY_CONTENT=true", "OTEL_LOGS_EXPORTER=otlp")
	if _, errs, code := with(t, env, dir, "run", "--model", "scripted/s.yaml", "say "+inPrompt); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	collector.Lock()
	defer collector.Unlock()
	for text, want := range map[string]bool{inPrompt: true, inAnswer: true, "s.yaml": true, aKey: false} {
		if got := bytes.Contains(collector.Bodies, []byte(text)); got != want {
			t.Errorf("the collector got %q: %v, want %v", text, got, want)
		}
	}
}

// A collector that is gone, one that never answers and one that answers with errors change
// nothing but a remark.
func TestTurnsNeedNoCollector(t *testing.T) {
	t.Parallel()
	gone, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	silent := otlptest.New(t, func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-over:
		case <-r.Context().Done():
		}
		return true
	})
	t.Cleanup(func() { close(over) })
	broken := otlptest.New(t, func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusInternalServerError)
		return true
	})
	for name, url := range map[string]string{"gone": "http://" + gone.Addr().String(), "silent": silent.URL, "broken": broken.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"s.yaml": "steps:\n  - text: Hello.\n"})
			out, errs, code := with(t, collected(url), dir, "run", "--model", "scripted/s.yaml", "hello")
			if code != 0 || out != "Hello.\n" {
				t.Errorf("exit code %d, %q: %s", code, out, errs)
			}
			if strings.Count(errs, "telemetry could not be sent") > 1 {
				t.Errorf("it is said more than once:\n%s", errs)
			}
		})
	}
	t.Run("a wrong variable", func(t *testing.T) {
		t.Parallel()
		dir := project(t, map[string]string{"s.yaml": "steps:\n  - text: Hello.\n"})
		out, errs, code := with(t, append(collected(broken.URL), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"), dir, "run", "--model", "scripted/s.yaml", "hello")
		if code != 0 || out != "Hello.\n" || !strings.Contains(errs, "telemetry is off: OTEL_EXPORTER_OTLP_PROTOCOL") {
			t.Errorf("exit code %d, %q: %s", code, out, errs)
		}
	})
}

// "belay serve" has a page of metrics, for tokens that may read everything.
//
// SPEC O-01
func TestServeHasMetrics(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"answers.yaml": "steps:\n  - text: Hello.\n"})
	c := start(t, dir, "serve", "--listen", "127.0.0.1:0", "--model", "scripted/answers.yaml")
	_, rest, _ := strings.Cut(c.await(c.stderr, "http://"), "http://")
	url := "http://" + strings.TrimSpace(rest)
	c.await(c.stderr, "your token is in ")
	secret, err := os.ReadFile(filepath.Join(dir, "belay", "tokens", "local.secret"))
	if err != nil {
		t.Fatal(err)
	}
	tenant, errs, code := belay(t, dir, "token", "create", "ann", "--role", "read", "--label", "user=ann")
	if code != 0 {
		t.Fatal(errs)
	}
	get := func(method, path, token, body string) (string, int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), resp.StatusCode
	}
	for _, test := range []struct {
		who, token string
		want       int
	}{{"nobody", "", 401}, {"a tenant", tenant, 404}, {"the operator", string(secret), 200}} {
		if text, status := get("GET", "/metrics", test.token, ""); status != test.want {
			t.Errorf("%s gets %d, want %d: %s", test.who, status, test.want, text)
		}
	}
	get("POST", "/v1/sessions", string(secret), `{"id": "first"}`)
	get("POST", "/v1/sessions/first/turns", string(secret), `{"text": "hello", "wait": "end"}`)
	page, _ := get("GET", "/metrics", string(secret), "")
	for _, want := range []string{
		"# TYPE belay_turn_duration_seconds histogram\n", `belay_turn_duration_seconds_count{belay_end_reason="end_turn",gen_ai_agent_name="main"} 1` + "\n",
		`belay_queue_depth{belay_state="parked"} 0` + "\n", "belay_queue_age_seconds 0\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}
