package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/pgtest"
)

// Every command works with a database as it does with a file, by --store or BELAY_STORE.
// The password is never printed.
//
// SPEC P-08, L-02
func TestDatabase(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := server.Create(t.Context(), "belay", "template1")
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, map[string]string{"s.yaml": `
follow_transcript: true
steps:
  - calls: [{tool: shell, input: {command: "sh make-it.sh"}}]
  - text: It is made.
`, "make-it.sh": "echo made > made.txt\n"})
	d.environ = []string{"BELAY_STORE=" + dsn + "&password=planted-password", "BELAY_MODE=standard"} // the test server ignores the password; in this mode the script needs approval
	d.must("store", "migrate")
	contains(t, d.out.String(), "the tables were created: version ")
	_, version, _ := strings.Cut(d.out.String(), "version ")
	d.must("store", "migrate")
	contains(t, d.out.String(), "up to date: version "+version)
	d.must("submit", "--as", "first", "make it")
	contains(t, d.out.String(), "first\n")
	d.must("worker", "--once", d.model())
	contains(t, d.err.String(), " on postgres://", "password=xxxxx", "first  parked")
	if code := d.run("watch", "first", "--end"); code != exitParked {
		t.Errorf("watching a turn that parks ends with %d: %s", code, &d.err)
	}
	d.must("workers")
	contains(t, d.out.String(), "0 waiting, 1 parked")
	d.must("approvals", "list")
	id := regexp.MustCompile(`ap-[a-z0-9]+`).FindString(d.out.String())
	d.must("approvals", "approve", id)
	d.must("worker", "--once", "--json", "--per-agent", "main=1", d.model())
	contains(t, d.out.String(), `{"session":"first","agent":"main","reason":"end_turn"`)
	d.must("watch", "first", "--end")
	contains(t, d.out.String(), "make it", "It is made.")
	d.must("sessions")
	contains(t, d.out.String(), "first", "done")
	d.must("show", "first")
	d.must("runs")
	d.must("fork", "first", "--as", "second")
	d.must("store", "export", "first")
	contains(t, d.out.String(), `{"type":"session","version":1,"session":{"id":"first"`)
	d.must("store", "vacuum")
	d.run("store", "check") // the test server runs without fsync, and the check reports this
	contains(t, d.out.String(), "belay at ", "PostgreSQL", "2 sessions", "fsync is off")
	d.must("store", "prune", "--older-than", "1h")
	contains(t, d.out.String(), "removed 0 sessions")
	d.must("store", "prune", "--older-than", "1ns", "--dry-run")
	contains(t, d.out.String(), "would remove 2 sessions", "first", "second")
	d.run("doctor", "--json")
	contains(t, d.out.String(), "password=xxxxx")
	for _, text := range []string{d.out.String(), d.err.String()} {
		if regexp.MustCompile(`planted-password`).MatchString(text) {
			t.Errorf("the password is told:\n%s", text)
		}
	}
	d.environ = nil
	d.must("--store", dsn, "sessions")
	contains(t, d.out.String(), "first", "second")

	// --takeover sets after which time a worker counts as dead.
	for _, takeover := range []time.Duration{3 * time.Second, 2 * time.Minute} {
		var lease time.Duration
		d.hooks = []hook.Subscription{belay.ModelPre.On("lease", func(ctx context.Context, _ belay.ModelRequest) (belay.Aside, error) {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return belay.Aside{}, err
			}
			defer func() { _ = conn.Close(ctx) }()
			return belay.Aside{}, conn.QueryRow(ctx, "SELECT lease FROM holders WHERE worker").Scan(&lease)
		}, nil)}
		d.must("--store", dsn, "submit", "--as", "lease-"+takeover.String(), "make it")
		d.must("--store", dsn, "worker", "--once", "--takeover", takeover.String(), d.model())
		if lease > takeover || lease < takeover/2 {
			t.Errorf("with --takeover %s the worker is taken for dead after %s", takeover, lease)
		}
	}
}

// Each flag of the command worker sets the engine option of the same name.
func TestWorkerFlagsAreTheEnginesOptions(t *testing.T) {
	t.Parallel()
	settings, err := config.Load(&config.Options{Dir: t.TempDir(), UserDir: t.TempDir(), Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule string
		args []string
		want engine.Options
	}{
		{"without flags", nil, engine.Options{Turns: 8, Grace: 30 * time.Second, PerAgent: map[string]int{}, PerModel: map[string]int{}}},
		{"--turns", []string{"--turns", "3"}, engine.Options{Turns: 3, Grace: 30 * time.Second, PerAgent: map[string]int{}, PerModel: map[string]int{}}},
		{"--grace", []string{"--grace", "90s"}, engine.Options{Turns: 8, Grace: 90 * time.Second, PerAgent: map[string]int{}, PerModel: map[string]int{}}},
		{"--takeover is the store's", []string{"--takeover", "90s"}, engine.Options{Turns: 8, Grace: 30 * time.Second, PerAgent: map[string]int{}, PerModel: map[string]int{}}},
		{"--per-agent", []string{"--per-agent", "main=2,*=5"}, engine.Options{Turns: 8, Grace: 30 * time.Second, PerAgent: map[string]int{"main": 2, "*": 5}, PerModel: map[string]int{}}},
		{"--per-model, given twice", []string{"--per-model", "anthropic/claude-sonnet-4-5=4", "--per-model", "ollama/a=b=1"}, engine.Options{
			Turns: 8, Grace: 30 * time.Second, PerAgent: map[string]int{}, PerModel: map[string]int{"anthropic/claude-sonnet-4-5": 4, "ollama/a=b": 1},
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var o workerOptions
			cmd := &cobra.Command{}
			o.flags(cmd)
			if err := cmd.ParseFlags(test.args); err != nil {
				t.Fatal(err)
			}
			got, err := o.engine(settings)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// --turns sets how many turns a worker runs at the same time, also above the engine's
// default.
func TestWorkerTakesTurnsTogether(t *testing.T) {
	t.Parallel()
	const turns = 20 // more than the engine's default
	d := newDesk(t, map[string]string{"s.yaml": "steps:\n" + strings.Repeat("  - text: done\n", turns)})
	var here, met atomic.Int32
	all := make(chan struct{})
	meet := func(ctx context.Context, _ belay.ModelRequest) (belay.Aside, error) {
		if here.Add(1) == turns {
			close(all)
		}
		select {
		case <-all:
			met.Add(1)
			return belay.Aside{}, nil
		case <-ctx.Done():
			return belay.Aside{}, context.Cause(ctx)
		}
	}
	d.hooks = []hook.Subscription{belay.ModelPre.On("meet", meet, &hook.Options{Timeout: 20 * time.Second})}
	for i := range turns {
		d.must("submit", "--as", "s"+strconv.Itoa(i), "go")
	}
	d.must("worker", "--once", "--turns", strconv.Itoa(turns), d.model())
	if met.Load() != turns {
		t.Errorf("%d of %d turns were under way at once:\n%s", here.Load(), turns, &d.err)
	}
}

// Belay rejects invalid values with an error that names the flag, and creates nothing.
func TestWorkerRefusesBadFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, want string
		args       []string
	}{
		{"no turns", "--turns is 0: it must be 1 or more", []string{"--turns", "0"}},
		{"fewer than none", "--turns is -2", []string{"--turns", "-2"}},
		{"no number", `invalid argument "many" for "--turns"`, []string{"--turns", "many"}},
		{"no grace", "--grace is 0s: it must be more than 0, such as 30s", []string{"--grace", "0s"}},
		{"less than none", "--grace is -1s", []string{"--grace", "-1s"}},
		{"a time without a unit", `invalid argument "30" for "--grace"`, []string{"--grace", "30"}},
		{"no takeover", "--takeover is 0s: it must be 1s or more", []string{"--takeover", "0s"}},
		{"a takeover that nobody lives through", "--takeover is 5ms: it must be 1s or more: a worker without a heartbeat for this long counts as dead", []string{"--takeover", "5ms"}},
		{"a bound without a count", `--per-agent: "main" is not NAME=COUNT`, []string{"--per-agent", "main"}},
		{"a bound without a name", `--per-agent: "=2" is not NAME=COUNT`, []string{"--per-agent", "=2"}},
		{"a bound of nothing", `--per-agent: "main=0" is not NAME=COUNT, with a count from 1 up`, []string{"--per-agent", "main=0"}},
		{"a bound given twice", "--per-agent: main is given twice", []string{"--per-agent", "main=1", "--per-agent", "main=2"}},
		{"a bound on nobody", `--per-agent: there is no such agent: "mian" (did you mean "main"?): ` + "`belay agents list` lists them", []string{"--per-agent", "mian=1"}},
		{"a count of a model that is none", `--per-model: "ollama/a=x" is not NAME=COUNT`, []string{"--per-model", "ollama/a=x"}},
		{"no model", `--per-model: "claude-sonnet-4-5" is not a model (did you mean "anthropic/claude-sonnet-4-5"?)`, []string{"--per-model", "claude-sonnet-4-5=1"}},
		{"no provider", "--per-model: ", []string{"--per-model", "antropic/claude=1"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, map[string]string{"s.yaml": "steps: [{text: no}]\n"})
			if code := d.run(append([]string{"worker", "--once", d.model()}, test.args...)...); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			contains(t, d.err.String(), test.want)
			if _, err := os.Stat(filepath.Join(d.dir, ".belay")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was made: %v", err)
			}
		})
	}
}
