package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/audit"
)

// changedStore is a store whose rows do not match its chain.
type changedStore struct{ audit.Store }

func (changedStore) VerifyAudit(ctx context.Context, _ []audit.Anchor) (*audit.Verification, error) {
	return audit.Verify(ctx, changedRows{}, nil)
}

func (changedStore) ExportAudit(_ context.Context, to io.Writer) error {
	_, err := io.WriteString(to, "{}\n")
	return err
}

// unreadableStore is a store with a damaged row that an export does not have.
type unreadableStore struct{ changedStore }

func (unreadableStore) VerifyAudit(context.Context, []audit.Anchor) (*audit.Verification, error) {
	return nil, errors.New("a row is damaged")
}

// changedRows has a record that was changed, and a chain without its second entry.
type changedRows struct{}

func (changedRows) Entries(_ context.Context, each func(e *audit.Entry, wrong string) error) error {
	first := &audit.Entry{Seq: 1, Idx: 1, Body: "R1=other"}
	first.Hash = audit.HashOf("", first)
	return errors.Join(each(first, ""), each(&audit.Entry{Seq: 3, Idx: 3}, ""))
}

func (changedRows) Table(t *audit.Table) *audit.Table {
	if t.Name == audit.Runs.Name {
		return t
	}
	return nil
}

func (changedRows) Rows(_ context.Context, t *audit.Table, each func([]string) error) error {
	row := make([]string, len(t.Columns))
	for column, value := range map[string]string{"seq": "1", "id": "run-1", "session": "first"} {
		row[slices.Index(t.Columns, column)] = value
	}
	return each(row)
}

func (changedRows) Grants(context.Context, func(session, hash string) error) error { return nil }

// A problem names the row once, and its session. An export of such a store says that it does not
// match its chain.
//
// SPEC O-03
func TestProblemsOfAChain(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app{out: &out, err: &errs}
	v, err := changedStore{}.VerifyAudit(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.tellVerification(v, 0, false); err == nil {
		t.Error("the chain is said to be intact")
	}
	for _, want := range []string{
		"changed  runs run-1 of session first: the record does not match entry 1\n",
		"removed  audit_chain 3: 1 entry before it was removed\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("told\n%s\nwant\n%s", &out, want)
		}
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := a.exportAudit(t.Context(), changedStore{}, private); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("exported %q (%v), want a line and its signature", &out, err)
	}
	if !strings.Contains(errs.String(), "the store does not match its chain (2 problems)") {
		t.Errorf("told %q, want a warning", &errs)
	}
	out.Reset()
	if err := a.exportAudit(t.Context(), unreadableStore{}, private); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("exported %q (%v), want a line and its signature", &out, err)
	}
	if !strings.Contains(errs.String(), "cannot compare the store with its chain: a row is damaged; the export") {
		t.Errorf("told %q, want a warning", &errs)
	}
}
