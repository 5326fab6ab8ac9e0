package record

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// A folded row holds several runs of one dispatch. The first run is in the columns of the
// row. The further runs are equal to it, except for their ids, hooks and times. On SQLite,
// 100 runs in one row take a tenth of the time of 100 rows, because each row has six index
// entries.
const (
	// foldSpan is the longest time between the starts of the first run and of another run
	// of a row. Listings use it to find rows by time, so it must never become shorter.
	foldSpan = int64(10 * time.Millisecond)
	// A folded row has at least foldLeast runs and at most foldMost.
	foldLeast, foldMost = 4, 256
)

// Foldable returns how many of the first rows can become one folded row, or 0.
func Foldable(rows []table.PutRunParams) int {
	first, n := &rows[0], 1
	if first.Dispatch == "" || first.Attempt > 0 || first.State == hook.Started.String() || !plainID(first.ID) {
		return 0
	}
	for n < min(len(rows), foldMost) && foldsInto(first, &rows[n]) {
		n++
	}
	if n < foldLeast {
		return 0
	}
	return n
}

// foldsInto reports whether a run can be in the same folded row as the first run.
func foldsInto(first, r *table.PutRunParams) bool {
	after := r.Started - first.Started
	if after < 0 || after > foldSpan || !plainID(r.ID) {
		return false
	}
	x := *r
	x.Seq, x.ID, x.Subscription, x.Version = first.Seq, first.ID, first.Subscription, first.Version
	x.OriginName, x.OriginFile, x.OriginLine = first.OriginName, first.OriginFile, first.OriginLine
	x.Started, x.Ended, x.Latency = first.Started, first.Ended, first.Latency
	return x == *first
}

// plainID reports whether an id has only visible ASCII characters without a semicolon, so
// that it can be part of the text of a folded row.
func plainID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' || id[i] == ';' {
			return false
		}
	}
	return true
}

// Fold encodes all rows except the first. hooks names the list of their hooks, see
// HooksOf. folded has five fields for each run, separated by spaces, with a semicolon at the
// end:
//
//   - how many leading bytes the id has in common with the id before
//   - the rest of the id
//   - the start, as nanoseconds after the start of the first run
//   - the end, as nanoseconds after the start
//   - the latency, as nanoseconds more than the time from start to end
func Fold(rows []table.PutRunParams) (hooks, folded string) {
	text, list := make([]byte, 0, len(rows)*24), sha256.New()
	var field []byte
	for i := range rows[1:] {
		r, before := &rows[i+1], rows[i].ID
		same := common(before, r.ID)
		text = append(strconv.AppendInt(text, int64(same), 10), ' ')
		text = append(append(text, r.ID[same:]...), ' ')
		text = append(strconv.AppendInt(text, r.Started-rows[0].Started, 10), ' ')
		text = append(strconv.AppendInt(text, r.Ended-r.Started, 10), ' ')
		text = append(strconv.AppendInt(text, r.Latency-(r.Ended-r.Started), 10), ';')

		field = audit.AppendHook(field[:0], r.Subscription, r.Version, r.OriginName, r.OriginFile, r.OriginLine)
		_, _ = list.Write(field) // a hash never fails
	}
	return audit.ListName(list), string(text)
}

// common returns how many leading bytes two texts have in common.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// HooksOf returns the list of hooks of a folded row.
func HooksOf(list string, rows []table.PutRunParams) []table.PutRunHookParams {
	hooks := make([]table.PutRunHookParams, 0, len(rows))
	for i := range rows[1:] {
		r := &rows[i+1]
		hooks = append(hooks, table.PutRunHookParams{
			List: list, Idx: int64(i + 1), Subscription: r.Subscription, Version: r.Version,
			OriginName: r.OriginName, OriginFile: r.OriginFile, OriginLine: r.OriginLine,
		})
	}
	return hooks
}

// foldedRun is what the text of a folded row says about one run. id is valid only until the
// next run is decoded.
type foldedRun struct {
	id                      []byte
	started, ended, latency int64
}

var errFolded = errors.New("the list of folded runs is damaged")

// unfold decodes the text of a folded row. It calls each for all runs except the first, with
// the index of the run in the list.
func unfold(row *table.Run, each func(i int, r foldedRun)) error {
	i, id, rest := 0, []byte(row.ID), row.Folded
	for ; rest != ""; i++ {
		text, after, ended := strings.Cut(rest, ";")
		same, text, ok1 := cutNumber(text)
		end, text, ok2 := strings.Cut(text, " ")
		started, text, ok3 := cutNumber(text)
		took, text, ok4 := cutNumber(text)
		latency, err := strconv.ParseInt(text, 10, 64)
		if !ended || !ok1 || !ok2 || !ok3 || !ok4 || err != nil || same < 0 || same > int64(len(id)) || int64(i) == row.More {
			return errFolded
		}
		id = append(id[:same], end...)
		started += row.Started
		each(i, foldedRun{id, started, started + took, took + latency})
		rest = after
	}
	if int64(i) != row.More {
		return errFolded
	}
	return nil
}

// cutNumber decodes the number before the first space.
func cutNumber(text string) (n int64, rest string, ok bool) {
	number, rest, ok := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, rest, ok && err == nil
}

// DamagedFolds describes the folded rows that cannot be read.
func DamagedFolds(ctx context.Context, q *table.Queries, rows []table.Run) (problems []string, err error) {
	unfolder := unfolder{q: q}
	for i := range rows {
		_, err := unfolder.runs(ctx, &rows[i])
		switch {
		case errors.Is(err, errFolded):
			problems = append(problems, err.Error())
		case err != nil:
			return nil, err
		}
	}
	return problems, nil
}

// Folded is an index of the runs in the folded rows of some dispatches: the state of each
// run by its id.
type Folded map[string]string

// Add reads the folded rows of a dispatch.
func (f Folded) Add(ctx context.Context, q *table.Queries, dispatch string) error {
	rows, err := q.FoldedRuns(ctx, dispatch)
	if err != nil {
		return err
	}
	for i := range rows {
		state := rows[i].State
		f[rows[i].ID] = state
		if err := unfold(&rows[i], func(_ int, r foldedRun) { f[string(r.id)] = state }); err != nil {
			return fmt.Errorf("run %q: %w", rows[i].ID, err)
		}
	}
	return nil
}

// Drop removes the rows of runs that are already stored in a folded row. These runs have
// ended. It returns hook.ErrSettled if one of the rows has another final state.
func (f Folded) Drop(rows []table.PutRunParams) ([]table.PutRunParams, error) {
	kept := make([]table.PutRunParams, 0, len(rows)) // a new slice, because a write can be repeated
	for i := range rows {
		stored, ok := f[rows[i].ID]
		if !ok {
			kept = append(kept, rows[i])
			continue
		}
		if err := lateAs(&rows[i], stored); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// placedRun is a run with its place in the order of a listing.
type placedRun struct {
	place
	run hook.Run
}

// unfolder decodes rows. keep selects the runs of folded rows; nil selects all.
type unfolder struct {
	q     *table.Queries
	keep  func(subscription string, started int64) bool
	lists map[string][]table.RunHook
}

// runs decodes the run of a row. Of a folded row, it decodes the runs that keep selects, or
// none if the row was removed in the meantime.
func (u *unfolder) runs(ctx context.Context, row *table.Run) ([]placedRun, error) {
	first, err := RunOf(*row)
	if err != nil {
		return nil, err
	}
	if row.More == 0 {
		return []placedRun{{place{row.Started, row.Seq}, first}}, nil
	}
	hooks, found, err := u.hooksOf(ctx, row)
	switch {
	case err != nil:
		return nil, fmt.Errorf("run %q: %w", row.ID, err)
	case !found:
		return nil, nil
	}
	var list []placedRun
	if u.keep == nil {
		list = make([]placedRun, 0, len(hooks)+1)
	}
	if u.keep == nil || u.keep(row.Subscription, row.Started) {
		list = append(list, placedRun{place{row.Started, row.Seq}, first})
	}
	err = unfold(row, func(i int, f foldedRun) {
		h := &hooks[i]
		if u.keep != nil && !u.keep(h.Subscription, f.started) {
			return
		}
		r := first
		r.ID, r.Subscription, r.Version = string(f.id), h.Subscription, h.Version
		r.Origin.Name, r.Origin.File, r.Origin.Line = h.OriginName, h.OriginFile, int(h.OriginLine)
		r.Started, r.Ended, r.Latency = Moment(f.started), Moment(f.ended), hook.Latency(f.latency)
		r.Contributed, r.Audit, r.Diagnostics = slices.Clone(r.Contributed), slices.Clone(r.Audit), slices.Clone(r.Diagnostics)
		list = append(list, placedRun{place{f.started, row.Seq + int64(i) + 1}, r})
	})
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", row.ID, err)
	}
	return list, nil
}

// hooksOf returns the hooks of the further runs of a row. found is false if the row was
// removed in the meantime.
func (u *unfolder) hooksOf(ctx context.Context, row *table.Run) (hooks []table.RunHook, found bool, err error) {
	hooks, ok := u.lists[row.Hooks]
	if !ok {
		if hooks, err = u.q.RunHooks(ctx, row.Hooks); err != nil {
			return nil, false, Cause(ctx, err)
		}
	}
	if int64(len(hooks)) != row.More {
		n, err := u.q.RunExists(ctx, row.Seq)
		if err == nil && n > 0 {
			err = fmt.Errorf("%w: it has %d runs, but %d hooks", errFolded, row.More, len(hooks))
		}
		return nil, false, Cause(ctx, err)
	}
	if u.lists == nil {
		u.lists = make(map[string][]table.RunHook)
	}
	u.lists[row.Hooks] = hooks
	return hooks, true, nil
}
