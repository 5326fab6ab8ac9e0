package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/timeline"
)

// tour holds what the stations of the demo share.
type tour struct {
	w       io.Writer
	rt      *hook.Runtime
	snap    *hook.Snapshot
	journal *hook.MemoryJournal
	queue   *hook.MemoryQueue
	scope   hook.Scope
	err     error
}

// Run takes the tour and writes it to w.
func Run(ctx context.Context, w io.Writer) error {
	journal := hook.NewMemoryJournal(1024)
	queue := hook.NewMemoryQueue(journal, nil)
	rt, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Journal: journal, Queue: queue})
	if err != nil {
		return err
	}
	t := &tour{w: w, rt: rt, journal: journal, queue: queue, scope: hook.Scope{Session: "demo", Turn: "1", Step: 1, Agent: "main"}}
	subs := hooks()
	lease, err := rt.Install(subs...)
	if err != nil {
		return err
	}
	t.snap = rt.Snapshot()
	t.sayf("Belay demo: %d hooks on %d phases. No key, no network; no model yet, so the calls are scripted.",
		len(subs), len(rt.Phases()))

	t.mistake()
	t.collect(ctx)
	t.plan()
	t.block(ctx)
	t.timeOut(ctx)
	t.rewriteResult(ctx)
	t.background(ctx)
	if err := t.snap.Release(ctx); err != nil {
		return err
	}
	t.timeline(ctx)
	if err := lease.Drain(ctx); err != nil {
		return err
	}
	t.sayf("\nThe hooks are gone again: %d subscriptions are left. Next: docs/guide.md.", len(rt.Subscriptions()))
	return t.err
}

// sayf writes a line; the first error is kept for the end.
func (t *tour) sayf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
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
	return err != nil
}

func (t *tour) mistake() {
	t.heading("Mistakes are found when installing, never in a turn")
	_, err := t.rt.Install(
		belay.ToolPre.On("late", noProd, &hook.Options{After: []string{"no-prodd"}}),
		belay.ToolPre.On("slow", noProd, &hook.Options{Execution: hook.Deadline}),
	)
	t.indent(fmt.Sprint(err))
}

func (t *tour) collect(ctx context.Context) {
	t.heading("Collect: contributions are typed and merged by one rule")
	begun, err := belay.TurnPrePolicy.DecodeInput(t.scope, []byte(`{"text": "tidy the changelog"}`))
	if t.failed(err) {
		return
	}
	policy, err := belay.TurnPrePolicy.Dispatch(ctx, t.snap, begun)
	if t.failed(err) {
		return
	}
	limit, _ := maxFiles.Value(policy.Output.Policy)
	t.sayf("  two hooks set demo.max_files to 20 and 3; the key merges by min: %d", limit)

	so := soFar{Text: "tidy the changelog", Policy: policy.Output.Policy}
	in, err := belay.TurnPrePromptContext.DecodeInput(t.scope, so.json())
	if t.failed(err) {
		return
	}
	context, err := belay.TurnPrePromptContext.Dispatch(ctx, t.snap, in)
	if t.failed(err) {
		return
	}
	t.sayf("  two slow look-ups overlap, and merge in plan order whoever is first:")
	for _, e := range context.Output.Entries {
		t.sayf("    %-12s %s", e.From, e.Text)
	}
	so.Context = context.Output.Entries
	if in, err = belay.TurnPrePromptCompile.DecodeInput(t.scope, so.json()); t.failed(err) {
		return
	}
	sections, err := belay.TurnPrePromptCompile.Dispatch(ctx, t.snap, in)
	if t.failed(err) {
		return
	}
	for _, s := range sections.Output.Sections {
		t.sayf("  a later phase sees the policy merged so far: %q", s.Body)
	}
}

// soFar is the wire form of the input of the phases that prepare a turn.
type soFar struct {
	Text    string               `json:"text"`
	Policy  belay.PolicySettings `json:"policy,omitempty"`
	Context []belay.ContextEntry `json:"context,omitempty"`
}

func (s soFar) json() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // the demo's own plain data
	}
	return data
}

func (t *tour) plan() {
	t.heading("Order: rewriters first, then after and before, then priority and id")
	plan, err := t.rt.Plan("tool.pre")
	if !t.failed(err) {
		t.indent(plan.String())
	}
}

// call makes the input of a tool call.
func (t *tour) call(id, tool, input string) belay.ToolCall {
	call, err := belay.ToolPre.DecodeInput(t.scope, fmt.Appendf(nil, `{"id": %q, "tool": %q, "input": %s}`, id, tool, input))
	t.failed(err)
	return call
}

func (t *tour) block(ctx context.Context) {
	t.heading(`Block: the model calls write {"path": "/srv/app/../prod/db.yaml"}`)
	call := t.call("call-1", "write", `{"path": "/srv/app/../prod/db.yaml"}`)
	outcome, err := belay.ToolPre.Dispatch(ctx, t.snap, call)
	if t.failed(err) {
		return
	}
	t.sayf("  %s rewrote the input to %s", strings.Join(outcome.Rewriters, ", "), outcome.Input.Input())
	t.sayf("  %s: %s (by %s)", outcome.Output.Decision, outcome.Output.Reason, outcome.By)
	denied, err := belay.ToolDenied.DecodeInput(t.scope, fmt.Appendf(nil,
		`{"id": "call-1", "tool": "write", "by": %q, "reason": %q}`, outcome.By, outcome.Output.Reason))
	if t.failed(err) {
		return
	}
	_, err = belay.ToolDenied.Dispatch(ctx, t.snap, denied)
	t.failed(err)
	t.sayf("\n  Explain says who was asked, what each said, and who never was:")
	x, err := belay.ToolPre.Explain(ctx, t.snap, call)
	if !t.failed(err) {
		t.indent(x.String())
	}
}

func (t *tour) timeOut(ctx context.Context) {
	t.heading("Time out: a hook that hangs is given up, and its fallback stands")
	outcome, err := belay.ToolPre.Dispatch(ctx, t.snap, t.call("call-2", "write", `{"path": "/srv/app/notes.md"}`))
	if t.failed(err) {
		return
	}
	t.sayf("  %s: %s (by %s)", outcome.Output.Decision, outcome.Output.Reason, outcome.By)
	for _, d := range outcome.Diagnostics {
		t.sayf("  diagnostic: %s", d)
	}
}

func (t *tour) rewriteResult(ctx context.Context) {
	t.heading("Rewrite: a result is redacted before the model sees it")
	result, err := belay.ToolPost.DecodeInput(t.scope,
		[]byte(`{"id": "call-3", "tool": "read", "input": {"path": "env"}, "text": "token = key-4f1a9c"}`))
	if t.failed(err) {
		return
	}
	outcome, err := belay.ToolPost.Dispatch(ctx, t.snap, result)
	if !t.failed(err) {
		t.sayf("  %q became %q", result.Text(), outcome.Input.Text())
	}
}

func (t *tour) background(ctx context.Context) {
	t.heading("Background: work is queued with its record, and a worker takes it")
	ended, err := belay.TurnPostTurn.DecodeInput(t.scope, []byte(`{"reason": "end_turn", "steps": 1, "usage": {"in": 0, "out": 0}}`))
	if t.failed(err) {
		return
	}
	if _, err = belay.TurnPostTurn.Dispatch(ctx, t.snap, ended); t.failed(err) {
		return
	}
	job, err := t.queue.Claim(ctx) // Runtime.Work is this, in a loop
	if t.failed(err) {
		return
	}
	run := t.rt.Perform(ctx, job)
	if t.failed(t.queue.Settle(ctx, job, run, time.Time{})) {
		return
	}
	t.sayf("  attempt %d of %s: %s", run.Attempt, run.Subscription, run.State)
}

func (t *tour) timeline(ctx context.Context) {
	t.heading("Timeline: every run left a record (hashes and codes, never what was said)")
	var runs []hook.Run
	for run, err := range t.journal.List(ctx, hook.Filter{Session: "demo"}) {
		if t.failed(err) {
			return
		}
		runs = append(runs, run)
	}
	t.failed(timeline.Write(t.w, runs))
}
