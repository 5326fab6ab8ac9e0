package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// jobs returns the queue of the store.
func (s *Server) jobs() (hook.ManageQueue, error) { //nolint:ireturn // the store says which
	queue, ok := s.store.Queue().(hook.ManageQueue)
	if !ok {
		return nil, errors.New("the store's jobs cannot be listed")
	}
	return queue, nil
}

func listJobs(ctx context.Context, s *Server, _ *request, in *api.ListJobs) (api.JobList, error) {
	out := api.JobList{Jobs: []api.Job{}}
	queue, err := s.jobs()
	if err != nil {
		return out, err
	}
	found, err := queue.Jobs(ctx, hook.JobFilter{State: hook.JobState(in.State), Kind: in.Kind, Session: in.Session, After: in.After, Limit: in.Limit + 1})
	for i := range found {
		if i == in.Limit {
			out.Next = out.Jobs[i-1].ID
			break
		}
		out.Jobs = append(out.Jobs, jobOf(&found[i]))
	}
	return out, err
}

func jobOf(s *hook.StoredJob) api.Job {
	return api.Job{
		ID: s.ID, Job: s.Job.ID, Kind: s.Kind(), State: string(s.State), Hook: s.Job.Subscription, Phase: s.Job.Phase, Session: s.Job.Scope.Session, Turn: s.Job.Scope.Turn, Agent: s.Job.Scope.Agent,
		Attempt: s.Job.Attempt, Attempts: max(s.Job.Retry.Attempts, 1), Created: s.Created, Due: s.Due, Started: s.Started, Ended: s.Ended,
	}
}

type jobIn struct {
	Job string `json:"job" in:"path" required:"true" maxLength:"18" jsonschema:"the field id of the job"`
}

func retryJob(ctx context.Context, s *Server, _ *request, in *jobIn) (api.Job, error) {
	queue, err := s.jobs()
	if err != nil {
		return api.Job{}, err
	}
	job, err := queue.RetryJob(ctx, in.Job)
	return jobOf(&job), jobError(in.Job, err)
}

func cancelJob(ctx context.Context, s *Server, _ *request, in *jobIn) (api.Job, error) {
	queue, err := s.jobs()
	if err != nil {
		return api.Job{}, err
	}
	job, err := queue.CancelJob(ctx, in.Job)
	return jobOf(&job), jobError(in.Job, err)
}

// jobError makes a problem from an error of the queue.
func jobError(id string, err error) error {
	switch {
	case errors.Is(err, hook.ErrNotFound):
		return notFound("job", id)
	case errors.Is(err, hook.ErrJobState):
		return problem(http.StatusConflict, codes.JobState, "%s", strings.TrimSuffix(err.Error(), ": "+hook.ErrJobState.Error()))
	default:
		return err
	}
}
