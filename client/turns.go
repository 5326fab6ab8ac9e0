package client

import (
	"context"

	"github.com/belay-run/belay/serve/api"
)

// StartTurn sends a message to the agent of a session. With [api.WaitEnd] it returns when the
// turn has ended or is parked. Otherwise it returns when the message is stored: follow the turn
// with [Client.Events], from the field After.
func (c *Client) StartTurn(ctx context.Context, in api.StartTurn) (api.StartedTurn, error) {
	return call[api.StartedTurn](ctx, c, "POST", "/v1/sessions/{session}/turns", in)
}

// ListTurns returns one page of the turns of a session, the newest first.
func (c *Client) ListTurns(ctx context.Context, in api.ListTurns) (api.TurnList, error) {
	return call[api.TurnList](ctx, c, "GET", "/v1/sessions/{session}/turns", in)
}

// ReadTimeline returns everything that happened in a turn, on one axis of time.
func (c *Client) ReadTimeline(ctx context.Context, in api.ReadTimeline) (api.Timeline, error) {
	return call[api.Timeline](ctx, c, "GET", "/v1/sessions/{session}/turns/{turn}/timeline", in)
}

// ListQueue lists the turns of a session that have not begun.
func (c *Client) ListQueue(ctx context.Context, session string) (api.Queue, error) {
	return at[api.Queue](ctx, c, "GET", "/v1/sessions/", session, "/queue")
}

// WithdrawTurn removes a turn that has not begun from the queue. If it has begun, the error is
// belay.ErrNotFound.
func (c *Client) WithdrawTurn(ctx context.Context, session, turn string) error {
	_, err := call[struct{}](ctx, c, "DELETE", "/v1/sessions/{session}/queue/{turn}", api.WithdrawTurn{Session: session, Turn: turn})
	return err
}

// AbortTurn aborts the open turn of a session. If turn is not empty, it aborts only the turn
// with this id. The turn may end after AbortTurn has returned.
func (c *Client) AbortTurn(ctx context.Context, session, turn string) (api.Session, error) {
	return call[api.Session](ctx, c, "POST", "/v1/sessions/{session}/abort", api.AbortTurn{Session: session, Turn: turn})
}

// ResumeTurn resumes a turn that is parked or was interrupted.
func (c *Client) ResumeTurn(ctx context.Context, session string) (api.Session, error) {
	return at[api.Session](ctx, c, "POST", "/v1/sessions/", session, "/resume")
}
