package main

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// durablePromises are the promises about the SQLite store.
func durablePromises() []promise {
	return []promise{
		{"commits-beyond-2+2n", 0, commitsBeyond},
		{"durable-turn", 1.5, pairRatio(durableTurns)},
		{"audit-chain", 1.05, auditChain},
		{"journal-h100", 1.5, journalHooks},
		{"group-commit", 0.1, groupCommit},
		{"sessions-1000-fair", 0.6, sessionsFair},
		{"last-50-runs", 3, lastRuns},
	}
}

// inTurn returns ten hooks, none of them at the end of the turn. A hook at the end of the
// turn would need one more commit for its records.
func inTurn() []hook.Subscription {
	subs := tenHooks()[:9]
	return append(subs, belay.ToolPre.On("gate-5", noOpinion, nil))
}

// durable is an agent with a SQLite store.
type durable struct {
	*belay.Agent
	store *sqlite.Store
	dir   string
}

func newDurable(subs []hook.Subscription) (*durable, error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	d := &durable{dir: dir}
	if d.store, err = sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	d.Agent, err = belay.New(instant{}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: subs, Store: d.store})
	return d, err
}

func (d *durable) close() error {
	return errors.Join(d.Close(ctx), d.store.Close(), os.RemoveAll(d.dir))
}

// commitsBeyond returns how many commits a turn with one tool step takes beyond the
// promised number. The promise is 2 + 2n for n tool steps, here 4.
func commitsBeyond() (beyond float64, err error) {
	d, err := newDurable(inTurn())
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
		return 0, fmt.Errorf("%d commits in %d transactions, with no other session to share them", commits, transactions)
	}
	return float64(commits)/n - (2 + 2), nil
}

// durableTurns returns durable turns with one tool and ten hooks. The floor is bare SQL
// that writes the same rows in the same number of transactions.
func durableTurns() (*pair, error) {
	d, err := newDurable(inTurn())
	if err != nil {
		return nil, err
	}
	s := d.Session("durable")
	takeTurn(s)
	floor, err := newReplay(d.store.Path(), filepath.Join(d.dir, "bare.db"))
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &pair{ours: turnsOf(s), floor: floor.turns, close: func() error { return errors.Join(floor.Close(), d.close()) }}, nil
}

// turnsOf returns a function that runs turns in a session.
func turnsOf(s *belay.Session) func(n int) {
	return func(n int) {
		for range n {
			takeTurn(s)
		}
	}
}

// replay writes the rows of a turn again and again, in the same number of transactions. Its
// tables have the same columns and indexes as those of the store.
type replay struct {
	*sql.DB
	insert map[string]*sql.Stmt
	update *sql.Stmt
	spend  *sql.Stmt // adds to a row of turn_usage
	number *sql.Stmt // reserves the numbers of hook runs
	rows   map[string][][]any
	turn   int
	chain  *sql.Stmt   // adds entries to the audit chain; nil: there is none
	head   audit.Entry // the last entry
}

func newReplay(from, to string) (*replay, error) {
	r, err := openReplay(from, to, "sessions", "messages", "calls", "runs", "turn_usage")
	if err != nil {
		return nil, err
	}
	if _, err := r.insert["sessions"].ExecContext(ctx, r.rows["sessions"][0]...); err != nil {
		return nil, errors.Join(fmt.Errorf("replay sessions: %w", err), r.Close())
	}
	r.update, err = r.PrepareContext(ctx, "UPDATE sessions SET last = last + 1, changed = ?, turn_state = ?, state = ? WHERE id = ? AND epoch = ?")
	if err == nil {
		r.spend, err = r.PrepareContext(ctx, "UPDATE turn_usage SET tokens_in = tokens_in + ?, tokens_out = tokens_out + ? WHERE session = ? AND turn = ? AND day = ? AND model = ?")
	}
	if err == nil {
		r.number, err = r.PrepareContext(ctx, "UPDATE counters SET value = value + ? WHERE name = 'run'")
	}
	return r, err
}

// openReplay reads the rows of these tables, and prepares to write them into another file.
func openReplay(from, to string, tables ...string) (_ *replay, err error) {
	src, err := sql.Open("sqlite", "file:"+from+"?mode=ro")
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	own, err := sqlite.Open(ctx, to, nil) // creates the tables
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := own.Close(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+to+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	db.SetMaxOpenConns(1)
	r := &replay{DB: db, insert: make(map[string]*sql.Stmt), rows: make(map[string][][]any)}
	for _, table := range tables {
		if err := r.take(src, table); err != nil {
			return nil, errors.Join(fmt.Errorf("replay %s: %w", table, err), db.Close())
		}
	}
	return r, nil
}

// take reads the rows of a table, and prepares the statement that writes them.
func (r *replay) take(src *sql.DB, table string) error {
	rows, err := src.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		if err := rows.Scan(at...); err != nil {
			return err
		}
		r.rows[table] = append(r.rows[table], row)
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(columns)), ",")
	r.insert[table], err = r.PrepareContext(ctx, "INSERT INTO "+table+" ("+strings.Join(columns, ",")+") VALUES ("+marks+")")
	return errors.Join(err, rows.Err())
}

// turns writes the rows of n turns. Each turn has 4 transactions, and the records are in
// the same transactions as in a real turn.
func (r *replay) turns(n int) {
	messages, runs, call := r.rows["messages"], r.rows["runs"], r.rows["calls"][0]
	for range n {
		r.turn++
		for i := range 4 {
			tx, err := r.BeginTx(ctx, nil)
			must(err)
			m := append([]any(nil), messages[i]...)
			m[1] = int64(r.turn*4 + i)
			r.exec(tx, r.insert["messages"], m)
			if i == 1 {
				c := append([]any(nil), call...)
				c[1] = m[1]
				r.exec(tx, r.insert["calls"], c)
			}
			if i == 2 {
				_, err := tx.ExecContext(ctx, "UPDATE calls SET state = 'done', result = ? WHERE session = ? AND message = ? AND idx = 0", call[9], call[0], int64(r.turn*4+1))
				must(err)
			}
			switch usage := append([]any(nil), r.rows["turn_usage"][0]...); i { // the row of the turn is made by the first response
			case 1:
				usage[1] = strconv.Itoa(r.turn)
				r.exec(tx, r.insert["turn_usage"], usage)
			case 3:
				r.exec(tx, r.spend, []any{100, 10, usage[0], strconv.Itoa(r.turn), usage[2], usage[3]})
			}
			var lines []string
			numbered := 0
			for k := range runs {
				if k*4/len(runs) != i {
					continue
				}
				run := append([]any(nil), runs[k]...)
				run[0], run[1] = int64(r.turn*len(runs)+k), fmt.Sprint("run-", r.turn, "-", k)
				r.exec(tx, r.insert["runs"], run)
				if r.chain != nil {
					lines = append(lines, audit.Runs.Line(textsOf(run)))
				}
				numbered++
			}
			if numbered > 0 {
				r.exec(tx, r.number, []any{numbered})
				r.link(tx, lines)
			}
			s := r.rows["sessions"][0]
			r.exec(tx, r.update, []any{time.Now().UnixNano(), turnState(i), s[10], s[0], s[1]})
			must(tx.Commit())
		}
	}
}

// auditChain returns the time of a durable turn divided by the time that it would take without
// the audit chain. The chain of a store cannot be switched off. So the time of the chain is
// measured with bare SQL: the rows of the turn with the hashes and entries that the store makes,
// less the same rows without them.
func auditChain() (figure float64, err error) {
	d, err := newDurable(inTurn())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	s := d.Session("durable")
	takeTurn(s)
	with, err := newReplay(d.store.Path(), filepath.Join(d.dir, "chain.db"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, with.Close()) }()
	without, err := newReplay(d.store.Path(), filepath.Join(d.dir, "bare.db"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, without.Close()) }()
	with.chain, err = with.PrepareContext(ctx, "INSERT INTO audit_chain (seq, lane, idx, time, body, hash) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (seq) DO NOTHING")
	if err != nil {
		return 0, fmt.Errorf("audit chain: %w", err)
	}
	turn, chained, bare := math.Inf(1), math.Inf(1), math.Inf(1)
	for range rounds {
		turn, chained, bare = min(turn, perOp(turnsOf(s))), min(chained, perOp(with.turns)), min(bare, perOp(without.turns))
	}
	return turn / (turn - (chained - bare)), nil
}

// link adds an entry to the audit chain.
func (r *replay) link(tx *sql.Tx, lines []string) {
	if r.chain == nil {
		return
	}
	next := audit.Entry{Seq: r.head.Seq + 1, Idx: r.head.Seq + 1, Time: time.Now().UnixNano(), Body: strings.Join(lines, " ")}
	next.Hash = audit.HashOf(r.head.Hash, &next)
	r.exec(tx, r.chain, []any{next.Seq, next.Lane, next.Idx, next.Time, next.Body, next.Hash})
	r.head = next
}

// textsOf returns the columns of a row as texts.
func textsOf(row []any) []string {
	texts := make([]string, len(row))
	for i, column := range row {
		switch v := column.(type) {
		case string:
			texts[i] = v
		case []byte:
			texts[i] = string(v)
		case int64:
			texts[i] = strconv.FormatInt(v, 10)
		}
	}
	return texts
}

// turnState returns the column turn_state after a commit of a turn. The turn is open until
// its last commit. An index has the sessions with an open turn, so the floor must set it too.
func turnState(commit int) string {
	if commit < 3 {
		return "open"
	}
	return ""
}

func (r *replay) exec(tx *sql.Tx, stmt *sql.Stmt, args []any) {
	_, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	must(err)
}

// groupCommit returns the number of disk flushes per turn when 64 sessions run turns at the
// same time, divided by the number for one session alone.
func groupCommit() (figure float64, err error) {
	d, err := newDurable(inTurn())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	waits := func(sessions, turns int) float64 {
		before := d.store.Stats().Transactions
		var wg sync.WaitGroup
		for i := range sessions {
			s := d.Session(fmt.Sprint("at-once-", i))
			wg.Go(func() {
				for range turns {
					takeTurn(s)
				}
			})
		}
		wg.Wait()
		return float64(d.store.Stats().Transactions-before) / float64(sessions*turns)
	}
	waits(64, 2) // opens the sessions
	alone := waits(1, 20)
	return waits(64, 20) / alone, nil
}

// journalHooks returns the time of a durable turn with one tool and 100 hooks, divided by
// the time of the same turn without hooks. The hooks do nothing, so most of the difference
// is the cost of their records.
func journalHooks() (figure float64, err error) {
	with, err := newDurable(gates(100))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, with.close()) }()
	without, err := newDurable(nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, without.close()) }()
	return ratio(turnsOf(with.Session("journal")), turnsOf(without.Session("journal"))), nil
}

// sessionsFair starts a turn in 1,000 sessions at once. It returns the time until half of
// the turns have ended, divided by the time until all have ended. It is the median of
// several rounds.
func sessionsFair() (figure float64, err error) {
	const sessions = 1000
	d, err := newDurable(inTurn())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	var figures []float64
	for round := range 5 {
		ended, begin := make(chan time.Time, sessions), make(chan struct{})
		for i := range sessions {
			s := d.Session(fmt.Sprint("fair-", round, "-", i))
			go func() { // ends with the turn
				<-begin
				takeTurn(s)
				ended <- time.Now()
			}()
		}
		start := time.Now()
		close(begin)
		took := make([]float64, sessions)
		for i := range took {
			took[i] = (<-ended).Sub(start).Seconds()
		}
		slices.Sort(took)
		figures = append(figures, took[sessions/2]/took[sessions-1])
	}
	return median(figures), nil
}

// lastRuns returns the time to list the last 50 of a million runs, divided by the time to
// list the last 50 of ten thousand runs.
func lastRuns() (figure float64, err error) {
	few, err := newDurable(nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, few.close()) }()
	many, err := newDurable(nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, many.close()) }()
	if err := errors.Join(few.fill(10_000), many.fill(1_000_000)); err != nil {
		return 0, err
	}
	return ratio(many.list, few.list), nil
}

// fill stores n records directly with SQL.
func (d *durable) fill(n int) (err error) {
	takeTurn(d.Session("one")) // creates the session; without hooks there are no records
	must(d.store.Journal().Append(ctx, []hook.Run{{
		ID: "first", Phase: "tool.pre", Subscription: "gate", State: hook.Completed, Started: time.Now(), Ended: time.Now(), Scope: hook.Scope{Session: "one", Turn: "1"},
	}}))
	db, err := sql.Open("sqlite", "file:"+d.store.Path()+"?_pragma=synchronous(off)&_pragma=busy_timeout(60000)")
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	columns, err := columnsOf(db, "runs")
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	values := strings.Join(columns, ",")
	picked := strings.NewReplacer("seq,id,", "seq + n, 'run-' || n, ", "started,", "started + n * 1000000, ").Replace(values)
	_, err = db.ExecContext(ctx, "WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < ?) INSERT INTO runs ("+values+") SELECT "+picked+" FROM number, (SELECT * FROM runs WHERE id = 'first')", n)
	if err == nil {
		_, err = db.ExecContext(ctx, "UPDATE counters SET value = value + ? WHERE name = 'run'", n)
	}
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}

func columnsOf(db *sql.DB, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	return columns, errors.Join(err, rows.Err())
}

// list lists the last 50 runs, n times.
func (d *durable) list(n int) {
	for range n {
		found := 0
		for _, err := range d.store.Journal().(hook.ListJournal).List(ctx, hook.Filter{Newest: true, Limit: 50}) {
			must(err)
			found++
		}
		if found != 50 {
			panic(fmt.Sprintf("bench: a listing of 50 runs has %d", found))
		}
	}
}
