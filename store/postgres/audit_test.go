package postgres_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/sqltest"
	"github.com/belay-run/belay/store/postgres"
)

var auditBackend = &sqltest.AuditBackend{
	Backend: backend,
	Names:   "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
	Raw: func(t testing.TB, s sqltest.Store) *sql.DB {
		tampered.Store(s, true)
		db, err := sql.Open("pgx", s.(*postgres.Store).DSN())
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(t.Context(), "SET session_replication_role = replica"); err != nil { // no foreign keys
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	},
	Verify: func(ctx context.Context, tx *sql.Tx) (*audit.Verification, error) {
		var main int64
		if err := tx.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = 'chain'").Scan(&main); err != nil {
			return nil, err
		}
		return audit.Verify(ctx, chain.Database{Database: tx}, &audit.VerifyOptions{Main: main})
	},
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
