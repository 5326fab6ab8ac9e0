package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

func scan(from interface{ Scan(into ...any) error }) (*row, error) {
	var m row
	var scope, tags string
	var created, updated int64
	if err := from.Scan(&m.num, &m.ID, &scope, &m.State, &m.Text, &tags, &m.Session, &m.Turn, &created, &updated); err != nil {
		return nil, err
	}
	m.Created, m.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
	if err := m.Scope.UnmarshalText([]byte(scope)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(tags), &m.Tags); err != nil {
		return nil, fmt.Errorf("memory %q: tags: %w", m.ID, err)
	}
	if len(m.Tags) == 0 {
		m.Tags = nil
	}
	return &m, nil
}

// Lookup returns a memory. A forgotten memory has an empty text. Lookup returns ErrNotFound
// if there is no memory with this id.
func (s *Store) Lookup(ctx context.Context, id string) (Memory, error) {
	m, err := scan(s.reader.QueryRowContext(ctx, "SELECT "+columns+" FROM memories m JOIN scopes s ON s.id = m.scope WHERE m.id = ?", id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Memory{}, fmt.Errorf("memory %q: %w", id, ErrNotFound)
	case err != nil:
		return Memory{}, fmt.Errorf("memory %q: %w", id, explain(err))
	}
	return m.Memory, nil
}

// Filter selects memories. Every field that is set must match.
type Filter struct {
	// Scopes are the owners of the memories. Nil selects all, an empty list selects
	// nothing.
	Scopes []Scope
	// States are the states of the memories. Nil selects all, an empty list selects
	// nothing.
	States []State
	// Prefix is the beginning of the ids.
	Prefix string
	// Session is the session that the memories come from.
	Session string
	// Limit is the maximum number. Defaults to all.
	Limit int
}

// List yields the matching memories, newest first. It does not load all of them at once.
func (s *Store) List(ctx context.Context, filter Filter) iter.Seq2[Memory, error] {
	var where []string
	var args []any
	in := func(column string, values []string) {
		if values == nil {
			return
		}
		places := strings.TrimPrefix(strings.Repeat(", ?", len(values)), ", ") // contains only placeholders, so it is safe in SQL
		where = append(where, column+" IN ("+places+")")
		for _, v := range values {
			args = append(args, v)
		}
	}
	in("s.name", texts(filter.Scopes, Scope.String))
	in("m.state", texts(filter.States, func(s State) string { return string(s) }))
	if filter.Session != "" {
		in("m.session", []string{filter.Session})
	}
	if filter.Prefix != "" {
		where, args = append(where, "substr(m.id, 1, ?) = ?"), append(args, len(filter.Prefix), filter.Prefix)
	}
	query := "SELECT " + columns + " FROM memories m JOIN scopes s ON s.id = m.scope"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ") //nolint:gosec // conditions of our own; values are bound
	}
	query += " ORDER BY m.num DESC"
	if filter.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, filter.Limit)
	}
	return func(yield func(Memory, error) bool) {
		rows, err := s.reader.QueryContext(ctx, query, args...)
		if err != nil {
			yield(Memory{}, fmt.Errorf("list memories: %w", explain(err)))
			return
		}
		defer func() { _ = rows.Close() }() // the rows were only read
		for rows.Next() {
			m, err := scan(rows)
			if err != nil {
				yield(Memory{}, fmt.Errorf("list memories: %w", err))
				return
			}
			if !yield(m.Memory, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Memory{}, fmt.Errorf("list memories: %w", explain(err)))
		}
	}
}

// texts converts values to strings. It returns nil for nil.
func texts[T any](values []T, text func(T) string) []string {
	if values == nil {
		return nil
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(v)
	}
	return out
}
