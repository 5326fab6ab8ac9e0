package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// Stored reads a session for belay.Store.Open. All queries must see the same snapshot.
func Stored(ctx context.Context, q *table.Queries, session string) (*belay.Stored, error) {
	row, err := q.SessionRow(ctx, session)
	if err != nil {
		return nil, err
	}
	stored := &belay.Stored{Epoch: row.Epoch, Last: row.Last}
	if err := Decode(row.State, &stored.State); err != nil {
		return nil, err
	}
	if stored.Messages, err = visible(ctx, q, row); err != nil {
		return nil, err
	}
	if row.Response > 0 {
		calls, err := q.CallsOf(ctx, table.CallsOfParams{Session: session, Message: row.Response})
		if err != nil {
			return nil, err
		}
		if stored.Calls, err = all(calls, callOf); err != nil {
			return nil, err
		}
	}
	asked, err := q.ApprovalsSince(ctx, table.ApprovalsSinceParams{Session: row.ID, Response: row.Response})
	if err != nil {
		return nil, err
	}
	stored.Approvals, err = all(asked, ApprovalOf)
	return stored, err
}

// visible reads the messages that the model sees, as belay.Visible defines them:
// the last compaction, the messages it keeps, and later messages.
func visible(ctx context.Context, q *table.Queries, row table.Session) ([]*belay.Message, error) {
	from := row.Compaction
	if row.Keep > 0 && row.Keep < from {
		from = row.Keep
	}
	bodies, err := q.MessagesFrom(ctx, table.MessagesFromParams{Session: row.ID, Seq: from})
	if err != nil {
		return nil, err
	}
	messages, err := all(bodies, messageOf)
	if err != nil || row.Compaction == 0 {
		return messages, err
	}
	seen := make([]*belay.Message, 1, len(messages))
	for _, m := range messages {
		switch {
		case m.Seq == row.Compaction:
			seen[0] = m
		case m.Seq > row.Compaction || !m.IsCompaction: // skips earlier compactions
			seen = append(seen, m)
		}
	}
	return seen, nil
}

// A query reads messagePage messages. The first query reads firstPage, because many callers
// need only the first message, such as the title of a session. Between pages no database
// connection is in use.
const (
	firstPage   = 8
	messagePage = 128
)

// Messages yields the messages of a session with numbers higher than after. It does not
// yield messages that are stored after the call. It returns belay.ErrNotFound if the
// session does not exist.
func Messages(ctx context.Context, q *table.Queries, session string, after int64, yield func(*belay.Message) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	row, err := q.SessionRow(ctx, session)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return belay.ErrNotFound
	case err != nil:
		return Cause(ctx, err)
	}
	for count := int64(firstPage); after < row.Last; count = messagePage {
		bodies, err := q.MessagesBetween(ctx, table.MessagesBetweenParams{Session: session, After: after, Until: row.Last, Count: count})
		if err != nil {
			return Cause(ctx, err)
		}
		if len(bodies) == 0 {
			return nil // the session was removed during the listing
		}
		for _, body := range bodies {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			m, err := messageOf(body)
			if err != nil {
				return err
			}
			if after = m.Seq; !yield(m) {
				return nil
			}
		}
	}
	return nil
}

// sorted is the order of a listing that reads few sessions.
const sorted = " ORDER BY +changed DESC, id DESC"

// Sessions reads the matching sessions, the most recently changed first. The indexes of the
// table answer every filter, so that a page costs the same however many sessions there are.
func Sessions(ctx context.Context, db Database, filter belay.SessionFilter) ([]table.Session, error) {
	query := "SELECT id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state, title, labels FROM sessions WHERE 1 = 1"
	var args []any
	add := func(condition string, values ...any) {
		query += " AND " + condition
		args = append(args, values...)
	}
	if filter.ID != "" {
		add("id = ?", filter.ID)
	}
	if filter.Prefix != "" {
		condition, values := hasPrefix(filter.Prefix)
		add(condition, values...)
	}
	if !filter.Since.IsZero() {
		add("changed >= ?", Nanos(filter.Since))
	}
	if filter.Open {
		add("turn_state <> ''")
	}
	for _, name := range slices.Sorted(maps.Keys(filter.Labels)) {
		add("EXISTS (SELECT 1 FROM session_labels l WHERE l.session = sessions.id AND l.name = ? AND l.value = ?)", name, filter.Labels[name])
	}
	changed, id, err := filter.Start()
	if err != nil {
		return nil, err
	}
	if id != "" {
		add("(changed, id) < (?, ?)", Nanos(changed), id)
	}
	order := " ORDER BY changed DESC, id DESC"
	if filter.Open { // read the few sessions with an open turn, and sort them: + keeps the database from reading in the order of an index
		order = sorted
	}
	if filter.ID == "" {
		name, rare, err := rareLabel(ctx, db, filter.Labels)
		if err != nil {
			return nil, err
		}
		if rare { // likewise
			add("id IN (SELECT l.session FROM session_labels l WHERE l.name = ? AND l.value = ?)", name, filter.Labels[name])
			order = sorted
		}
	}
	query += order + limit(filter.Limit)
	return Collect(ctx, db, query, args, func(rows *sql.Rows, r *table.Session) error {
		return rows.Scan(&r.ID, &r.Epoch, &r.Holder, &r.Created, &r.Changed, &r.Last, &r.Response, &r.Compaction, &r.Keep, &r.TurnState, &r.State, &r.Title, &r.Labels)
	})
}

// hasPrefix returns the condition that an id begins with a prefix. It is a range of an index:
// the databases compare ids byte by byte.
func hasPrefix(prefix string) (condition string, args []any) {
	if !utf8.ValidString(prefix) {
		return "substr(id, 1, ?) = ?", []any{utf8.RuneCountInString(prefix), prefix}
	}
	runes := []rune(prefix)
	for len(runes) > 0 && runes[len(runes)-1] == utf8.MaxRune { // no character comes after it
		runes = runes[:len(runes)-1]
	}
	if len(runes) == 0 {
		return "id >= ?", []any{prefix}
	}
	last := &runes[len(runes)-1]
	if *last++; *last == 0xD800 { // the first surrogate, which no text contains
		*last = 0xE000
	}
	return "id >= ? AND id < ?", []any{prefix, string(runes)}
}

// fewLabelled is the number of sessions up to which a label counts as rare.
const fewLabelled = 1000

// rareLabel returns the name of a label that only few sessions have. Such sessions are found
// through the label. All others are found in the order of their change.
func rareLabel(ctx context.Context, db Database, labels map[string]string) (name string, rare bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		counted, err := Collect(ctx, db, "SELECT count(*) FROM (SELECT 1 FROM session_labels WHERE name = ? AND value = ? LIMIT ?) AS few", []any{name, labels[name], fewLabelled},
			func(rows *sql.Rows, n *int64) error { return rows.Scan(n) })
		if err != nil {
			return "", false, err
		}
		if len(counted) > 0 && counted[0] < fewLabelled {
			return name, true, nil
		}
	}
	return "", false, nil
}

// InfoOf decodes a session for a list. The store passes held, because the row alone does
// not show whether the holder is alive.
func InfoOf(row table.Session, held bool) (belay.SessionInfo, error) {
	info := belay.SessionInfo{ID: row.ID, Created: Moment(row.Created), Changed: Moment(row.Changed), Last: row.Last, Held: held, Title: row.Title}
	if err := Decode(row.State, &info.State); err != nil {
		return info, fmt.Errorf("list sessions: %q: %w", row.ID, err)
	}
	if err := Decode(row.Labels, &info.Labels); err != nil {
		return info, fmt.Errorf("list sessions: %q: %w", row.ID, err)
	}
	return info, nil
}
