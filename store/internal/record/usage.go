package record

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// CounterUsage is the counter that is 1 when the usage of old messages is counted.
const CounterUsage = "usage"

const secondsOfDay = 24 * 60 * 60

// dayOf returns the number of days since 1970, in UTC.
func dayOf(t time.Time) int64 {
	seconds := t.Unix()
	if seconds < 0 {
		seconds -= secondsOfDay - 1
	}
	return seconds / secondsOfDay
}

// addUsage adds what a message has used to the rows of the commit. Messages that a fork copies
// have used nothing.
func (rows *Commit) addUsage(c *belay.Commit, m *belay.Message) {
	if m.Usage == nil || *m.Usage == (belay.Usage{}) {
		return
	}
	agent := ""
	if c.State != nil {
		if from := c.State.ForkedFrom; from != nil && m.Seq <= from.Seq {
			return
		}
		agent = c.State.Agent
	}
	rows.usage = append(rows.usage, usageRow(c.Session, agent, m))
}

func usageRow(session, agent string, m *belay.Message) table.AddUsageParams {
	root, _, _ := strings.Cut(session, "/")
	return table.AddUsageParams{
		Session: session, Turn: m.Turn, Day: dayOf(m.Time), Model: m.Model, Agent: agent, Root: root,
		TokensIn: int64(m.Usage.In), TokensOut: int64(m.Usage.Out), CacheRead: int64(m.Usage.CacheRead), CacheWrite: int64(m.Usage.CacheWrite), Cost: m.Usage.Cost,
	}
}

// OldMessage is a message that is older than the table of usage, with the state of its session.
type OldMessage struct {
	Session     string
	Seq         int64
	Body, State string
}

// Count adds what the message has used.
func (o *OldMessage) Count(ctx context.Context, q *table.Queries) error {
	m, err := messageOf(o.Body)
	var state belay.SessionState
	if err != nil || Decode(o.State, &state) != nil {
		return nil //nolint:nilerr // a row that nobody can read must not keep the store from opening; reading the session reports it
	}
	if from := state.ForkedFrom; m.Usage == nil || from != nil && m.Seq <= from.Seq {
		return nil
	}
	return q.AddUsage(ctx, usageRow(o.Session, state.Agent, m))
}

// Usage adds up usage. It reads the rows of the selected days only.
func Usage(ctx context.Context, db Database, filter belay.UsageFilter) ([]belay.UsageSum, error) {
	key, join := "''", ""
	var args []any
	switch filter.By {
	case "":
	case belay.ByDay:
		key = "CAST(u.day AS TEXT)"
	case belay.ByAgent:
		key = "u.agent"
	case belay.ByModel:
		key = "u.model"
	case belay.ByLabel:
		key, join = "COALESCE(l.value, '')", " LEFT JOIN session_labels l ON l.session = u.root AND l.name = ?"
		args = append(args, filter.Label)
	default:
		return nil, fmt.Errorf("usage: there is no key %q", filter.By)
	}
	where := []string{"1 = 1"}
	query := "SELECT " + key + `, CAST(sum(u.tokens_in) AS BIGINT), CAST(sum(u.tokens_out) AS BIGINT), CAST(sum(u.cache_read) AS BIGINT), CAST(sum(u.cache_write) AS BIGINT), sum(u.cost),
		count(DISTINCT CASE WHEN u.session = u.root THEN u.session || ' ' || u.turn END), count(DISTINCT u.root)
		FROM turn_usage u` + join + " WHERE "
	if !filter.Since.IsZero() {
		where = append(where, "u.day >= ?")
		args = append(args, dayOf(filter.Since))
	}
	if !filter.Until.IsZero() {
		where = append(where, "u.day < ?")
		args = append(args, dayOf(filter.Until.Add(24*time.Hour-1)))
	}
	for _, name := range slices.Sorted(maps.Keys(filter.Labels)) {
		where = append(where, "EXISTS (SELECT 1 FROM session_labels f WHERE f.session = u.root AND f.name = ? AND f.value = ?)")
		args = append(args, name, filter.Labels[name])
	}
	sums, err := Collect(ctx, db, query+strings.Join(where, " AND ")+" GROUP BY 1", args, func(rows *sql.Rows, s *belay.UsageSum) error {
		return rows.Scan(&s.Key, &s.Usage.In, &s.Usage.Out, &s.Usage.CacheRead, &s.Usage.CacheWrite, &s.Usage.Cost, &s.Turns, &s.Sessions)
	})
	if err != nil {
		return nil, err
	}
	for i := range sums {
		if filter.By == belay.ByDay {
			var day int64
			if _, err := fmt.Sscan(sums[i].Key, &day); err != nil {
				return nil, fmt.Errorf("usage: the day %q: %w", sums[i].Key, err)
			}
			sums[i].Key = time.Unix(day*secondsOfDay, 0).UTC().Format(time.DateOnly)
		}
	}
	slices.SortFunc(sums, func(a, b belay.UsageSum) int { return strings.Compare(a.Key, b.Key) })
	return sums, nil
}
