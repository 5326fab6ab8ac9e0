package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Belay rejects a store that is neither a file nor a supported database. The error gives
// advice and hides the password, and no file is created.
func TestStoreIsNoFile(t *testing.T) {
	t.Parallel()
	for store, says := range map[string]string{
		"mysql://u:planted-password@h/x":                   "no store of kind mysql",
		"sqlite:///belay.db":                               "no store of kind sqlite",
		"host=127.0.0.1 port=5 password=planted-password":  "connection settings of a database",
		"dbname = belay password = 'planted-password'":     "connection settings of a database",
		"user=u sslmode=disable password=planted-password": "connection settings of a database",
	} {
		for _, command := range [][]string{{"sessions"}, {"store", "migrate"}, {"submit", "hello"}} {
			d := newDesk(t, nil)
			if code := d.run(append([]string{"--store", store}, command...)...); code != exitUsage {
				t.Errorf("--store %q %s ends with %d, want %d", store, command, code, exitUsage)
			}
			contains(t, d.err.String(), "--store", says, "postgres://")
			if strings.Contains(d.err.String(), "planted-password") {
				t.Errorf("the password is told:\n%s", &d.err)
			}
			if found, err := filepath.Glob(filepath.Join(d.dir, "*=*")); err != nil || len(found) > 0 {
				t.Errorf("%q was made, %v", found, err)
			}
		}
	}
}

// An existing file can have any name.
func TestStoreWithAStrangeName(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	file := filepath.Join(d.dir, "user=ann.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.must("--store", file, "sessions")
}
