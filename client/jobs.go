package client

import (
	"context"

	"github.com/belay-run/belay/serve/api"
)

// ListJobs returns one page of the background jobs, the newest first.
func (c *Client) ListJobs(ctx context.Context, in api.ListJobs) (api.JobList, error) {
	return call[api.JobList](ctx, c, "GET", "/v1/jobs", in)
}

// RetryJob runs a job now that waits, has failed or was cancelled. It returns the new attempt.
func (c *Client) RetryJob(ctx context.Context, job string) (api.Job, error) {
	return at[api.Job](ctx, c, "POST", "/v1/jobs/", job, "/retry")
}

// CancelJob cancels a job that waits.
func (c *Client) CancelJob(ctx context.Context, job string) (api.Job, error) {
	return at[api.Job](ctx, c, "POST", "/v1/jobs/", job, "/cancel")
}
