package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// postgresPromises are the promises about the PostgreSQL store.
func postgresPromises() []promise {
	return []promise{
		{"postgres-commits-beyond-2+2n", 0, postgresCommitsBeyond},
		{"postgres-durable-turn", 1.4, pairRatio(postgresTurns)},
		{"postgres-watched-turn", 1.2, pairRatio(turnsWatchedFromAfar)},
		{"claim-behind-100k", 2, claimBehind},
	}
}

// shared is an agent with a PostgreSQL store. The server waits until data is on its disk.
type shared struct {
	*belay.Agent
	store  *postgres.Store
	server *pgtest.Server
}

func newShared() (*shared, error) {
	return newSharedWith(instant{}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: inTurn()})
}

func newSharedWith(model belay.Model, opts *belay.Options) (_ *shared, err error) {
	d := &shared{}
	if d.server, err = pgtest.Start(&pgtest.Options{Durable: true}); err != nil {
		return nil, err
	}
	dsn, err := d.server.Create(ctx, "belay", "template1")
	if err == nil {
		d.store, err = postgres.Open(ctx, dsn, nil)
	}
	if err == nil {
		opts.Store = d.store
		d.Agent, err = belay.New(model, opts)
	}
	if err != nil {
		return nil, errors.Join(err, d.server.Stop())
	}
	return d, nil
}

func (d *shared) close() error {
	return errors.Join(d.Close(ctx), d.store.Close(), d.server.Stop())
}

// postgresCommitsBeyond returns how many commits a turn with one tool step takes beyond
// the promised number. The promise is 2 + 2n for n tool steps, here 4.
func postgresCommitsBeyond() (beyond float64, err error) {
	d, err := newShared()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	s := d.Session("counted")
	takeTurn(s)
	before := d.store.Stats()
	const n = 10
	for range n {
		takeTurn(s)
	}
	after := d.store.Stats()
	commits, transactions := after.Commits-before.Commits, after.Transactions-before.Transactions
	if transactions != commits {
		return 0, fmt.Errorf("%d commits in %d transactions", commits, transactions)
	}
	return float64(commits)/n - (2 + 2), nil
}

// postgresTurns returns durable turns with one tool and ten hooks. The floor is bare SQL
// that writes the same rows in the same number of transactions.
func postgresTurns() (*pair, error) {
	d, err := newShared()
	if err != nil {
		return nil, err
	}
	s := d.Session("durable")
	takeTurn(s)
	floor, err := newBareServer(d.server)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &pair{ours: turnsOf(s), floor: floor.turns, close: func() error { return errors.Join(floor.Close(ctx), d.close()) }}, nil
}

// speaking is words with a pause before each delta, as a model has it.
type speaking struct{ words }

// Stream implements belay.Model.
func (m speaking) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for chunk, err := range m.words.Stream(ctx, req) {
			time.Sleep(2 * time.Millisecond)
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// turnsWatchedFromAfar returns turns whose deltas reach a watcher with a connection of its own to
// the store, as a server on another machine has one. The floor is turns that nobody watches. A
// turn does not wait for the watcher, which reads the store between turns here, too.
func turnsWatchedFromAfar() (*pair, error) {
	here := belay.NewEvents()
	d, err := newSharedWith(speaking{}, &belay.Options{Events: here})
	if err != nil {
		return nil, err
	}
	there, err := postgres.Open(ctx, d.server.DSN("belay"), nil)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	watching, stop := context.WithCancel(ctx)
	far, arrived := belay.NewEvents(), make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() { here.Share(watching, d.store) }) // these three end when stop is called
	working.Go(func() { far.Share(watching, there) })
	working.Go(func() {
		first := sync.OnceFunc(func() { close(arrived) })
		for e, err := range far.Watch(watching, there, &belay.WatchOptions{Session: "watched", After: "0"}) {
			if err == nil && e.Kind == belay.EventTextDelta {
				first()
			}
		}
	})
	p := &pair{ours: turnsOf(d.Session("watched")), floor: turnsOf(d.Session("alone")), close: func() error {
		stop()
		working.Wait()
		return errors.Join(there.Close(), d.close())
	}}
	late := time.After(30 * time.Second)
	for {
		p.ours(1)
		select {
		case <-arrived:
			return p, nil
		case <-late:
			return nil, errors.Join(errors.New("no delta reaches the watcher"), p.close())
		default:
		}
	}
}

// claimBehind returns the time to claim and release a turn behind 100,000 due turns of an
// agent that the worker does not serve, divided by the time with no other turn.
func claimBehind() (figure float64, err error) {
	behind, err := newClaims(100_000)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, behind.close()) }()
	alone, err := newClaims(0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, alone.close()) }()
	return ratio(behind.claim, alone.claim), nil
}

// newClaims returns a store with one due turn of the agent main. It also has the given
// number of due turns of the agent other.
func newClaims(others int) (*shared, error) {
	d, err := newShared()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*shared, error) { return nil, errors.Join(err, d.close()) }
	conn, err := pgx.Connect(ctx, d.server.DSN("belay"))
	if err != nil {
		return fail(err)
	}
	for _, statement := range []string{
		`INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
			SELECT 'other-' || n, 0, '', 1, 1, 0, 0, 0, 0, '', '' FROM generate_series(1, $1::int) n`,
		`INSERT INTO due_turns (session, agent, model, parked, due, holder, claimed, mark)
			SELECT 'other-' || n, 'other', '', FALSE, n, '', 0, 1 FROM generate_series(1, $1::int) n`,
	} {
		if _, err := conn.Exec(ctx, statement, others); err != nil {
			return fail(errors.Join(err, conn.Close(ctx)))
		}
	}
	_, err = conn.Exec(ctx, "ANALYZE due_turns")
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fail(err)
	}
	turn, err := belay.NewQueuedTurn("own", "main", "go")
	if err == nil {
		err = d.store.Submit(ctx, turn)
	}
	if err != nil {
		return fail(err)
	}
	return d, nil
}

// claim claims the turn and releases it again, n times.
func (d *shared) claim(n int) {
	for range n {
		due, err := d.store.Claim(ctx, belay.TurnFilter{ExceptAgents: []string{"other"}})
		must(err)
		must(d.store.Settle(ctx, due, due.Since))
	}
}

// bareServer writes the rows of a turn again and again, in the same number of transactions.
// Its tables have the same columns and indexes as those of the store.
type bareServer struct {
	*pgx.Conn
	insert map[string]string
	rows   map[string][][]any
	turn   int
}

func newBareServer(server *pgtest.Server) (_ *bareServer, err error) {
	src, err := pgx.Connect(ctx, server.DSN("belay"))
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close(ctx)) }()
	dsn, err := server.Create(ctx, "bare", "template1")
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	own, err := postgres.Open(ctx, dsn, nil) // creates the tables
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := own.Close(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &bareServer{Conn: conn, insert: make(map[string]string), rows: make(map[string][][]any)}
	for _, table := range []string{"sessions", "messages", "calls", "runs", "turn_usage"} {
		if err := r.take(src, table); err != nil {
			return nil, errors.Join(fmt.Errorf("replay %s: %w", table, err), conn.Close(ctx))
		}
	}
	if _, err := r.Exec(ctx, r.insert["sessions"], r.rows["sessions"][0]...); err != nil {
		return nil, errors.Join(fmt.Errorf("replay sessions: %w", err), conn.Close(ctx))
	}
	return r, nil
}

// take reads the rows of a table, and prepares the statement that writes them.
func (r *bareServer) take(src *pgx.Conn, table string) error {
	rows, err := src.Query(ctx, "SELECT * FROM "+table)
	if err != nil {
		return err
	}
	defer rows.Close()
	var columns, marks []string
	for i, field := range rows.FieldDescriptions() {
		columns, marks = append(columns, field.Name), append(marks, fmt.Sprint("$", i+1))
	}
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return err
		}
		r.rows[table] = append(r.rows[table], row)
	}
	r.insert[table] = "INSERT INTO " + table + " (" + strings.Join(columns, ",") + ") VALUES (" + strings.Join(marks, ",") + ")"
	return rows.Err()
}

// turns writes the rows of n turns. Each turn has 4 transactions, and the records are in
// the same transactions as in a real turn.
func (r *bareServer) turns(n int) {
	messages, runs, call, session := r.rows["messages"], r.rows["runs"], r.rows["calls"][0], r.rows["sessions"][0]
	for range n {
		r.turn++
		for i := range 4 {
			tx, err := r.Begin(ctx)
			must(err)
			exec := func(query string, args ...any) {
				_, err := tx.Exec(ctx, query, args...)
				must(err)
			}
			m := append([]any(nil), messages[i]...)
			m[1] = int64(r.turn*4 + i)
			exec(r.insert["messages"], m...)
			if i == 1 {
				c := append([]any(nil), call...)
				c[1] = m[1]
				exec(r.insert["calls"], c...)
			}
			if i == 2 {
				exec("UPDATE calls SET state = 'done', result = $1 WHERE session = $2 AND message = $3 AND idx = 0", call[9], call[0], int64(r.turn*4+1))
			}
			switch usage := append([]any(nil), r.rows["turn_usage"][0]...); i { // the row of the turn is made by the first response
			case 1:
				usage[1] = strconv.Itoa(r.turn)
				exec(r.insert["turn_usage"], usage...)
			case 3:
				exec("UPDATE turn_usage SET tokens_in = tokens_in + 100, tokens_out = tokens_out + 10 WHERE session = $1 AND turn = $2 AND day = $3 AND model = $4", usage[0], strconv.Itoa(r.turn), usage[2], usage[3])
			}
			for k := range runs {
				if k*4/len(runs) != i {
					continue
				}
				run := append([]any(nil), runs[k]...)
				run[0], run[1] = int64(r.turn*len(runs)+k), fmt.Sprint("run-", r.turn, "-", k)
				exec(r.insert["runs"], run...)
			}
			exec("UPDATE sessions SET last = last + 1, changed = $1, turn_state = $2, state = $3 WHERE id = $4 AND epoch = $5", time.Now().UnixNano(), turnState(i), session[10], session[0], session[1])
			must(tx.Commit(ctx))
		}
	}
}
