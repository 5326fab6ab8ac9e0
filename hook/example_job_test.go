package hook_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/hook"
)

// stored is the answer of handlers that observe uploads. It can contribute jobs.
type stored struct{ Jobs []hook.Job }

func (s stored) Answer() *hook.Answer { return &hook.Answer{Jobs: s.Jobs} }

var afterUpload = hook.Define(hook.Definition[upload, stored]{
	Name: "upload.after", Kind: hook.Observe, Capabilities: hook.CanSchedule,
})

// A handler returns a job for work that should happen later. The job is stored together
// with the record of the run that scheduled it, and a worker runs the job.
func Example_job() {
	ctx, stop := context.WithCancel(context.Background())
	// docs:begin job
	journal := hook.NewMemoryJournal(1024)
	queue := hook.NewMemoryQueue(journal, nil)
	runtime, err := hook.NewRuntime([]hook.AnyPhase{afterUpload}, &hook.RuntimeOptions{Journal: journal, Queue: queue})
	check(err)

	_, err = runtime.Install(afterUpload.On("thumbnails", func(_ context.Context, file upload) (stored, error) {
		return stored{Jobs: []hook.Job{{Handler: "shrink", Reference: "uploads/" + file.name, Key: "shrink:" + file.name}}}, nil
	}, nil))
	check(err)

	shrunk := make(chan string)
	_, err = runtime.InstallJobs(hook.JobHandler{
		Name: "shrink", Idempotent: true, Retry: hook.Retry{Attempts: 3},
		Run: func(_ context.Context, job hook.Job) ([]hook.Audit, error) {
			shrunk <- job.Reference
			return []hook.Audit{{Code: "shrunk"}}, nil
		},
	})
	check(err)

	worker := make(chan error)
	go func() { worker <- runtime.Work(ctx) }()

	turn := runtime.Snapshot()
	_, err = afterUpload.Dispatch(ctx, turn, upload{name: "cat.png"})
	check(err)
	check(turn.Release(ctx))
	fmt.Println("shrunk", <-shrunk)
	// docs:end job
	stop()
	check(<-worker)
	// Output:
	// shrunk uploads/cat.png
}
