package inspect_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/store/memstore"
)

// lateTrust are records. Somebody trusts the project while they are read.
type lateTrust struct {
	backtest.Records
	trust func()
}

func (r lateTrust) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	r.trust()
	return r.Records.Sessions(ctx, filter)
}

// A webhook gets nothing of a recorded session, also if it may be called since the backtest began.
//
// SPEC O-02
func TestBacktestCallsNoWebhookThatIsTrustedLater(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	defer server.Close()
	dir, user := t.TempDir(), t.TempDir()
	hooks := filepath.Join(dir, ".belay", "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	file := "hooks:\n  - {id: far, phase: user.prompt.submit, webhook: {url: " + server.URL + "/}}\n"
	if err := os.WriteFile(filepath.Join(hooks, "far.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Load(&config.Options{Dir: dir, UserDir: user, Environ: []string{"BELAY_WEBHOOK_ALLOWLIST=" + server.URL + "/"}})
	if err != nil {
		t.Fatal(err)
	}
	trust := func() {
		s, err := assembly.LoadTrusted(settings, &space.Record{Dir: filepath.Dir(hooks), Origin: hook.OriginProject})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := assembly.OpenTrust(settings).Add(s, "ann", space.GrantWebhook); err != nil {
			t.Fatal(err)
		}
	}
	store := memstore.New(nil)
	model := scripted.New([]scripted.Step{{Text: "done"}}, nil)
	agent, err := belay.New(model, &belay.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "a task"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	project := &inspect.Project{From: assembly.New(nil), Settings: func() (*config.Loaded, error) { return settings, nil }}
	report, err := project.Backtest(t.Context(), lateTrust{store, trust}, new(inspect.Changes), new(backtest.Options))
	if err != nil {
		t.Fatal(err)
	}
	if n := sent.Load(); n != 0 {
		t.Errorf("the webhook was called %d times", n)
	}
	if len(report.Differences) != 1 || report.Differences[0].Now.Outcome != backtest.Denied || report.Differences[0].Now.By != "project/far" {
		t.Errorf("the webhook does not deny: %+v", report.Differences)
	}
	if again, err := project.Backtest(t.Context(), store, new(inspect.Changes), new(backtest.Options)); err != nil || len(again.NotAsked) != 1 || len(again.Differences) != 0 {
		t.Errorf("the webhook may be called now, and is not listed as not asked: %+v, %v", again, err)
	}
	if _, err := project.Backtest(t.Context(), store, new(inspect.Changes), &backtest.Options{AllowEffects: true}); err != nil || sent.Load() != 1 {
		t.Errorf("with effects the webhook was called %d times, want once: %v", sent.Load(), err)
	}
}
