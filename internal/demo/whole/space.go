package whole

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/belay-run/belay/space"
)

// spaceFiles are the files of a space. The space has one rule twice: as a command and as
// a worker. It also has a rule that rewrites, and a rule in shadow mode. In shadow mode,
// Belay records the rule's answer and ignores it.
var spaceFiles = map[string]string{
	"manifest.json": `{"id": "house", "name": "House rules", "version": "1.0.0"}`,
	"hooks/rules.yaml": `hooks:
  - id: as-command
    phase: tool.pre
    match: { tools: [write] }
    run: ./check.sh
  - id: as-worker
    phase: tool.pre
    match: { tools: [write] }
    worker: [./worker.sh]
  - id: drafts-only
    phase: tool.pre
    match: { tools: [write] }
    run: ./draft.sh
    capabilities: [rewrite_input, block]
  - id: strict
    phase: tool.pre
    match: { tools: [write] }
    action: {deny: nothing is written on Fridays}
    shadow: true
`,
	"hooks/check.sh": "#!/bin/sh\ncat >/dev/null\n",
	"hooks/draft.sh": "#!/bin/sh\ncat >/dev/null\necho '{\"input\": {\"path\": \"drafts/NEWS.md\", \"text\": \"1.2 is out\"}}'\n",
	"hooks/worker.sh": `#!/bin/sh
n=0
while read -r line; do
  n=$((n + 1))
  case $n in
  1) echo '{"jsonrpc":"2.0","id":1,"result":{"v":1}}' ;;
  *) echo '{"jsonrpc":"2.0","id":'$n',"result":null}' ;;
  esac
done
`,
}

// spaces shows hooks that are loaded from files while an agent runs. It shows what they may
// do before a person trusts them, what a grant adds, and how much faster a worker is.
func spaces(ctx context.Context, t *demo.Tour) {
	t.Heading("Hooks without Go: a space is loaded while the agent runs, and may do only what a person allowed")
	dir := filepath.Join(t.Dir(), "house")
	for name, text := range spaceFiles {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if t.Failed(os.MkdirAll(filepath.Dir(file), 0o700)) || t.Failed(os.WriteFile(file, []byte(text), mode)) {
			return
		}
	}
	trust := space.OpenTrust(filepath.Join(t.Dir(), "trust"))
	host := space.NewHost(&space.Options{Trust: trust})
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: host.Grants})
	if t.Failed(err) {
		return
	}
	loaded, err := space.Load(dir, hook.OriginSpace)
	if t.Failed(err) {
		return
	}
	lease, err := host.Install(ctx, loaded, &space.Target{Hooks: runtime})
	if t.Failed(err) {
		return
	}
	defer func() { t.Failed(lease.Unload(context.WithoutCancel(ctx))) }()
	for _, n := range lease.Notes() {
		reason, _, _ := strings.Cut(n.Reason, ":")
		t.Sayf("  closed    %s: %s", n.ID, reason)
	}
	judge(ctx, t, runtime, "before anybody trusts it")
	for _, step := range []struct {
		what   string
		grants []string
	}{{"after a person trusts it", nil}, {"after a person also grants rewrite_input", []string{"rewrite_input"}}} {
		if _, err := trust.Add(loaded, "the demo's person", step.grants...); t.Failed(err) {
			return
		}
		if t.Failed(lease.Reload(ctx)) {
			return
		}
		judge(ctx, t, runtime, step.what)
	}
	latencies(ctx, t, runtime)
}

// judge asks the hooks about a call, and prints the result.
func judge(ctx context.Context, t *demo.Tour, runtime *hook.Runtime, when string) {
	x, err := explainWrite(ctx, runtime)
	if t.Failed(err) {
		return
	}
	var merged struct {
		Decision string          `json:"decision"`
		Reason   string          `json:"reason"`
		Input    json.RawMessage `json:"input"`
	}
	if len(x.Merged) > 0 && t.Failed(json.Unmarshal(x.Merged, &merged)) {
		return
	}
	outcome := "runs unchanged"
	switch {
	case merged.Decision == string(belay.ToolDeny):
		reason, _, _ := strings.Cut(merged.Reason, ":")
		outcome = fmt.Sprintf("is denied by %s: %s", x.Won, reason)
	case merged.Decision != "":
		outcome = fmt.Sprintf("gets the verdict %s from %s", merged.Decision, x.Won)
	case len(merged.Input) > 0:
		outcome = "runs with " + string(merged.Input)
	}
	t.Sayf("  %s, the call %s", when, outcome)
	for _, e := range x.Entries {
		if e.Shadow && e.Asked {
			t.Sayf("  shadow    %s would have answered %s; shadow mode ignores it", e.ID, e.Said)
		}
	}
}

func explainWrite(ctx context.Context, runtime *hook.Runtime) (x hook.Explanation, err error) {
	wire, err := phasejson.New(belay.ToolPre.Name())
	if err != nil {
		return x, err
	}
	snapshot := runtime.Snapshot()
	x, err = wire.Explain(ctx, snapshot, hook.Scope{Session: "house", Turn: "1", Step: 1}, json.RawMessage(`{"id":"call-1","tool":"write","input":{"path":"NEWS.md","text":"1.2 is out"}}`))
	if released := snapshot.Release(context.WithoutCancel(ctx)); err == nil {
		err = released
	}
	return x, err
}

// latencies compares a command and a worker that have the same rule.
func latencies(ctx context.Context, t *demo.Tour, runtime *hook.Runtime) {
	took := make(map[string]time.Duration)
	for range 5 { // take the best of five, because the machine has other work
		x, err := explainWrite(ctx, runtime)
		if t.Failed(err) {
			return
		}
		for _, e := range x.Entries {
			if best, ok := took[e.ID]; !ok || time.Duration(e.Latency) < best {
				took[e.ID] = time.Duration(e.Latency)
			}
		}
	}
	t.Sayf("  the same rule takes %s as a command and %s as a worker", took["house/as-command"].Round(time.Microsecond), took["house/as-worker"].Round(time.Microsecond))
}
