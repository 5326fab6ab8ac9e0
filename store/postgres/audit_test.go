package postgres_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/record"
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

// A checkpoint has the entry of a transaction that began before other checkpoints and ended after
// them.
//
// SPEC O-03
func TestCheckpointsMissNoTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	raw := auditBackend.Raw(t, s)
	ctx := t.Context()
	tx, err := raw.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	late := audit.Entry{Lane: "late.1", Idx: 1, Time: 1}
	if err := tx.QueryRowContext(ctx, "SELECT nextval('belay_chain')").Scan(&late.Seq); err != nil {
		t.Fatal(err)
	}
	late.Hash = audit.HashOf("", &late)
	if _, err := tx.ExecContext(ctx, "INSERT INTO audit_chain (seq, lane, idx, time, body, hash) VALUES ($1, $2, $3, $4, $5, $6)", late.Seq, late.Lane, late.Idx, late.Time, late.Body, late.Hash); err != nil {
		t.Fatal(err)
	}
	anchor := func() audit.Anchor {
		anchor, err := s.AnchorAudit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return anchor
	}
	for _, id := range []string{"first", "second", "third"} {
		sqltest.AppendRuns(t, s, sqltest.Run(id, hook.Completed))
		anchor()
	}
	before := anchor()
	if again := anchor(); again != before {
		t.Errorf("with nothing new, the anchors are %s and %s", before, again)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var body string
	if err := raw.QueryRowContext(ctx, "SELECT body FROM audit_chain WHERE seq = $1", anchor().Seq).Scan(&body); err != nil {
		t.Fatal(err)
	}
	if want := "clate.1:1=" + late.Hash; body != want {
		t.Errorf("the last checkpoint has %q, want %q", body, want)
	}
}

// A checkpoint does not read the entries for the rows that are older than the chain: they are as
// long as the journal.
func TestCheckpointsReadNoOldRows(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	ctx := t.Context()
	sqltest.AppendRuns(t, s, sqltest.Run("first", hook.Completed))
	if _, err := s.AnchorAudit(ctx); err != nil {
		t.Fatal(err)
	}
	raw := auditBackend.Raw(t, s)
	if _, err := raw.ExecContext(ctx, "INSERT INTO audit_chain (seq, lane, idx, time, body, hash) VALUES (nextval('belay_chain'), '', 2, 1, 'R1=x a2=y', 'x')"); err != nil {
		t.Fatal(err)
	}
	bodies, err := record.Collect(ctx, raw, "SELECT body FROM ("+strings.Replace(postgres.Lately, "$1::bigint", "0", 1)+") found WHERE lane = ''", nil, func(rows *sql.Rows, body *string) error { return rows.Scan(body) })
	if err != nil || len(bodies) != 1 || !strings.HasPrefix(bodies[0], "c") {
		t.Errorf("a checkpoint reads %q (%v), want the first checkpoint only", bodies, err)
	}
}
