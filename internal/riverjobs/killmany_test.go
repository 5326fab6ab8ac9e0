package riverjobs_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
)

// victimName is the environment variable with the id of a victim that works until the test
// kills it.
const victimName = "RIVERJOBS_VICTIM_NAME"

// workUntilKilled is the main function of such a victim. It recovers the jobs of earlier
// victims and runs jobs. It prints a line for each attempt that does its work.
func workUntilKilled(file, name string) error {
	db, err := openFile(file)
	if err != nil {
		return err
	}
	queue, err := db.queue(&riverjobs.Options{ID: name})
	if err != nil {
		return err
	}
	if _, err := queue.Recover(context.Background(), func(id string) bool { return id != name }); err != nil {
		return err
	}
	return queue.Work(context.Background(), func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		fmt.Fprintln(os.Stdout, job.ID)
		return ended(job, hook.Completed), time.Time{}
	})
}

// A process with several workers is killed many times at random points. Such a point can be
// inside a claim of River.
//
// SPEC J-04, J-05
func TestKillManyTimes(t *testing.T) {
	t.Parallel()
	const count, lives = 90, 5
	db := newDatabase(t)
	queue := newQueue(t, db, &riverjobs.Options{ID: "survivor"})
	var all []hook.Job
	for i := range count {
		job := testJob(fmt.Sprintf("again-%d", i))
		if i%2 == 1 {
			job.ID, job.Idempotent, job.Retry = fmt.Sprintf("once-%d", i), false, hook.Retry{}
		}
		all = append(all, job)
	}
	enqueue(t, queue, all...)
	performed := make(map[string]int)
	for life := range lives {
		for _, id := range liveUntil(t, db.file, fmt.Sprint("victim-", life), 3+2*life) {
			performed[id]++
		}
	}
	if _, err := queue.Recover(t.Context(), func(id string) bool { return id != "survivor" }); err != nil {
		t.Fatal(err)
	}
	ids := make(chan string, 3*count)
	err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		ids <- job.ID
		return succeed(ctx, job)
	})
	if err != nil {
		t.Error(err)
	}
	close(ids)
	for id := range ids {
		performed[id]++
	}
	states := make(map[string][]string)
	for run := range db.List(t.Context(), hook.Filter{}) {
		states[run.Job] = append(states[run.Job], run.State.String())
	}
	for _, job := range all {
		checkSurvivor(t, job, performed[job.ID], states[job.ID])
	}
	if left := db.texts(t.Context(), "SELECT key FROM keys WHERE NOT done"); len(left) > 0 {
		t.Errorf("the keys %q are held for nothing", left)
	}
}

// checkSurvivor asserts the final state of a job.
func checkSurvivor(t *testing.T, job hook.Job, performed int, states []string) {
	t.Helper()
	successes := strings.Count(strings.Join(states, " "), "completed")
	for _, state := range states {
		if state != "completed" && state != "interrupted" {
			t.Errorf("an attempt at %s is recorded as %s", job.ID, state)
		}
	}
	switch {
	case job.Idempotent && (successes != 1 || performed == 0):
		t.Errorf("%s was performed %d times and recorded as %q, want one success", job.ID, performed, states)
	case !job.Idempotent && (len(states) != 1 || performed > 1):
		t.Errorf("%s was performed %d times and recorded as %q, want one attempt", job.ID, performed, states)
	case performed < successes:
		t.Errorf("%s was performed %d times and recorded as %q", job.ID, performed, states)
	}
}

// liveUntil runs a victim until a number of attempts have done their work, and then kills
// it. It returns the ids of the jobs.
func liveUntil(t *testing.T, file, name string, attempts int) (ids []string) {
	t.Helper()
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimFile+"="+file, victimName+"="+name)
	victim.Stderr = t.Output()
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if ids = append(ids, lines.Text()); len(ids) == attempts {
			if err := victim.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := victim.Wait(); err == nil {
		t.Errorf("%s was not killed", name)
	}
	return ids
}
