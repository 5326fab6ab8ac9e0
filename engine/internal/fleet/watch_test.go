package fleet_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/store/postgres"
)

// A process watches a session whose turns another process runs. Connections are cut, but no
// message is skipped or repeated.
//
// SPEC L-03
func TestWatchWhileCut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dsn, dir := server.Database(t, template), t.TempDir()
	s := open(t, dsn, &postgres.Options{MaxConns: 4})
	w := begin(t, part{DSN: dsn, Dir: dir})
	const turns = 12
	submit(t, s, "a", "call send")
	after, each := int64(0), int64(4) // each is the number of messages in a turn
	for update, err := range engine.Watch(ctx, s, "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if update.Message == nil {
			continue
		}
		if after++; update.Message.Seq != after {
			t.Fatalf("got message %d, want %d", update.Message.Seq, after)
		}
		if after == turns*each {
			return
		}
		if after%each == 0 {
			cut(ctx, t, dsn)
			submit(t, s, "a", fmt.Sprint(after, ": call send"))
		}
	}
	load, err := s.Load(t.Context())
	w.kill()
	t.Fatalf("watching ended at message %d: %+v, %v\n%s", after, load, err, w.errs)
}
