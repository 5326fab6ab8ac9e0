package client

import (
	"context"

	"github.com/belay-run/belay/serve/api"
)

// ListApprovals lists approvals and questions, oldest first.
func (c *Client) ListApprovals(ctx context.Context, in api.ListApprovals) (api.ApprovalList, error) {
	return call[api.ApprovalList](ctx, c, "GET", "/v1/approvals", in)
}

// CountApprovals counts the approvals and questions that wait.
func (c *Client) CountApprovals(ctx context.Context) (api.ApprovalCount, error) {
	return call[api.ApprovalCount](ctx, c, "GET", "/v1/approval-count", nil)
}

// ReadApproval returns an approval with its call, and with what the call would do.
func (c *Client) ReadApproval(ctx context.Context, approval string) (api.Approval, error) {
	return at[api.Approval](ctx, c, "GET", "/v1/approvals/", approval)
}

// DecideApproval approves or denies a call, or answers a question. An approval is decided
// once: the second decision gets belay.ErrDecided.
func (c *Client) DecideApproval(ctx context.Context, in api.DecideApproval) (api.Approval, error) {
	return call[api.Approval](ctx, c, "POST", "/v1/approvals/{approval}/decision", in)
}

// ListGrants returns one page of the approvals that cover more than one call.
func (c *Client) ListGrants(ctx context.Context, in api.ListGrants) (api.GrantList, error) {
	return call[api.GrantList](ctx, c, "GET", "/v1/grants", in)
}

// RevokeGrant takes back an approval that covers more than one call. The calls that it covers
// need approval again. While a turn of the session runs, the error is belay.ErrHeld.
func (c *Client) RevokeGrant(ctx context.Context, session, grant string) error {
	_, err := call[struct{}](ctx, c, "DELETE", "/v1/sessions/{session}/grants/{grant}", api.RevokeGrant{Session: session, Grant: grant})
	return err
}
