package postgres

import (
	"strconv"
	"strings"
	"sync"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/record"
)

// On a server many transactions write at once, and none of them may wait for another one. So
// each transaction extends a chain that nobody else extends at that time: a lane. A store has
// as many lanes as it has had transactions at once. A checkpoint is an entry of the main
// chain that has the hashes of the last entries of the lanes: see checkpoint.go.
//
// The server hashes the rows, in the batch that writes them: only the server knows the
// position of a run, and a further round trip would cost more than the hashes.

// lane is a chain that one transaction at a time extends.
type lane struct {
	name string
	idx  int64 // of its last entry
}

// lanes are the lanes of a store that no transaction uses.
type lanes struct {
	mu   sync.Mutex
	free []lane
	made int
	used bool // an entry was added since the last checkpoint
}

// take returns a lane. Nobody else has it until it is put back.
func (l *lanes) take(holder string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		one := l.free[n-1]
		l.free = l.free[:n-1]
		return &one
	}
	l.made++
	return &lane{name: holder + "." + strconv.Itoa(l.made)}
}

// put makes a lane free.
func (l *lanes) put(one lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, one)
}

// touched is what a transaction has written that is not in an entry yet.
type touched struct {
	runs, approvals []string // ids
	lines           chain.Lines
}

func (t *touched) empty() bool {
	return len(t.runs) == 0 && len(t.approvals) == 0 && t.lines.Len() == 0
}

// linking adds an entry. Its parameters are the lane, the index, the time, further lines, the
// ids of runs, and the ids of approvals. linkingRuns is for a transaction without approvals,
// as most are: the server has fewer expressions to prepare.
var (
	linkingRuns = linkingOf(chain.ServerRunLines("$5::text[]"))
	linking     = linkingOf(chain.ServerRunLines("$5::text[]") + " UNION ALL " + chain.ServerApprovalLines("$6::text[]"))
)

func linkingOf(lines string) string {
	return `WITH next AS (SELECT nextval('belay_chain') AS seq, coalesce((SELECT hash FROM audit_chain WHERE lane = $1 AND idx = $2::bigint - 1), '') AS before),
lines AS (` + lines + ` UNION ALL SELECT unnest($4::text[])),
whole AS (SELECT coalesce(string_agg(line, ' ' ORDER BY line COLLATE "C"), '') AS body FROM lines)
INSERT INTO audit_chain (seq, lane, idx, time, body, hash)
SELECT next.seq, $1::text, $2::bigint, $3::bigint, whole.body, ` +
		chain.ServerEntryHash("next.before", "next.seq", "$1::text", "$2::bigint", "$3::bigint", "whole.body") + ` FROM next, whole`
}

// planning makes the server plan linking once for each connection, and not for each
// transaction: for so many columns, that takes five times as long as the statement itself. The
// plan is made while the tables are small and then kept, so it must not scan them. The
// settings end with the transaction.
const planning = "SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)"

// link buffers the statement that adds an entry for what the transaction has written so far.
// The statement is sent together with the writes before it.
func (w *writing) link() {
	if w.touched.empty() {
		return
	}
	if w.lane == nil {
		w.lane = w.store.lanes.take(w.store.id)
		w.began = *w.lane
	}
	w.lane.idx++
	w.pipe.batch.Queue(planning)
	statement, args := linkingRuns, []any{w.lane.name, w.lane.idx, record.Nanos(w.store.now()), strings.Fields(w.touched.lines.Body()), list(w.touched.runs)}
	if len(w.touched.approvals) > 0 {
		statement, args = linking, append(args, list(w.touched.approvals))
	}
	w.pipe.batch.Queue(statement, args...)
	w.touched = touched{}
}

// list returns a list that is not nil: nil would be NULL, which has no rows.
func list(ids []string) []string {
	if ids == nil {
		return []string{}
	}
	for i, id := range ids {
		ids[i] = clean([]any{id})[0].(string)
	}
	return ids
}

// unlink is called when the transaction has ended. If it is not known whether its entries are
// stored, the lane is never used again.
func (w *writing) unlink(stored, known bool) {
	switch {
	case w.lane == nil || !known:
		return
	case stored:
		w.store.lanes.put(*w.lane)
		w.store.lanes.mark(true)
	default:
		w.store.lanes.put(w.began)
	}
	w.lane = nil
}

func (l *lanes) mark(used bool) (before bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.used = l.used, used
	return before
}

var _ audit.Store = (*Store)(nil)
