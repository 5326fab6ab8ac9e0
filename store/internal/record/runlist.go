package record

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// RunPage is how many rows one query reads. Between pages no database connection is in use,
// so that a slow caller blocks nobody.
const RunPage = 256

// Runs yields the runs that match when Runs is called, each once, ordered by start time and
// then by position. If a run is replaced during the listing, the caller may get the new
// state at the old position.
func Runs(ctx context.Context, db table.DBTX, filter hook.Filter, yield func(hook.Run) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	query, stream := RunQuery{filter}, newRunStream(table.New(db), filter, yield)
	if filter.Limit > 0 && filter.Limit <= RunPage {
		text, args := query.SQL(RunColumns)
		page, err := Collect(ctx, db, text, args, scanRun)
		if err != nil {
			return err
		}
		return stream.all(ctx, page)
	}
	// A run can get a new start time when it is replaced. So one query reads the order of
	// all rows, and later queries read the rows.
	text, args := query.SQL(PlaceColumns)
	places, err := Collect(ctx, db, text, args, func(rows *sql.Rows, p *place) error { return rows.Scan(&p.seq, &p.started) })
	if err != nil {
		return err
	}
	for some := range slices.Chunk(slices.Compact(places), RunPage) {
		page, err := rowsAt(ctx, db, some)
		if err != nil {
			return err
		}
		if more, err := stream.add(ctx, page); err != nil || !more {
			return err
		}
	}
	_, err = stream.flush(ctx, nil)
	return err
}

// place is the place of a run in the order of a listing.
type place struct{ started, seq int64 }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.started, other.started), cmp.Compare(p.seq, other.seq))
}

// placedRow is a row with the place of its first run.
type placedRow struct {
	place
	row table.Run
}

// rowsAt reads the rows at the given places, in that order. It omits rows that were
// removed.
func rowsAt(ctx context.Context, db Database, places []place) ([]placedRow, error) {
	at := make(map[int64]int, len(places))
	var in strings.Builder
	for i, p := range places {
		at[p.seq] = i
		if i > 0 {
			in.WriteByte(',')
		}
		in.WriteString(strconv.FormatInt(p.seq, 10))
	}
	rows, err := Collect(ctx, db, "SELECT "+RunColumns+" FROM runs WHERE seq IN ("+in.String()+")", nil, scanRun)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b table.Run) int { return cmp.Compare(at[a.Seq], at[b.Seq]) })
	page := make([]placedRow, len(rows))
	for i, row := range rows {
		page[i] = placedRow{places[at[row.Seq]], row}
	}
	return page, nil
}

// runStream yields the runs of rows in order. The rows come in the order of their first
// runs. The further runs of a folded row can belong behind the first runs of later rows, so
// they wait in pending.
type runStream struct {
	unfolder
	filter  hook.Filter
	yield   func(hook.Run) bool
	pending []*placedRun
	left    int // how many runs may still be yielded
}

func newRunStream(q *table.Queries, filter hook.Filter, yield func(hook.Run) bool) *runStream {
	s := &runStream{unfolder: unfolder{q: q}, filter: filter, yield: yield, left: math.MaxInt}
	if filter.Limit > 0 {
		s.left = filter.Limit
	}
	if filter.Subscription != "" || !filter.Since.IsZero() || !filter.Until.IsZero() {
		s.keep = s.matches
	}
	return s
}

// all yields the runs of all rows.
func (s *runStream) all(ctx context.Context, rows []table.Run) error {
	page := make([]placedRow, len(rows))
	for i, row := range rows {
		page[i] = placedRow{place{row.Started, row.Seq}, row}
	}
	if more, err := s.add(ctx, page); err != nil || !more {
		return err
	}
	_, err := s.flush(ctx, nil)
	return err
}

// flushEvery is how many rows add decodes before it yields runs.
const flushEvery = 16

// add decodes the next rows and yields the runs that come before all runs of later rows. It
// returns false if the caller wants no more.
func (s *runStream) add(ctx context.Context, page []placedRow) (bool, error) {
	for i := range page {
		runs, err := s.runs(ctx, &page[i].row)
		if err != nil {
			return false, err
		}
		for j := range runs {
			if runs[j].seq == page[i].seq {
				runs[j].place = page[i].place // a replaced run keeps its place
			}
			s.pending = append(s.pending, &runs[j])
		}
		if i%flushEvery == flushEvery-1 || i == len(page)-1 {
			if more, err := s.flush(ctx, &page[i].place); err != nil || !more {
				return false, err
			}
		}
	}
	return true, nil
}

// matches reports whether a run of a folded row matches the filter. The query has checked
// the columns that all runs of the row share.
func (s *runStream) matches(subscription string, started int64) bool {
	return (s.filter.Subscription == "" || s.filter.Subscription == subscription) &&
		(s.filter.Since.IsZero() || started >= Nanos(s.filter.Since)) &&
		(s.filter.Until.IsZero() || started < Nanos(s.filter.Until))
}

// flush yields the pending runs that come before all runs of the rows after the row at edge.
// Without an edge it yields all pending runs. It returns false if the caller wants no more.
func (s *runStream) flush(ctx context.Context, edge *place) (bool, error) {
	slices.SortFunc(s.pending, func(a, b *placedRun) int {
		if s.filter.Newest {
			a, b = b, a
		}
		return a.compare(b.place)
	})
	n := 0
	for ; n < len(s.pending) && (edge == nil || s.before(s.pending[n], *edge)); n++ {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if s.left == 0 || !s.yield(s.pending[n].run) {
			return false, nil
		}
		s.left--
	}
	s.pending = slices.Delete(s.pending, 0, n)
	return s.left > 0, nil
}

// before reports whether a run comes before all runs of the rows after the row at edge.
func (s *runStream) before(r *placedRun, edge place) bool {
	if s.filter.Newest { // a later row can have runs up to foldSpan after its first run
		return r.started-foldSpan > edge.started && r.started > math.MinInt64+foldSpan
	}
	return r.compare(edge) <= 0
}

// FollowStart returns the position after which a follower begins. last is the last position in
// the journal. A later position is from a journal that was replaced by an older copy.
func FollowStart(filter *hook.Filter, last int64) int64 {
	if filter.After = min(filter.After, last); filter.After == 0 {
		return last
	}
	return max(filter.After, 0)
}

// Followed yields the runs of the rows that were stored or replaced after the first position
// and up to the second, in this order. It yields all runs of a folded row, also those with a
// higher position. It yields no run up to Filter.After. It returns false if the caller wants no
// more.
func Followed(ctx context.Context, db Database, q *table.Queries, filter hook.Filter, after, until int64, yield func(hook.Run) bool) (bool, error) {
	rows, err := q.RunsChanged(ctx, table.RunsChangedParams{After: after, Until: until})
	if err == nil && filter.After > 0 && after == filter.After { // the follower may have seen the first runs of a folded row
		var begun []table.Run
		begun, err = Collect(ctx, db, "SELECT "+RunColumns+" FROM runs WHERE seq <= ? AND more > 0 ORDER BY seq DESC LIMIT 1", []any{after}, scanRun)
		rows = append(rows, begun...)
	}
	if err != nil {
		return false, Cause(ctx, err)
	}
	slices.SortFunc(rows, func(a, b table.Run) int { return cmp.Compare(position(a), position(b)) })
	unfolder := unfolder{q: q}
	for i := range rows {
		runs, err := unfolder.runs(ctx, &rows[i])
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		for _, r := range runs {
			if r.run.Position = max(r.seq, rows[i].Changed); r.run.Position <= filter.After {
				continue
			}
			if filter.Match(r.run) && !yield(r.run) {
				return false, nil
			}
		}
	}
	return true, nil
}

// position returns the current position of a row in the journal.
func position(row table.Run) int64 { return max(row.Seq, row.Changed) }
