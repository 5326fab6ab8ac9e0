package record_test

import (
	"testing"
	"testing/fstest"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// OldestAfter finds which versions the migrations exclude, and refuses a migration that sets the counter in another way: nobody would
// notice the programs that it excludes.
//
// SPEC Q-03
func TestOldestAfter(t *testing.T) {
	t.Parallel()
	for version, want := range map[int64]int64{0: 16, 5: 16, 15: 16, 16: 0} {
		if got, err := record.OldestAfter(table.Migrations, version); err != nil || got != want {
			t.Errorf("after version %d the counter is %d, %v, want %d", version, got, err, want)
		}
	}
	for text, want := range map[string]int64{
		"ALTER TABLE a ADD COLUMN b TEXT;":                                                                  0,
		"UPDATE counters SET value = 5 WHERE name = 'oldest' AND value < 5;":                                5,
		"CREATE TABLE a (b TEXT);\n-- +goose Down\nUPDATE counters SET value = 3 WHERE name = 'oldest';":    0,
		"UPDATE counters SET value = 4 + 1 WHERE name = 'oldest';":                                          -1,
		"UPDATE counters SET value = 5 WHERE name = 'oldest';\nUPDATE counters SET value = 6 WHERE a = 'b'": 5,
	} {
		got, err := record.OldestAfter(fstest.MapFS{"migrations/00005_a.sql": {Data: []byte("-- +goose Up\n" + text)}}, 4)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%s\nsets the counter to %d, %v, want %d", text, got, err, want)
		}
	}
}
