package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/timeline"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// Options add to the tour what takes long to compile.
type Options struct {
	// Open opens the store of the tour, which must survive the kill of a process. Without
	// it the store is in memory, and no process is killed.
	Open func(ctx context.Context, path string) (Store, error)
	// Spaces is the part about hooks in files. It writes with t.Sayf, and calls t.Failed
	// with its errors.
	Spaces func(ctx context.Context, t *Tour)
}

// Store is the store of a tour.
type Store interface {
	belay.JournalStore
	// StillOpen returns how many sessions had an open turn when the store was opened.
	StillOpen() int
	Close() error
}

// inMemory is the store of a tour without Options.Open.
type inMemory struct{ *memstore.Store }

func (inMemory) StillOpen() int { return 0 }
func (inMemory) Close() error   { return nil }

// Tour holds the state that all parts of the tour share.
type Tour struct {
	opts  Options
	w     io.Writer
	dir   string
	root  *os.Root
	model *scripted.Model
	store Store
	agent *belay.Agent
	end   *belay.Turn
	cutAt time.Time // when the first process was killed
	err   error

	recording *Recording // nil unless Record was called
}

// Run runs the tour and writes it to w. With Options.Open it starts the same program a
// second time, with the command `demo`. That second process runs a part of the tour and is
// killed.
func Run(ctx context.Context, w io.Writer, opts Options) error {
	t := &Tour{opts: opts, w: w}
	if dir := os.Getenv(victimDir); dir != "" && t.kills() {
		return t.beVictim(ctx, dir)
	}
	if err := t.inScratch(ctx); err != nil {
		return err
	}
	next := "docs/guide.md"
	if !t.kills() {
		next = "go run ./cmd/belay demo shows the same on SQLite, kills the process in the middle of the turn, and loads hooks from files"
	}
	t.Sayf("\nThe session is closed and the scratch directory is gone. Next: %s.", next)
	return t.err
}

// kills reports whether the tour kills a process.
func (t *Tour) kills() bool { return t.opts.Open != nil }

// inScratch runs the tour in a temporary directory.
func (t *Tour) inScratch(ctx context.Context) (err error) {
	t.dir, err = os.MkdirTemp("", "belay-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(t.dir)) }()
	defer func() { err = errors.Join(err, t.leave(context.WithoutCancel(ctx))) }()
	if err := fill(t.dir); err != nil {
		return err
	}
	used := make(map[string]bool)
	for _, h := range hooks(nil) {
		used[h.Phase().Name()] = true
	}
	t.Sayf("Belay demo: a session with %d hooks on %d of the %d phases, and 3 tools, in a scratch directory.", len(hooks(nil)), len(used), len(belay.Phases()))
	genuine := "hooks, files, the permission check, the sandbox"
	turn := t.whole
	if t.kills() {
		genuine = "SQLite, files, processes, a kill"
		turn = t.killed
	}
	t.Sayf("No key, no network: the model plays a script, and so does the person who is asked. Everything else is real: %s.", genuine)
	for _, station := range []func(context.Context){
		t.mistake, turn, t.explain, t.timeOut, t.floor, t.spaces, t.family, t.background, t.transcript, t.timeline, t.keep,
	} {
		if t.Failed(context.Cause(ctx)) {
			break
		}
		station(ctx)
	}
	return t.err
}

// enter opens the project and its store, and makes the agent. played is how many steps of
// the script the model skips.
func (t *Tour) enter(ctx context.Context, played int, cut *scissors) (err error) {
	t.model = script(played, t.kills())
	if t.root, err = os.OpenRoot(filepath.Join(t.dir, "project")); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	t.store = inMemory{memstore.New(nil)}
	if t.opts.Open != nil {
		if t.store, err = t.opts.Open(ctx, filepath.Join(t.dir, "belay.db")); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	floor, err := newFloor(t.dir, false)
	if err != nil {
		return err
	}
	t.agent, err = belay.New(t.model, &belay.Options{
		Instructions: "You look after a small project.", Authorizer: floor,
		Tools: tools(t.root, cut), Hooks: hooks(t.root), Store: t.store, Approver: approver{}, SpillDir: t.dir,
	})
	return err
}

// leave closes the agent, the store and the project.
func (t *Tour) leave(ctx context.Context) error {
	var errs []error
	if t.agent != nil {
		errs = append(errs, t.agent.Close(ctx))
	}
	if t.store != nil {
		errs = append(errs, t.store.Close())
	}
	if t.root != nil {
		errs = append(errs, t.root.Close())
	}
	return errors.Join(errs...)
}

// approver answers in place of a person.
type approver struct{}

func (approver) Approve(context.Context, belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: true, By: "the demo's person", Reason: "it is only the changelog"}, nil
}

// Sayf writes a line. write keeps the first error.
func (t *Tour) Sayf(format string, args ...any) { t.write(fmt.Sprintf(format+"\n", args...)) }

func (t *Tour) write(text string) {
	if t.err == nil {
		_, t.err = fmt.Fprint(t.w, text)
	}
}

// Heading writes a heading.
func (t *Tour) Heading(text string) { t.Sayf("\n== %s", text) }

// Dir returns the temporary directory of the tour.
func (t *Tour) Dir() string { return t.dir }

// indent writes a text with two spaces before each line.
func (t *Tour) indent(text string) {
	t.Sayf("  %s", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
}

// Failed stores the first error. It reports whether there was one.
func (t *Tour) Failed(err error) bool {
	if err != nil && t.err == nil {
		t.err = err
	}
	return t.err != nil
}

func (t *Tour) mistake(ctx context.Context) {
	t.Heading("Mistakes in hooks are found when they are installed, never during a turn")
	agent, err := belay.New(script(0, false), &belay.Options{Hooks: []hook.Subscription{belay.ToolPre.On("stay-inside", stayInside, nil)}})
	if t.Failed(err) {
		return
	}
	_, err = agent.Hooks().Install(
		belay.ToolPre.On("late", stayInside, &hook.Options{After: []string{"stay-insid"}}),
		belay.ToolPre.On("slow", stayInside, &hook.Options{Execution: hook.Deadline}),
	)
	t.indent(fmt.Sprint(err))
	t.Failed(agent.Close(ctx))
}

// tell prints the events of a turn as they happen.
func (t *Tour) tell(s *story, events iter.Seq2[belay.Event, error], heed func(*belay.Event)) {
	for event, err := range events {
		if t.Failed(err) {
			return // leaving the loop aborts the turn
		}
		s.tell(&event)
		heed(&event)
	}
}

// whole runs the turn in this process.
func (t *Tour) whole(ctx context.Context) {
	t.Heading("A turn, as it happens")
	if t.Failed(t.enter(ctx, 0, nil)) {
		return
	}
	s := &story{Tour: t}
	s.line("user", prompt)
	t.tell(s, t.agent.Session("demo").Run(ctx, prompt), func(*belay.Event) {})
	t.wantEnd()
}

// killed runs the turn in a second process, kills that process, and resumes the turn.
func (t *Tour) killed(ctx context.Context) {
	t.turn(ctx)
	if t.err == nil {
		t.resume(ctx)
	}
}

// wantEnd fails if the turn did not end as its script does.
func (t *Tour) wantEnd() {
	if t.err == nil && (t.end == nil || t.end.Reason != belay.EndTurn) {
		t.Failed(errors.New("demo: the turn did not end as its script does"))
	}
}

func (t *Tour) spaces(ctx context.Context) {
	if t.opts.Spaces != nil {
		t.opts.Spaces(ctx, t)
	}
}

// resume opens the store of the killed process, and resumes its turn.
func (t *Tour) resume(ctx context.Context) {
	t.Heading("Another process opens the same file and continues the turn")
	if t.Failed(t.enter(ctx, stepsBeforeTheKill, nil)) {
		return
	}
	for range t.store.StillOpen() {
		t.Sayf("  recovered the session of the killed process is free again; its turn is still open")
	}
	t.tell(&story{Tour: t}, t.agent.Session("demo").Resume(ctx), func(*belay.Event) {})
	t.wantEnd()
}

// runs returns the records of the session's hooks.
func (t *Tour) runs(ctx context.Context) []hook.Run {
	var runs []hook.Run
	journal, ok := t.store.Journal().(hook.ListJournal)
	if !ok {
		t.Failed(errors.New("demo: the journal cannot be listed"))
		return nil
	}
	for run, err := range journal.List(ctx, hook.Filter{Session: "demo"}) {
		if t.Failed(err) {
			return nil
		}
		runs = append(runs, run)
	}
	return runs
}

// explain prints the record that says who denied the write.
func (t *Tour) explain(ctx context.Context) {
	t.Heading("Why was the write denied? The records say why, even later")
	plan, err := t.agent.Hooks().Plan("tool.pre")
	if t.Failed(err) {
		return
	}
	for _, x := range hook.ExplainRuns(plan, t.runs(ctx)) {
		if x.Won == "stay-inside" {
			t.indent(x.String())
		}
	}
}

// timeOut prints the hook that hung.
func (t *Tour) timeOut(ctx context.Context) {
	t.Heading("A hook hung. Its timeout passed, and its fallback asked a person")
	for _, run := range t.runs(ctx) {
		if run.State != hook.TimedOut {
			continue
		}
		for _, d := range run.Diagnostics {
			t.Sayf("  %s at %s: %s: %s", run.Subscription, run.Phase, d.Code, d.Message)
		}
	}
}

// background runs background jobs until the queue is empty.
func (t *Tour) background(ctx context.Context) {
	t.Heading("Background: work is queued with its record, and a worker takes it")
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- t.agent.Hooks().Work(working) }()
	for t.err == nil {
		stats, err := t.store.Queue().(hook.StatQueue).Stats(ctx)
		if t.Failed(err) || stats.Waiting+stats.Running == 0 {
			break
		}
		t.Failed(pause(ctx, 10*time.Millisecond))
	}
	stop()
	if t.Failed(<-ended) {
		return
	}
	for _, run := range t.runs(ctx) {
		if run.Attempt > 0 {
			t.Sayf("  attempt %d of %s: %s", run.Attempt, run.Subscription, run.State)
		}
	}
}

// transcript prints the stored messages and the cost.
func (t *Tour) transcript(ctx context.Context) {
	t.Heading("Transcript: what was said, by whom, and what the model saw of it")
	for m, err := range t.agent.Session("demo").Messages(ctx) {
		if t.Failed(err) {
			return
		}
		t.Sayf("  %2d  %-10s  %s", m.Seq, m.Kind, gist(m))
	}
	u := t.agent.Session("demo").Usage()
	t.Sayf("  %d steps: %d tokens in, %d from the cache, %d out: $%.4f", t.end.Steps, u.In, u.CacheRead, u.Out, u.Cost)
}

func (t *Tour) timeline(ctx context.Context) {
	t.Heading("Timeline: every hook left a record (hashes and codes, never what was said)")
	runs := t.runs(ctx)
	if t.err == nil {
		var marks []timeline.Mark
		if t.kills() {
			marks = []timeline.Mark{{At: t.cutAt, Text: "here the process was killed; another one continues"}}
		}
		t.Failed(timeline.Write(t.w, runs, marks...))
	}
}
