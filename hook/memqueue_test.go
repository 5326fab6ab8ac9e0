package hook_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
)

func TestIdleWaitsForWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := hook.NewMemoryQueue(hook.NewMemoryJournal(10), nil)
		idle := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			return q.Idle(ctx) == nil
		}
		if !idle() {
			t.Error("an empty queue is not idle")
		}
		jobs := []hook.Job{{ID: "now", Key: "now"}, {ID: "later", Key: "later", At: time.Now().Add(time.Hour)}}
		if err := q.Enqueue(t.Context(), hook.Run{ID: "asked", State: hook.Completed}, jobs); err != nil {
			t.Fatal(err)
		}
		if idle() {
			t.Error("a queue with a job that is due is idle")
		}
		job, err := q.Claim(t.Context())
		if err != nil || job.ID != "now" {
			t.Fatal(job, err)
		}
		if idle() {
			t.Error("a queue with a running job is idle")
		}
		ended := make(chan error, 1)
		go func() { ended <- q.Idle(t.Context()) }()
		synctest.Wait()
		if err := q.Settle(t.Context(), job, hook.Run{ID: "ran", State: hook.Completed}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestIdleSeesRemovedJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := hook.NewMemoryQueue(hook.NewMemoryJournal(10), nil)
		if err := q.Enqueue(t.Context(), hook.Run{ID: "asked", State: hook.Completed}, []hook.Job{{ID: "a", Key: "a"}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- q.Idle(ctx) }()
		synctest.Wait()
		if !q.Remove(func(hook.Job) bool { return true }) {
			t.Error("the job was not removed")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
