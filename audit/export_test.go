package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/belay-run/belay/audit"
)

// older is a store of an older version, whose journal has fewer columns, in another order.
type older struct {
	audit.Store

	columns map[string][]string
	state   string // of the record in the journal, which the chain has as completed
}

func (o *older) ExportAudit(_ context.Context, to io.Writer) error {
	entry := audit.Entry{Seq: 1, Idx: 1, Time: 1, Body: "R7=" + audit.RowHash("completed", "run-1", "7", "a")}
	entry.Hash = audit.HashOf("", &entry)
	for _, line := range []audit.ExportLine{
		{Type: "audit", Version: audit.ExportVersion, Columns: o.columns},
		{Type: "entry", Entry: &entry},
		{Type: "row", Table: "runs", Values: []string{o.state, "run-1", "7", "a"}},
	} {
		if err := json.NewEncoder(to).Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// An export is checked with the columns that it names: another version of Belay may have others.
//
// SPEC O-03
func TestExportOfAnotherVersion(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		runs  []string
		state string
		want  string
	}{
		"as it was written":  {[]string{"state", "id", "seq", "session"}, "completed", "[]"},
		"a changed record":   {[]string{"state", "id", "seq", "session"}, "failed", "[{changed runs run-1 a the record does not match entry 1}]"},
		"too few columns":    {[]string{"state", "id", "seq"}, "completed", "refused"},
		"no columns":         {nil, "completed", "refused"},
		"without its number": {[]string{"state", "id", "place", "session"}, "completed", "[{inserted runs run-1 a the record is not in the chain: something other than this version of Belay has written it} {removed runs 7  the record at position 7, which entry 1 has, was removed}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			store := &older{columns: map[string][]string{"runs": c.runs, "approvals": {"id"}, "run_hooks": {"list"}}, state: c.state}
			if err := audit.Export(t.Context(), store, &file, private); err != nil {
				t.Fatal(err)
			}
			v, err := audit.VerifyExport(t.Context(), &file, public, nil)
			got := "refused"
			if err == nil {
				got = fmt.Sprint(v.Problems)
			} else if !errors.Is(err, audit.ErrExport) {
				t.Error(err)
			}
			if got != c.want {
				t.Errorf("verify says %s (%v), want %s", got, err, c.want)
			}
		})
	}
}
