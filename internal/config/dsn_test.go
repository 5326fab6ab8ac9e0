package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
)

// MaskDSN hides a password at any place of a DSN.
func TestMaskDSN(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]string{
		"/srv/ann/belay.db":                          "/srv/ann/belay.db",
		"postgres://ann@db/belay":                    "postgres://ann@db/belay",
		"postgres://ann:secret@db/belay?sslmode=off": "postgres://ann:xxxxx@db/belay?sslmode=off",
		"postgresql://db/belay?password=secret":      "postgresql://db/belay?password=xxxxx",
		"postgres://db/belay?sslpassword=secret":     "postgres://db/belay?sslpassword=xxxxx",
		"postgres://ann:secret%zz@db/belay":          "postgres://…",
		"postgres://ann:secret@[db/belay":            "postgres://…",
	} {
		if got := config.MaskDSN(store); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s is shown as %s, want %s", store, got, want)
		}
	}
}

// The user's file, a variable or a flag can name a database. A project's file cannot. Files
// that belong to the store are in the project.
func TestStoreOnAServer(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://ann@db/belay"
	dir := t.TempDir()
	o := &config.Options{Dir: dir, UserDir: t.TempDir(), Environ: []string{"BELAY_STORE=" + dsn}}
	l, err := config.Load(o)
	if err != nil || l.Store != dsn || l.Home() != filepath.Join(dir, ".belay") {
		t.Fatalf("the store is %q, %v", l.Store, err)
	}
	if err := l.Override("store", "store", "other.db"); err != nil || filepath.Base(l.Store) != "other.db" {
		t.Errorf("a flag with a file: %q, %v", l.Store, err)
	}
	if err := l.Override("store", "store", dsn); err != nil || l.Store != dsn {
		t.Errorf("a flag with a DSN: %q, %v", l.Store, err)
	}
	if err := os.WriteFile(filepath.Join(dir, config.Name), []byte("store: "+dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Environ = []string{}
	if _, err := config.Load(o); err == nil || !strings.Contains(err.Error(), "belay.yaml:1") || !strings.Contains(err.Error(), "a project cannot decide") {
		t.Errorf("a project that names a server: %v", err)
	}
}
