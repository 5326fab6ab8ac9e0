package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/timeline"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// tour holds what the stations of the demo share.
type tour struct {
	w     io.Writer
	model *scripted.Model
	store *memstore.Store
	agent *belay.Agent
	end   *belay.Turn
	err   error
}

// Run takes the tour and writes it to w.
func Run(ctx context.Context, w io.Writer) error {
	t := &tour{w: w, model: script(), store: memstore.New(nil)}
	if err := t.inScratch(ctx); err != nil {
		return err
	}
	t.sayf("\nThe session is closed and the scratch directory is gone. Next: docs/guide.md.")
	return t.err
}

// inScratch takes the tour in a directory that is there for as long as it lasts.
func (t *tour) inScratch(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "belay-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := fill(root); err != nil {
		return err
	}
	subs := hooks(root)
	t.agent, err = belay.New(t.model, &belay.Options{
		Instructions: "You look after a small project.",
		Tools:        tools(root), Hooks: subs, Store: t.store, Approver: approver{}, SpillDir: dir,
	})
	if err != nil {
		return err
	}
	t.sayf("Belay demo: a session with %d hooks on %d phases and 3 tools, in a scratch directory.", len(subs), len(belay.Phases()))
	t.sayf("No key, no network: the model plays a script. All else is real.")
	for _, station := range []func(context.Context){
		t.mistake, t.turn, t.explain, t.timeOut, t.background, t.transcript, t.timeline,
	} {
		if t.failed(context.Cause(ctx)) {
			break
		}
		station(ctx)
	}
	return errors.Join(t.err, t.agent.Close(context.WithoutCancel(ctx)))
}

// approver stands for a person at the terminal.
type approver struct{}

func (approver) Approve(context.Context, belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: true, By: "you", Reason: "it is only the changelog"}, nil
}

// sayf writes a line; the first error is kept for the end.
func (t *tour) sayf(format string, args ...any) { t.write(fmt.Sprintf(format+"\n", args...)) }

func (t *tour) write(text string) {
	if t.err == nil {
		_, t.err = fmt.Fprint(t.w, text)
	}
}

func (t *tour) heading(text string) { t.sayf("\n== %s", text) }

// indent writes text with two spaces in front of each line.
func (t *tour) indent(text string) {
	t.sayf("  %s", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
}

// failed keeps an error that the tour did not expect.
func (t *tour) failed(err error) bool {
	if err != nil && t.err == nil {
		t.err = err
	}
	return t.err != nil
}

func (t *tour) mistake(context.Context) {
	t.heading("Mistakes are found when installing, never in a turn")
	_, err := t.agent.Hooks().Install(
		belay.ToolPre.On("late", stayInside, &hook.Options{After: []string{"stay-insid"}}),
		belay.ToolPre.On("slow", stayInside, &hook.Options{Execution: hook.Deadline}),
	)
	t.indent(fmt.Sprint(err))
}

// turn takes the turn and tells it as it happens.
func (t *tour) turn(ctx context.Context) {
	t.heading("A turn, as it happens")
	s := &story{tour: t}
	s.line("user", prompt)
	for event, err := range t.agent.Session("demo").Run(ctx, prompt) {
		if t.failed(err) {
			return // leaving the stream ends the turn
		}
		s.tell(&event)
	}
	if t.end == nil || t.end.Reason != belay.EndTurn {
		t.failed(errors.New("demo: the turn did not end as its script does"))
	}
}

// runs are the records of the session's hooks.
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

// explain finds out from the records who denied the write.
func (t *tour) explain(ctx context.Context) {
	t.heading("Why was the write denied? The records tell, long after")
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

// timeOut tells of the hook that hung.
func (t *tour) timeOut(context.Context) {
	t.heading("A hook hung. Its deadline passed, and its fallback had you asked")
	for _, d := range t.end.Diagnostics {
		t.sayf("  diagnostic: %s", d)
	}
}

func (t *tour) background(ctx context.Context) {
	t.heading("Background: work is queued with its record, and a worker takes it")
	queue, ok := t.store.Queue().(hook.ClaimQueue)
	if !ok {
		t.failed(errors.New("demo: the queue has nothing to claim"))
		return
	}
	job, err := queue.Claim(ctx) // hook.Runtime.Work is this, in a loop
	if t.failed(err) {
		return
	}
	run := t.agent.Hooks().Perform(ctx, job)
	if !t.failed(queue.Settle(ctx, job, run, time.Time{})) {
		t.sayf("  attempt %d of %s: %s", run.Attempt, run.Subscription, run.State)
	}
}

// transcript shows what is stored, and what it cost.
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
		t.failed(timeline.Write(t.w, runs))
	}
}
