package sqlite_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/sqltest"
	"github.com/belay-run/belay/store/sqlite"
)

var auditBackend = &sqltest.AuditBackend{
	Backend: backend,
	Names:   "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
	Raw: func(t testing.TB, s sqltest.Store) *sql.DB {
		tampered.Store(s, true)
		db, err := sql.Open("sqlite", s.(*sqlite.Store).Path())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	},
	Verify: func(ctx context.Context, tx *sql.Tx) (*audit.Verification, error) {
		return audit.Verify(ctx, chain.Database{Database: tx, Untyped: true}, &audit.VerifyOptions{OneLane: true})
	},
	Untyped: true,
}

// Every change of a row that the chain covers is found.
//
// SPEC O-03
func TestAudit(t *testing.T) {
	t.Parallel()
	auditBackend.Audit(t)
}

// A change is also found if Belay has written the row again since.
//
// SPEC O-03
func TestAuditFindsRewrittenRows(t *testing.T) {
	t.Parallel()
	auditBackend.Rewrites(t)
}

// A row that Belay writes as a whole has nothing of an earlier change.
//
// SPEC O-03
func TestAuditReplacesWholeRows(t *testing.T) {
	t.Parallel()
	auditBackend.Replaces(t)
}

// Every table and column is covered by the chain, or is known not to be.
//
// SPEC O-03
func TestAuditCoversNewColumns(t *testing.T) {
	t.Parallel()
	auditBackend.Covers(t)
}

// An anchor finds a chain that was made anew.
//
// SPEC O-03
func TestAuditAnchors(t *testing.T) {
	t.Parallel()
	auditBackend.Anchors(t)
}

// A signed export can be checked without the store.
//
// SPEC O-03
func TestAuditExport(t *testing.T) {
	t.Parallel()
	auditBackend.Exports(t)
}
