//go:build unix

package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// RunHooks kills a process while hooks of every kind and execution are running, once for
// each phase. After a restart, the journal must have a record of each hook that began,
// with the state interrupted. Then RunHooks resumes the turn. If a hook runs again, its
// new record must have attempt 2.
//
// Hooks that can run at the same time run together, so that one kill is enough for all of
// them. A hook that blocks the turn runs alone. If all is true, each phase is tested with
// every kind of blocking hook, otherwise with one kind.
func RunHooks(t *testing.T, open Open, phases []hook.AnyPhase, all bool) {
	t.Helper()
	for i, phase := range phases {
		blocking := outsideKinds
		if !all {
			blocking = outsideKinds[i%len(outsideKinds):][:1]
		}
		for _, kind := range append([]hook.HandlerKind{""}, blocking...) {
			name := "blocking " + string(kind)
			if kind == "" {
				name = "at once"
			}
			t.Run(phase.Name()+" "+name, func(t *testing.T) {
				t.Parallel()
				runHookStory(t, open, hookStory{Phase: phase.Name(), Blocking: kind})
			})
		}
	}
}

// again lists the phases that fire again when a turn that was interrupted there is
// resumed. The other phases do not fire again: they fire before the message is stored (so
// that there is no turn to resume), outside of turns, or only once.
var again = []hook.AnyPhase{
	belay.ModelPre, belay.ToolPre, belay.ApprovalRequest, belay.ToolPost, belay.ToolDenied, belay.TurnStop, belay.TurnPreCompaction, belay.TurnPostTurn, belay.Error,
}

func runHookStory(t *testing.T, open Open, story hookStory) {
	t.Helper()
	dir := t.TempDir()
	hall := newHall(t, dir)
	story.URL = hall.server.URL
	if err := story.write(dir); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]storyHook)
	for _, h := range story.hooks() {
		want[h.id] = h
	}
	kill := startInside(t, dir, story, hall, want)
	checkBegun(t, openFor(t, open, dir), story.Phase, want, hook.Started) // another process that opens the store does not change the records of a running process
	kill()

	opened := openFor(t, open, dir) // opening the store is what the next process does first
	first := checkBegun(t, opened, story.Phase, want, hook.Interrupted)
	for run, err := range opened.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{States: []hook.State{hook.Started}}) {
		t.Errorf("after a restart this run is started: %+v, %v", run, err)
	}
	hall.open(t)
	resumeHooks(t, opened, dir, story)
	checkAttempts(t, opened, story.Phase, want, first)
}

// openFor opens a store and closes it when the test ends.
func openFor(t *testing.T, open Open, dir string) Store {
	t.Helper()
	s, err := open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// startInside starts a process and waits until all its hooks have begun.
func startInside(t *testing.T, dir string, story hookStory, hall *hall, want map[string]storyHook) (kill func()) {
	t.Helper()
	text, err := json.Marshal(story)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$") //nolint:gosec // the test binary itself
	cmd.Env = append(os.Environ(), childDir+"="+dir, childHooks+"="+string(text))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends when the process ends
	inside := make(map[string]bool)
	for len(inside) < len(want) {
		select {
		case id := <-hall.inside:
			inside[id] = true
		case err := <-ended: // the process ended too early
			t.Fatalf("the child ended when these were inside: %q: %v\n%s", slices.Sorted(maps.Keys(inside)), err, errs.String())
		}
	}
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-ended // the error only says that the process was killed
	}
}

// checkBegun asserts that each hook that has begun has one record, of its first attempt and
// in the given state. It returns the records.
func checkBegun(t *testing.T, s Store, phase string, want map[string]storyHook, state hook.State) map[string]hook.Run {
	t.Helper()
	found := make(map[string]hook.Run)
	for _, run := range runsAt(t, s, phase) {
		h, ok := want[run.Subscription]
		if !ok || run.State == hook.Backgrounded {
			continue
		}
		if run.State != state || run.Attempt != 1 || run.Execution != h.execution || run.Scope.Session != session || (run.Key == "") != (run.Scope.Turn == "" && run.Job == "") {
			t.Errorf("%s is inside, and its record is %+v, want it %s", h.id, run, state)
		}
		if state == hook.Interrupted && run.Ended.Before(run.Started) {
			t.Errorf("%s began at %s and was interrupted at %s", h.id, run.Started, run.Ended)
		}
		if other, twice := found[h.id]; twice {
			t.Errorf("%s is inside once, and has two records: %+v and %+v", h.id, other, run)
		}
		found[h.id] = run
	}
	for id := range want {
		if _, ok := found[id]; !ok {
			t.Errorf("%s is inside, and has no record", id)
		}
	}
	return found
}

// checkAttempts asserts that a hook that ran again has the next attempt number.
func checkAttempts(t *testing.T, s Store, phase string, want map[string]storyHook, first map[string]hook.Run) {
	t.Helper()
	second := make(map[string]int)
	for _, run := range runsAt(t, s, phase) {
		before, ok := first[run.Subscription]
		if !ok || run.ID == before.ID || run.State == hook.Backgrounded {
			continue
		}
		if run.State != hook.Completed {
			t.Errorf("the hook ran again as %+v", run)
		}
		attempt := 1
		if run.Job != "" && run.Job == before.Job || run.Job == "" && run.Scope.Turn != "" && run.Scope == before.Scope {
			attempt = 2
			second[run.Subscription]++
		}
		if run.Attempt != attempt {
			t.Errorf("the hook was killed as %+v\nand ran again as %+v, want attempt %d", before, run, attempt)
		}
	}
	fires := slices.ContainsFunc(again, func(p hook.AnyPhase) bool { return p.Name() == phase })
	for id, h := range want {
		if (fires || h.execution == hook.Background) && second[id] != 1 {
			t.Errorf("%s has %d second attempts, want one", id, second[id])
		}
	}
}

func runsAt(t *testing.T, s Store, phase string) (all []hook.Run) {
	t.Helper()
	for run, err := range s.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{Phase: phase}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, run)
	}
	return all
}

// resumeHooks resumes the turn in this process and does the remaining work. If the first
// process had not stored the turn, it starts a new turn.
func resumeHooks(t *testing.T, s Store, dir string, story hookStory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stage, err := story.cast(dir, s, func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stage.take(ctx), stage.Hooks().Drain(ctx), work(ctx, stage.Agent, s.Queue()), stage.close(ctx)); err != nil {
		t.Fatal(err)
	}
}

// hall keeps the hooks of a process waiting until they are released.
type hall struct {
	inside chan string // ids of the hooks that have begun
	gate   *os.File
	leave  func() // releases the webhooks
	server *httptest.Server
}

func newHall(t *testing.T, dir string) *hall {
	t.Helper()
	left := make(chan struct{})
	h := &hall{inside: make(chan string, 100), leave: sync.OnceFunc(func() { close(left) })}
	for _, name := range []string{insideFile, gateFile} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe, err := os.OpenFile(filepath.Join(dir, insideFile), os.O_RDWR, 0) // opened for reading and writing, so that the pipe never reports its end
	if err == nil {
		h.gate, err = os.OpenFile(filepath.Join(dir, gateFile), os.O_RDWR, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { // ends when the pipe is closed
		defer close(read)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			h.inside <- lines.Text()
		}
	}()
	h.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.inside <- strings.TrimPrefix(r.URL.Path, "/")
		<-left
	}))
	t.Cleanup(func() {
		h.leave()
		h.server.Close()
		if err := errors.Join(pipe.Close(), h.gate.Close()); err != nil {
			t.Error(err)
		}
		<-read
	})
	return h
}

// open releases all hooks: hooks of the killed process, and hooks that begin later.
func (h *hall) open(t *testing.T) {
	t.Helper()
	h.leave()
	if _, err := fmt.Fprint(h.gate, strings.Repeat("\n", 100)); err != nil {
		t.Fatal(err)
	}
}
