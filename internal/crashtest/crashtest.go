package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Store is a store under test.
type Store interface {
	belay.JournalStore
	belay.ListStore
	Close() error
}

// Open opens the store in a directory, or creates the store there.
type Open func(ctx context.Context, dir string) (Store, error)

// These environment variables tell a child what to do.
const (
	childDir   = "BELAY_CRASHTEST_DIR"
	childKill  = "BELAY_CRASHTEST_KILL"
	childPart  = "BELAY_CRASHTEST_PART"
	childHooks = "BELAY_CRASHTEST_HOOKS"
)

// patience is the timeout of a child, so that a test cannot hang.
const patience = 3 * time.Minute

// Child runs the child's part and exits, if this process is a child. Otherwise it returns at
// once. Call it first in TestMain.
func Child(open Open) {
	dir := os.Getenv(childDir)
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if role := os.Getenv(childPart); role != "" {
		err = play(ctx, open, dir, role)
	} else if story := os.Getenv(childHooks); story != "" {
		err = playHooks(ctx, open, dir, story)
	} else {
		err = live(ctx, open, dir, os.Getenv(childKill))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process is over
	}
	os.Exit(0)
}

// die kills this process at once, without any cleanup.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the kill ends the process here
}

// live runs or resumes the turn, and then does the background work. kill is the point at
// which the process kills itself.
func live(ctx context.Context, open Open, dir, kill string) error {
	opened, err := open(ctx, dir)
	if err != nil {
		return err
	}
	wire := &tripwire{kill: kill, seen: make(map[string]int)}
	agent, err := cast(dir, &store{opened, wire}, wire)
	if err != nil {
		return err
	}
	if err := tell(ctx, agent, opened); err != nil {
		return err
	}
	if err := work(ctx, agent, opened.Queue()); err != nil {
		return err
	}
	return errors.Join(agent.Close(ctx), opened.Close())
}

// tell runs the turn, or resumes it if it was interrupted. When the turn parks, tell
// approves the call for the whole session. So the turn parks only once.
func tell(ctx context.Context, agent *belay.Agent, inbox belay.ListStore) error {
	s := agent.Session(session)
	for {
		turn, err := belay.Await(s.Resume(ctx))
		if errors.Is(err, belay.ErrNoTurn) {
			for _, err := range s.Messages(ctx) {
				return err // there are messages and no open turn: the story has ended
			}
			turn, err = s.Turn(ctx, "Tell the story.")
		}
		switch {
		case err != nil:
			return fmt.Errorf("the turn: %w", err)
		case turn.Reason == belay.EndTurn:
			return nil
		case turn.Reason != belay.EndParked:
			return fmt.Errorf("the turn ended %s: %s", turn.Reason, turn.Why)
		}
		for a, err := range inbox.Approvals(ctx, belay.ApprovalFilter{Session: session, Pending: true}) {
			if err == nil {
				_, err = agent.Decide(ctx, belay.Decision{
					Approval: a.ID, Hash: a.Hash, Allow: true, Scope: belay.ApprovalScope{Kind: belay.ScopeSession}, By: "ann",
				})
			}
			if err != nil {
				return fmt.Errorf("the decision: %w", err)
			}
		}
	}
}

// work does background work until none is left.
func work(ctx context.Context, agent *belay.Agent, q hook.Queue) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- agent.Hooks().Work(working) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		stats, err := q.(hook.StatQueue).Stats(ctx)
		if err != nil {
			return fmt.Errorf("the queue: %w", err)
		}
		if stats.Waiting+stats.Running == 0 {
			stop()
			return <-ended
		}
		select {
		case err := <-ended:
			return fmt.Errorf("work ended early: %w", err)
		case <-tick.C:
		}
	}
}

// child is a process that has ended.
type child struct {
	points   []string
	messages []*belay.Message // messages whose commit was acknowledged
	runs     []hook.Run       // records whose commit was acknowledged
	killed   bool
}

// start runs a child until it ends.
func start(t testing.TB, dir, kill string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$") //nolint:gosec // the test binary itself
	cmd.Env = append(os.Environ(), childDir+"="+dir, childKill+"="+kill)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	c := &child{}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && kill != "" {
		c.killed = !exit.Exited()
	}
	if err != nil && !c.killed {
		t.Fatalf("the child failed: %v\n%s", err, errs.String())
	}
	scan := bufio.NewScanner(&out)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatalf("the child said %q: %v", scan.Text(), err)
		}
		if l.Point != "" {
			c.points = append(c.points, l.Point)
		}
		c.messages, c.runs = append(c.messages, l.Messages...), append(c.runs, l.Runs...)
	}
	return c
}

// Run tests a store: it kills a process at each point, and another process must finish
// the story. If twice is true, Run also kills the second process after its first commit,
// and a third process must finish the story.
func Run(t *testing.T, open Open, twice bool) {
	t.Helper()
	dir := t.TempDir()
	whole := start(t, dir, "")
	undisturbed := look(t, open, dir)
	undisturbed.check(t, nil, nil)
	for _, point := range whole.points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			first := start(t, dir, point)
			if !first.killed {
				t.Fatalf("the child was not killed at that point: it passed %q", first.points)
			}
			said := *first
			if twice {
				second := start(t, dir, "after a commit #1")
				said.messages, said.runs = append(said.messages, second.messages...), append(said.runs, second.runs...)
			}
			last := start(t, dir, "")
			said.messages, said.runs = append(said.messages, last.messages...), append(said.runs, last.runs...)
			look(t, open, dir).check(t, &said, undisturbed.transcript)
		})
	}
}
