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
	"github.com/belay-run/belay/store/sqlite"
)

// tour holds the state that all parts of the demo share.
type tour struct {
	w     io.Writer
	dir   string
	root  *os.Root
	model *scripted.Model
	store *sqlite.Store
	agent *belay.Agent
	end   *belay.Turn
	cutAt time.Time // when the first process was killed
	err   error

	recording *Recording // nil unless Record was called
}

// Run runs the tour and writes it to w. It starts the same program a second time, with the
// command `demo`. That second process runs a part of the tour and is killed.
func Run(ctx context.Context, w io.Writer) error {
	t := &tour{w: w}
	if dir := os.Getenv(victimDir); dir != "" {
		return t.beVictim(ctx, dir)
	}
	if err := t.inScratch(ctx); err != nil {
		return err
	}
	t.sayf("\nThe session is closed and the scratch directory is gone. Next: docs/guide.md.")
	return t.err
}

// inScratch runs the tour in a temporary directory.
func (t *tour) inScratch(ctx context.Context) (err error) {
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
	t.sayf("Belay demo: a session with %d hooks on %d of the %d phases, and 3 tools, in a scratch directory.", len(hooks(nil)), len(used), len(belay.Phases()))
	t.sayf("No key, no network: the model plays a script, and so does the person who is asked. Everything else is real: SQLite, files, processes, a kill.")
	for _, station := range []func(context.Context){
		t.mistake, t.turn, t.resume, t.explain, t.timeOut, t.floor, t.spaces, t.family, t.background, t.transcript, t.timeline, t.keep,
	} {
		if t.failed(context.Cause(ctx)) {
			break
		}
		station(ctx)
	}
	return t.err
}

// enter opens the project and its store, and makes the agent. played is how many steps of
// the script the model skips.
func (t *tour) enter(ctx context.Context, played int, cut *scissors) (err error) {
	t.model = script(played)
	if t.root, err = os.OpenRoot(filepath.Join(t.dir, "project")); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if t.store, err = sqlite.Open(ctx, filepath.Join(t.dir, "belay.db"), nil); err != nil {
		return fmt.Errorf("demo: %w", err)
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
func (t *tour) leave(ctx context.Context) error {
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

// sayf writes a line. write keeps the first error.
func (t *tour) sayf(format string, args ...any) { t.write(fmt.Sprintf(format+"\n", args...)) }

func (t *tour) write(text string) {
	if t.err == nil {
		_, t.err = fmt.Fprint(t.w, text)
	}
}

func (t *tour) heading(text string) { t.sayf("\n== %s", text) }

// indent writes a text with two spaces before each line.
func (t *tour) indent(text string) {
	t.sayf("  %s", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
}

// failed stores the first error. It reports whether there was one.
func (t *tour) failed(err error) bool {
	if err != nil && t.err == nil {
		t.err = err
	}
	return t.err != nil
}

func (t *tour) mistake(ctx context.Context) {
	t.heading("Mistakes in hooks are found when they are installed, never during a turn")
	agent, err := belay.New(script(0), &belay.Options{Hooks: []hook.Subscription{belay.ToolPre.On("stay-inside", stayInside, nil)}})
	if t.failed(err) {
		return
	}
	_, err = agent.Hooks().Install(
		belay.ToolPre.On("late", stayInside, &hook.Options{After: []string{"stay-insid"}}),
		belay.ToolPre.On("slow", stayInside, &hook.Options{Execution: hook.Deadline}),
	)
	t.indent(fmt.Sprint(err))
	t.failed(agent.Close(ctx))
}

// tell prints the events of a turn as they happen.
func (t *tour) tell(s *story, events iter.Seq2[belay.Event, error], heed func(*belay.Event)) {
	for event, err := range events {
		if t.failed(err) {
			return // leaving the loop aborts the turn
		}
		s.tell(&event)
		heed(&event)
	}
}

// resume opens the store of the killed process, and resumes its turn.
func (t *tour) resume(ctx context.Context) {
	t.heading("Another process opens the same file and continues the turn")
	if t.failed(t.enter(ctx, stepsBeforeTheKill, nil)) {
		return
	}
	for range t.store.Recovery().Open {
		t.sayf("  recovered the session of the killed process is free again; its turn is still open")
	}
	t.tell(&story{tour: t}, t.agent.Session("demo").Resume(ctx), func(*belay.Event) {})
	if t.err == nil && (t.end == nil || t.end.Reason != belay.EndTurn) {
		t.failed(errors.New("demo: the turn did not end as its script does"))
	}
}

// runs returns the records of the session's hooks.
func (t *tour) runs(ctx context.Context) []hook.Run {
	var runs []hook.Run
	journal, ok := t.store.Journal().(hook.ListJournal)
	if !ok {
		t.failed(errors.New("demo: the journal cannot be listed"))
		return nil
	}
	for run, err := range journal.List(ctx, hook.Filter{Session: "demo"}) {
		if t.failed(err) {
			return nil
		}
		runs = append(runs, run)
	}
	return runs
}

// explain prints the record that says who denied the write.
func (t *tour) explain(ctx context.Context) {
	t.heading("Why was the write denied? The records say why, even later")
	plan, err := t.agent.Hooks().Plan("tool.pre")
	if t.failed(err) {
		return
	}
	for _, x := range hook.ExplainRuns(plan, t.runs(ctx)) {
		if x.Won == "stay-inside" {
			t.indent(x.String())
		}
	}
}

// timeOut prints the hook that hung.
func (t *tour) timeOut(ctx context.Context) {
	t.heading("A hook hung. Its timeout passed, and its fallback asked a person")
	for _, run := range t.runs(ctx) {
		if run.State != hook.TimedOut {
			continue
		}
		for _, d := range run.Diagnostics {
			t.sayf("  %s at %s: %s: %s", run.Subscription, run.Phase, d.Code, d.Message)
		}
	}
}

// background runs background jobs until the queue is empty.
func (t *tour) background(ctx context.Context) {
	t.heading("Background: work is queued with its record, and a worker takes it")
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- t.agent.Hooks().Work(working) }()
	for t.err == nil {
		stats, err := t.store.Queue().(hook.StatQueue).Stats(ctx)
		if t.failed(err) || stats.Waiting+stats.Running == 0 {
			break
		}
		t.failed(pause(ctx, 10*time.Millisecond))
	}
	stop()
	if t.failed(<-ended) {
		return
	}
	for _, run := range t.runs(ctx) {
		if run.Attempt > 0 {
			t.sayf("  attempt %d of %s: %s", run.Attempt, run.Subscription, run.State)
		}
	}
}

// transcript prints the stored messages and the cost.
func (t *tour) transcript(ctx context.Context) {
	t.heading("Transcript: what was said, by whom, and what the model saw of it")
	for m, err := range t.agent.Session("demo").Messages(ctx) {
		if t.failed(err) {
			return
		}
		t.sayf("  %2d  %-10s  %s", m.Seq, m.Kind, gist(m))
	}
	u := t.agent.Session("demo").Usage()
	t.sayf("  %d steps: %d tokens in, %d from the cache, %d out: $%.4f", t.end.Steps, u.In, u.CacheRead, u.Out, u.Cost)
}

func (t *tour) timeline(ctx context.Context) {
	t.heading("Timeline: every hook left a record (hashes and codes, never what was said)")
	runs := t.runs(ctx)
	if t.err == nil {
		t.failed(timeline.Write(t.w, runs, timeline.Mark{At: t.cutAt, Text: "here the process was killed; another one continues"}))
	}
}
