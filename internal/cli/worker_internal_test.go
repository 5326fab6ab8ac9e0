package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/pgtest"
)

// Every command works on a database as it works on a file, with --store or BELAY_STORE,
// and its password is nowhere.
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
	d.environ = []string{"BELAY_STORE=" + dsn + "&password=planted-password"} // the server asks for none
	d.must("store", "migrate")
	contains(t, d.out.String(), "the tables are made: version ")
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
	d.run("store", "check") // the server of tests does not wait for its disk, and that is told
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
}
