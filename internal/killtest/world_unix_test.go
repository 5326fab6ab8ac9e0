//go:build unix

package killtest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/belay-run/belay"
)

// world is the state after all processes have ended.
type world struct {
	log      []entry
	messages map[string][]*belay.Message // by session
	results  map[string]*belay.Result    // by call, as the model got them
	calls    map[string]call
	sessions map[string]session
	runs     []run
}

type call struct{ state, result string }

type session struct {
	turn  string
	state belay.SessionState
}

type run struct {
	hook, turn, state, job string
	step, attempt          int
}

// look reads the log and the whole store.
func (l *lane) look(t *testing.T) *world {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.Dir, "belay.db"))
	if l.DSN != "" {
		db, err = sql.Open("pgx", l.DSN)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	l.startOnce(t, db)
	w := &world{
		log: readLog(t, l.log()), messages: make(map[string][]*belay.Message), results: make(map[string]*belay.Result),
		calls: make(map[string]call), sessions: make(map[string]session),
	}
	each(t, db, "SELECT session, body FROM messages ORDER BY session, seq", func(scan func(...any) error) error {
		var id, body string
		m := new(belay.Message)
		if err := scan(&id, &body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(body), m); err != nil {
			return err
		}
		w.messages[id] = append(w.messages[id], m)
		for _, p := range m.Parts {
			if p.Result != nil {
				w.results[p.Result.Call] = &p.Result.Result
			}
		}
		return nil
	})
	each(t, db, "SELECT id, state, result FROM calls", func(scan func(...any) error) error {
		var id string
		var c call
		err := scan(&id, &c.state, &c.result)
		w.calls[id] = c
		return err
	})
	each(t, db, "SELECT id, turn_state, state FROM sessions", func(scan func(...any) error) error {
		var id, state string
		var s session
		if err := scan(&id, &s.turn, &state); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(state), &s.state)
		w.sessions[id] = s
		return err
	})
	each(t, db, "SELECT subscription, turn, step, state, job, attempt FROM runs", func(scan func(...any) error) error {
		var r run
		err := scan(&r.hook, &r.turn, &r.step, &r.state, &r.job, &r.attempt)
		w.runs = append(w.runs, r)
		return err
	})
	return w
}

// startOnce opens and closes the store. Opening the store marks the unfinished work of
// dead processes as interrupted. On PostgreSQL, a process counts as dead only after the
// takeover time.
func (l *lane) startOnce(t *testing.T, db *sql.DB) {
	t.Helper()
	often := time.NewTicker(takeover / 5)
	defer often.Stop()
	for over := time.After(patience); ; {
		s, err := l.open(t.Context())
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM runs WHERE state = 'started'").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
		select {
		case <-often.C:
		case <-over:
			return // the invariant about final records reports the failure
		}
	}
}

// each calls a function for each row.
func each(t *testing.T, db *sql.DB, query string, row func(scan func(...any) error) error) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
