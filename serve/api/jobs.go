package api

import "time"

// ListJobs is the input of listJobs.
type ListJobs struct {
	State   string `json:"state,omitempty" in:"query" enum:"waiting,running,completed,failed,cancelled" jsonschema:"only jobs in this state"`
	Kind    string `json:"kind,omitempty" in:"query" jsonschema:"only jobs of this job handler or this hook"`
	Session string `json:"session,omitempty" in:"query" jsonschema:"only jobs of this session"`
	Limit   int    `json:"limit" in:"query" minimum:"1" maximum:"500" default:"50" jsonschema:"the maximum number of jobs"`
	After   string `json:"after,omitempty" in:"query" pattern:"^[0-9]*$" maxLength:"18" jsonschema:"the field next of the previous page"`
}

// Job is one attempt at a background job, or a job that waits for its next attempt.
type Job struct {
	// ID identifies the attempt. Retry and cancel need it.
	ID string `json:"id"`
	// Job is the same for all attempts. Runs have it in their field job.
	Job string `json:"job" jsonschema:"the same for all attempts; records of runs have it too"`
	// Kind is the job handler, or the hook that runs in the background.
	Kind  string `json:"kind" jsonschema:"the job handler, or the hook that runs in the background"`
	State string `json:"state" jsonschema:"waiting, running, completed, failed or cancelled"`
	// Hook is the hook that scheduled the job, or that runs.
	Hook    string `json:"hook,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Attempt is the number of this attempt, counted from 1. Attempts is the maximum.
	Attempt  int       `json:"attempt" jsonschema:"counted from 1"`
	Attempts int       `json:"attempts" jsonschema:"the maximum number of attempts"`
	Created  time.Time `json:"created"`
	Due      time.Time `json:"due" jsonschema:"the earliest time to run"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// JobList is a page of jobs, the newest first.
type JobList struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty" jsonschema:"pass it as after to get the next page; absent on the last page"`
}
