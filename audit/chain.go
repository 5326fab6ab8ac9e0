package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Store is a store with a chain of hashes over the records of hooks, the approvals and the
// grants.
type Store interface {
	// VerifyAudit compares the rows with the chain. It reads the whole journal. Anchors
	// are entries that the chain must have.
	VerifyAudit(ctx context.Context, anchors []Anchor) (*Verification, error)
	// AnchorAudit returns the last entry of the chain. It covers everything that was
	// stored before the call.
	AnchorAudit(ctx context.Context) (Anchor, error)
	// ExportAudit writes the chain and the rows of the journal and of the approvals as
	// JSON lines, without a signature: see [Export].
	ExportAudit(ctx context.Context, to io.Writer) error
}

// ErrEmpty says that the chain has no entry yet.
var ErrEmpty = errors.New("audit: nothing was recorded yet")

// Anchor names an entry of the chain. Its text is the number of the entry, a colon and its
// hash.
type Anchor struct {
	Seq  int64
	Hash string
}

// String returns the text of the anchor.
func (a Anchor) String() string { return strconv.FormatInt(a.Seq, 10) + ":" + a.Hash }

// MarshalText writes the text of the anchor.
func (a Anchor) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the text of an anchor.
func (a *Anchor) UnmarshalText(text []byte) error {
	number, hash, _ := strings.Cut(string(text), ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	sum, errHash := hex.DecodeString(hash)
	if err != nil || errHash != nil || seq < 1 || len(sum) != 32 {
		return fmt.Errorf("audit: %q is not an anchor: `belay audit anchor` prints one, as NUMBER:HASH", text)
	}
	a.Seq, a.Hash = seq, hash
	return nil
}

// Verification is the result of a comparison of the rows with the chain.
type Verification struct {
	// Entries, Runs and Approvals count what was compared. Runs counts rows: the records of
	// a dispatch can share a row.
	Entries   int64 `json:"entries"`
	Runs      int64 `json:"runs"`
	Approvals int64 `json:"approvals"`
	Grants    int64 `json:"grants"`
	// Deleted counts the sessions that Belay has deleted, DeletedRuns the rows of the journal,
	// those of the sessions and those that retention has removed, and DeletedApprovals the
	// approvals of the sessions. Only their hashes are left.
	Deleted          int64 `json:"deleted,omitempty"`
	DeletedRuns      int64 `json:"deleted_runs,omitempty"`
	DeletedApprovals int64 `json:"deleted_approvals,omitempty"`
	// First and Last are the times of the first and of the last entry.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Head is the last entry of the main chain.
	Head *Anchor `json:"head,omitempty"`
	// Problems are the differences. If it is empty, nothing was changed. At most
	// MaxProblems are listed. More counts the others.
	Problems []Problem `json:"problems,omitempty"`
	More     int64     `json:"more,omitempty"`
}

// MaxProblems is how many problems a Verification lists.
const MaxProblems = 1000

// Problem is a difference between the rows and the chain.
type Problem struct {
	// Kind says what somebody did with the row.
	Kind ProblemKind `json:"kind"`
	// Table and Row say where. Row is an id, or the place of the row in its table.
	Table string `json:"table"`
	Row   string `json:"row"`
	// Session is the session of the row, if it is known.
	Session string `json:"session,omitempty"`
	// Text explains the problem in one sentence.
	Text string `json:"text"`
}

// ProblemKind says what happened to a row.
type ProblemKind string

// The kinds of problems.
const (
	Changed  ProblemKind = "changed"
	Removed  ProblemKind = "removed"
	Inserted ProblemKind = "inserted"
)

// Add adds a problem to the list, or counts it if the list is full.
func (v *Verification) Add(p Problem) {
	if len(v.Problems) >= MaxProblems {
		v.More++
		return
	}
	v.Problems = append(v.Problems, p)
}
