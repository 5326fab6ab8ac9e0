package client

import (
	"context"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// ListRuns lists the records of hook runs, the newest first.
func (c *Client) ListRuns(ctx context.Context, in api.ListRuns) (api.RunList, error) {
	return call[api.RunList](ctx, c, "GET", "/v1/runs", in)
}

// ReadRun returns the record of a hook run.
func (c *Client) ReadRun(ctx context.Context, session, run string) (hook.Run, error) {
	return at[hook.Run](ctx, c, "GET", "/v1/sessions/", session, "/runs/", run)
}

// ExplainRun explains a hook run: which hooks were asked, what they did, and what won.
func (c *Client) ExplainRun(ctx context.Context, session, run string) (api.Explanation, error) {
	return at[api.Explanation](ctx, c, "GET", "/v1/sessions/", session, "/runs/", run, "/explanation")
}
