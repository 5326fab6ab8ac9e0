package hook

import (
	"context"
	"errors"
	"time"
)

// ManageQueue is a Queue whose jobs can be listed, retried and cancelled by a person.
type ManageQueue interface {
	Queue
	// Jobs returns the attempts that match, the newest first. Each attempt at a job is listed
	// by itself.
	Jobs(ctx context.Context, filter JobFilter) ([]StoredJob, error)
	// RetryJob makes a waiting job due now, or makes a new attempt at a job that has failed or
	// was cancelled. It returns the attempt that waits. It returns ErrNotFound if there is no
	// such attempt, and ErrJobState if its state does not allow it.
	RetryJob(ctx context.Context, id string) (StoredJob, error)
	// CancelJob ends a job that waits. It returns ErrNotFound if there is no such attempt, and
	// ErrJobState if the job runs or has ended.
	CancelJob(ctx context.Context, id string) (StoredJob, error)
}

// ErrJobState reports that the state of a job does not allow to retry or to cancel it.
var ErrJobState = errors.New("hook: the state of the job does not allow this")

// JobFilter selects jobs. Every field that is set must match.
type JobFilter struct {
	ID    string
	State JobState
	// Kind is the name of the job handler, or the id of the background subscription.
	Kind    string
	Session string
	// After continues a listing: it is the ID of the last job of the previous page.
	After string
	// Limit is the maximum number of jobs. Defaults to 100.
	Limit int
}

// JobState is the state of an attempt at a job.
type JobState string

// The states of an attempt.
const (
	JobWaiting   JobState = "waiting" // it is due, or will be
	JobRunning   JobState = "running"
	JobCompleted JobState = "completed"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled" // a person has cancelled it, it was interrupted, or another job with its key has succeeded
)

// StoredJob is an attempt at a job, as a queue stores it.
type StoredJob struct {
	// ID identifies the attempt.
	ID string
	// Job is the job. Its Attempt is the number of this attempt, also while it waits.
	Job   Job
	State JobState
	// Created is when the attempt was stored. Due is the earliest time to run. Started and
	// Ended may be zero.
	Created, Due, Started, Ended time.Time
}

// Kind returns the name of the job handler, or the id of the background subscription.
func (s *StoredJob) Kind() string {
	if s.Job.Handler != "" {
		return s.Job.Handler
	}
	return s.Job.Subscription
}
