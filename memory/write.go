package memory

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

type statements struct {
	scope, newScope, same, insert, touch, index, unindex, count, uncount, byID *sql.Stmt // on the writer's connection
	postings, newest, wordCount, byNum, scopeID                                *sql.Stmt // on the readers' connections
}

const columns = "m.num, m.id, s.name, m.state, m.text, m.tags, m.session, m.turn, m.created, m.updated"

func (s *Store) prepare(ctx context.Context) error {
	st := &s.stmts
	for _, p := range []struct {
		on   *sql.DB
		stmt **sql.Stmt
		text string
	}{
		{s.writer, &st.scope, "SELECT id FROM scopes WHERE name = ?"},
		{s.writer, &st.newScope, "INSERT INTO scopes (name) VALUES (?) RETURNING id"},
		{s.writer, &st.same, "SELECT " + columns + " FROM memories m JOIN scopes s ON s.id = m.scope WHERE m.scope = ? AND m.digest = ?"},
		{s.writer, &st.insert, "INSERT INTO memories (id, scope, state, text, tags, digest, session, turn, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING num"},
		{s.writer, &st.touch, "UPDATE memories SET state = ?, tags = ?, updated = ? WHERE num = ?"},
		{s.writer, &st.index, "INSERT INTO found (rowid, words) VALUES (?, ?)"},
		{s.writer, &st.unindex, "DELETE FROM found WHERE rowid = ?"},
		{s.writer, &st.count, "INSERT INTO words (word, memories) VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET memories = memories + excluded.memories"},
		{s.writer, &st.uncount, "DELETE FROM words WHERE word = ? AND memories <= 0"},
		{s.writer, &st.byID, "SELECT " + columns + " FROM memories m JOIN scopes s ON s.id = m.scope WHERE m.id = ?"},
		{s.reader, &st.postings, "SELECT rowid FROM found WHERE found MATCH ?"},
		{s.reader, &st.newest, "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rowid DESC LIMIT ?"},
		{s.reader, &st.wordCount, "SELECT memories FROM words WHERE word = ?"},
		{s.reader, &st.byNum, "SELECT " + columns + " FROM memories m JOIN scopes s ON s.id = m.scope WHERE m.num = ?"},
		{s.reader, &st.scopeID, "SELECT id FROM scopes WHERE name = ?"},
	} {
		var err error
		if *p.stmt, err = p.on.PrepareContext(ctx, p.text); err != nil { //nolint:sqlclosecheck // closed with its pool
			return explain(err)
		}
	}
	return nil
}

// Add stores all drafts or none, and returns the memories in the same order. If a text
// already exists in the same scope, it is not stored twice: the existing memory keeps its
// id and gets the tags of both. A proposal becomes active if it is added again as active.
func (s *Store) Add(ctx context.Context, drafts ...Draft) ([]Memory, error) {
	var added []Memory
	err := s.write(ctx, func(w *writing) (err error) {
		added, err = w.add(drafts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("remember: %w", err)
	}
	return added, nil
}

// Accept makes a proposal active. It does not change an active memory. It returns
// ErrNotFound if the memory does not exist, and ErrForgotten if it was forgotten.
func (s *Store) Accept(ctx context.Context, id string) (accepted Memory, err error) {
	err = s.write(ctx, func(w *writing) error {
		m, err := w.find(id)
		switch {
		case err != nil:
			return err
		case m.State == Forgotten:
			return ErrForgotten
		case m.State == Proposed:
			m.State = Active
			if err := w.change(m); err != nil {
				return err
			}
			if err := w.index(m); err != nil {
				return err
			}
		}
		accepted = m.Memory
		return nil
	})
	if err != nil {
		return Memory{}, fmt.Errorf("accept memory %q: %w", id, err)
	}
	return accepted, nil
}

// Forget removes the text, the tags and the search words of a memory from the file and from
// its log. A record remains that the memory existed and that its turn was processed. A turn
// that began before Forget and is processed later adds nothing to the same scope, because
// it could contain the forgotten fact in other words. Forgetting twice is harmless. Forget
// returns ErrNotFound if the memory never existed.
func (s *Store) Forget(ctx context.Context, id string) (forgotten Memory, err error) {
	err = s.write(ctx, func(w *writing) error {
		m, err := w.find(id)
		if err != nil {
			return err
		}
		if m.State == Active {
			if err := w.unindex(m); err != nil {
				return err
			}
		}
		if m.State != Forgotten {
			m.State, m.Text, m.Tags, m.Updated = Forgotten, "", nil, w.store.now()
			if _, err := w.tx.ExecContext(w.ctx, "UPDATE memories SET state = 'forgotten', text = '', tags = '[]', digest = NULL, updated = ? WHERE num = ?", m.Updated.UnixNano(), m.num); err != nil {
				return explain(err)
			}
			if err := w.goneThrough(m.Session, m.Turn); err != nil {
				return err
			}
			s.unclean.Store(true)
		}
		forgotten = m.Memory
		return nil
	})
	if err == nil && s.unclean.Load() {
		err = s.scrub(ctx)
	}
	if err != nil {
		return Memory{}, fmt.Errorf("forget memory %q: %w", id, err)
	}
	return forgotten, nil
}

// scrub empties the log, because it contains old pages with forgotten text. If a reader
// blocks it, the next Forget or Close tries again.
func (s *Store) scrub(ctx context.Context) error {
	var busy, pages, moved int
	if err := s.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil {
		return explain(err)
	}
	s.unclean.Store(busy != 0)
	return nil
}

// extracted reports whether a turn has already been processed.
func (s *Store) extracted(ctx context.Context, session, turn string) (bool, error) {
	var n int
	err := s.reader.QueryRowContext(ctx, "SELECT count(*) FROM extractions WHERE session = ? AND turn = ?", session, turn).Scan(&n)
	return n > 0, explain(err)
}

// errSinceForgotten means that a memory was forgotten after the turn began, so the turn may
// contain the forgotten fact.
var errSinceForgotten = errors.New("a memory was forgotten after the turn began")

// extract stores the memories of a turn. It adds nothing if the turn was processed before.
// It also adds nothing if a memory in one of the scopes was forgotten after the turn began.
func (s *Store) extract(ctx context.Context, session, turn string, begun time.Time, scopes []Scope, drafts []Draft) (added []Memory, err error) {
	since := false
	err = s.write(ctx, func(w *writing) error {
		done, err := w.tx.ExecContext(w.ctx, goneThrough, session, turn, w.store.now().UnixNano())
		if err != nil {
			return explain(err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return explain(err)
		}
		if since, err = w.forgottenSince(begun, scopes); err != nil || since {
			return err
		}
		added, err = w.add(drafts)
		return err
	})
	if err == nil && since && len(drafts) > 0 {
		err = errSinceForgotten
	}
	return added, err
}

const goneThrough = "INSERT INTO extractions (session, turn, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"

// writing is an open transaction.
type writing struct {
	ctx    context.Context //nolint:containedctx // it lasts as long as the transaction
	store  *Store
	tx     *sql.Tx
	scopes map[Scope]int64
	counts map[string]int // changes of the word counts
	// changes are made last and together, because other statements in between would make
	// them slower.
	changes []change
}

// change is a change of the index: the new words of a memory, or nil to remove the memory.
type change struct {
	num   int64
	words []string
}

// row is a memory with its number in the table.
type row struct {
	Memory
	num int64
}

// write runs f in a transaction.
func (s *Store) write(ctx context.Context, f func(*writing) error) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	w := &writing{ctx: ctx, store: s, tx: tx, scopes: make(map[Scope]int64), counts: make(map[string]int)}
	if err = f(w); err == nil {
		err = w.changeIndex()
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return explain(err)
	}
	return nil
}

// goneThrough marks a turn as processed, so that extraction adds nothing from it.
func (w *writing) goneThrough(session, turn string) error {
	if session == "" || turn == "" {
		return nil
	}
	_, err := w.tx.ExecContext(w.ctx, goneThrough, session, turn, w.store.now().UnixNano())
	return explain(err)
}

// forgottenSince reports whether a memory in one of the scopes was forgotten at the given
// time or later.
func (w *writing) forgottenSince(at time.Time, scopes []Scope) (bool, error) {
	for _, scope := range scopes {
		var n int
		err := w.tx.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM memories m JOIN scopes s ON s.id = m.scope WHERE m.state = 'forgotten' AND m.updated >= ? AND s.name = ?)",
			unixNano(at), scope.String()).Scan(&n)
		if err != nil || n > 0 {
			return n > 0, explain(err)
		}
	}
	return false, nil
}

// unixNano returns a time as it is stored. The zero time is stored as 0, so that it is
// before all other times.
func unixNano(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano()
}

func (w *writing) add(drafts []Draft) ([]Memory, error) {
	added := make([]Memory, len(drafts))
	for i, d := range drafts {
		d, err := d.sound()
		if err != nil {
			return nil, err
		}
		if added[i], err = w.addOne(d); err != nil {
			return nil, err
		}
	}
	return added, nil
}

func (w *writing) addOne(d Draft) (Memory, error) {
	scope, err := w.scope(d.Scope)
	if err != nil {
		return Memory{}, err
	}
	sum := digest(d.Text)
	switch m, err := scan(w.row(w.store.stmts.same, scope, sum)); {
	case err == nil:
		return w.addAgain(m, d)
	case !errors.Is(err, sql.ErrNoRows):
		return Memory{}, err
	}
	now := w.store.now()
	m := &row{Memory: Memory{
		ID: "m-" + strings.ToLower(rand.Text()[:12]), Scope: d.Scope, State: Active, Text: d.Text, Tags: d.Tags, Session: d.Session, Turn: d.Turn, Created: now, Updated: now,
	}}
	if d.Proposed {
		m.State = Proposed
	}
	err = w.row(w.store.stmts.insert, m.ID, scope, m.State, m.Text, tagsText(m.Tags), sum, m.Session, m.Turn, now.UnixNano(), now.UnixNano()).Scan(&m.num)
	if err == nil && m.State == Active {
		err = w.index(m)
	}
	return m.Memory, err
}

// addAgain adds a draft whose text is already stored: it merges the tags and may make a
// proposal active.
func (w *writing) addAgain(m *row, d Draft) (Memory, error) {
	before := *m
	tags := slices.Concat(m.Tags, d.Tags)
	slices.Sort(tags)
	m.Tags = slices.Compact(tags)
	m.Tags = m.Tags[:min(len(m.Tags), maxTags)]
	if !d.Proposed {
		m.State = Active
	}
	if err := w.change(m); err != nil {
		return Memory{}, err
	}
	if before.State == m.State && slices.Equal(before.Tags, m.Tags) {
		return m.Memory, nil // the index does not change
	}
	if before.State == Active {
		if err := w.unindex(&before); err != nil {
			return Memory{}, err
		}
	}
	if m.State != Active {
		return m.Memory, nil
	}
	return m.Memory, w.index(m)
}

// change stores the state and the tags of a memory.
func (w *writing) change(m *row) error {
	m.Updated = w.store.now()
	return w.exec(w.store.stmts.touch, m.State, tagsText(m.Tags), m.Updated.UnixNano(), m.num)
}

func (w *writing) find(id string) (*row, error) {
	m, err := scan(w.row(w.store.stmts.byID, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	return m, err
}

func (w *writing) index(m *row) error {
	words, err := w.wordsOf(m, 1)
	w.changes = append(w.changes, change{m.num, words})
	return err
}

func (w *writing) unindex(m *row) error {
	_, err := w.wordsOf(m, -1)
	w.changes = append(w.changes, change{m.num, nil})
	return err
}

// wordsOf returns the words of a memory in index form. It adds count to the count of each
// word.
func (w *writing) wordsOf(m *row, count int) ([]string, error) {
	scope, err := w.scope(m.Scope)
	if err != nil {
		return nil, err
	}
	words := append([]string{}, m.words()...)
	for i := range words {
		words[i] = inScope(scope, words[i])
		w.counts[words[i]] += count
	}
	w.counts[inScope(scope, "")] += count
	return words, nil
}

func (m *Memory) words() []string { return wordsOf(m.Text + "\n" + strings.Join(m.Tags, "\n")) }

// inScope returns a word in index form. Each scope has its own words in the index, so the
// cost of a search does not depend on other scopes.
func inScope(scope int64, word string) string { return strconv.FormatInt(scope, 10) + "x" + word }

// changeIndex stores the collected changes of the index and of the word counts.
func (w *writing) changeIndex() error {
	for _, c := range w.changes {
		var err error
		if c.words == nil {
			err = w.exec(w.store.stmts.unindex, c.num)
		} else {
			err = w.exec(w.store.stmts.index, c.num, strings.Join(c.words, " "))
		}
		if err != nil {
			return err
		}
	}
	for _, word := range slices.Sorted(maps.Keys(w.counts)) { // in the order of the table
		n := w.counts[word]
		if n == 0 {
			continue
		}
		if err := w.exec(w.store.stmts.count, word, n); err != nil {
			return err
		}
		if n < 0 {
			if err := w.exec(w.store.stmts.uncount, word); err != nil {
				return err
			}
		}
	}
	return nil
}

// scope returns the number of a scope. It creates the scope if necessary.
func (w *writing) scope(s Scope) (int64, error) {
	if id, ok := w.scopes[s]; ok {
		return id, nil
	}
	var id int64
	err := w.row(w.store.stmts.scope, s.String()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = w.row(w.store.stmts.newScope, s.String()).Scan(&id)
	}
	if err == nil {
		w.scopes[s] = id
	}
	return id, explain(err)
}

func (w *writing) row(stmt *sql.Stmt, args ...any) *sql.Row {
	return w.tx.StmtContext(w.ctx, stmt).QueryRowContext(w.ctx, args...) //nolint:sqlclosecheck // it ends with the transaction
}

func (w *writing) exec(stmt *sql.Stmt, args ...any) error {
	_, err := w.tx.StmtContext(w.ctx, stmt).ExecContext(w.ctx, args...) //nolint:sqlclosecheck // it ends with the transaction
	return explain(err)
}

func tagsText(tags []string) string {
	if len(tags) == 0 {
		return "[]"
	}
	data, err := json.Marshal(tags)
	if err != nil {
		return "[]" // a list of strings can always be encoded
	}
	return string(data)
}
