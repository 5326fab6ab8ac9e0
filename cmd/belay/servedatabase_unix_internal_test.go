//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/serve/api"
)

// "belay serve" works over a PostgreSQL database when it gets its address, with the same answers
// as over a file. With --workers 0 it leaves the turns to "belay worker".
//
// SPEC V-01
func TestServeOverADatabase(t *testing.T) {
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
	dir := project(t, map[string]string{"answers.yaml": "steps:\n  - text: Hello from a worker.\n"})
	if _, errs, code := belay(t, dir, "--store", dsn, "store", "migrate"); code != 0 {
		t.Fatalf("store migrate: exit code %d, %s", code, errs)
	}
	serving := start(t, dir, "--store", dsn, "serve", "--listen", "127.0.0.1:0", "--workers", "0")
	_, rest, _ := strings.Cut(serving.await(serving.stderr, "http://"), "http://")
	serving.await(serving.stderr, "your token is in ")
	secret, err := os.ReadFile(filepath.Join(dir, "belay", "tokens", "local.secret"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New("http://"+strings.TrimSpace(rest), strings.TrimSpace(string(secret)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSession(t.Context(), api.CreateSession{ID: "first"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartTurn(t.Context(), api.StartTurn{Session: "first", Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if queue, err := c.ListQueue(t.Context(), "first"); err != nil || len(queue.Turns) != 1 {
		t.Errorf("without a worker the queue is %v, %v, want the turn", queue.Turns, err)
	}
	if _, errs, code := belay(t, dir, "--store", dsn, "worker", "--once", "--model", "scripted/answers.yaml"); code != 0 {
		t.Fatalf("worker: exit code %d, %s", code, errs)
	}
	list, err := c.ListMessages(t.Context(), api.ListMessages{Session: "first", Limit: 10})
	if err != nil || len(list.Messages) != 2 || !strings.Contains(list.Messages[1].Text(), "Hello from a worker.") {
		t.Errorf("the server has %d messages of the session, %v, want the answer of the worker", len(list.Messages), err)
	}
	serving.signal(syscall.SIGTERM)
	if rest, code := serving.ended(); code != 0 {
		t.Errorf("serve: exit code %d: %s", code, rest)
	}
	if out, errs, code := belay(t, dir, "--store", dsn, "show", "first"); code != 0 || !strings.Contains(out, "Hello from a worker.") {
		t.Errorf("show: exit code %d, %s, %s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, ".belay", "belay.db")); err == nil {
		t.Error("the server also made a file for sessions")
	}
}
