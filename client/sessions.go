package client

import (
	"context"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// at sends a request without an input besides its path: see path.
func at[Out any](ctx context.Context, c *Client, method string, words ...string) (Out, error) {
	to, err := path(words...)
	if err != nil {
		var none Out
		return none, err
	}
	return call[Out](ctx, c, method, to, nil)
}

// CreateSession creates a session.
func (c *Client) CreateSession(ctx context.Context, in api.CreateSession) (api.Session, error) {
	return call[api.Session](ctx, c, "POST", "/v1/sessions", in)
}

// ListSessions returns one page of sessions, the last changed first.
func (c *Client) ListSessions(ctx context.Context, in api.ListSessions) (api.SessionList, error) {
	return call[api.SessionList](ctx, c, "GET", "/v1/sessions", in)
}

// Sessions yields all sessions that match, the last changed first. It asks for one page after
// the other. Limit is the size of a page.
func (c *Client) Sessions(ctx context.Context, in api.ListSessions) iter.Seq2[api.Session, error] {
	return func(yield func(api.Session, error) bool) {
		for {
			page, err := c.ListSessions(ctx, in)
			if err != nil {
				yield(api.Session{}, err)
				return
			}
			for i := range page.Sessions {
				if !yield(page.Sessions[i], nil) {
					return
				}
			}
			if in.After = page.Next; in.After == "" {
				return
			}
		}
	}
}

// ReadSession returns a session.
func (c *Client) ReadSession(ctx context.Context, session string) (api.Session, error) {
	return at[api.Session](ctx, c, "GET", "/v1/sessions/", session)
}

// UpdateSession changes the title and the labels of a session.
func (c *Client) UpdateSession(ctx context.Context, in api.UpdateSession) (api.Session, error) {
	return call[api.Session](ctx, c, "PATCH", "/v1/sessions/{session}", in)
}

// DeleteSession deletes a session with everything it left.
func (c *Client) DeleteSession(ctx context.Context, session string) error {
	_, err := at[struct{}](ctx, c, "DELETE", "/v1/sessions/", session)
	return err
}

// ForkSession makes a new session from the beginning of another.
func (c *Client) ForkSession(ctx context.Context, in api.ForkSession) (api.Session, error) {
	return call[api.Session](ctx, c, "POST", "/v1/sessions/{session}/fork", in)
}

// ListMessages returns one page of the messages of a session: oldest first, or with Newest the
// newest first.
func (c *Client) ListMessages(ctx context.Context, in api.ListMessages) (api.MessageList, error) {
	return call[api.MessageList](ctx, c, "GET", "/v1/sessions/{session}/messages", in)
}

// Messages yields the messages of a session whose number is greater than after, oldest first.
// It asks for one page after the other.
func (c *Client) Messages(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		for {
			page, err := c.ListMessages(ctx, api.ListMessages{Session: session, After: after})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range page.Messages {
				if !yield(m, nil) {
					return
				}
			}
			if after = page.Next; after == 0 {
				return
			}
		}
	}
}

// ReadMedia returns an image or a file of a message. The result has no name.
func (c *Client) ReadMedia(ctx context.Context, in api.ReadMedia) (belay.Media, error) {
	return call[belay.Media](ctx, c, "GET", "/v1/sessions/{session}/messages/{message}/media/{media}", in)
}
