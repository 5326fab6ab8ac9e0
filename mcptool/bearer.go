package mcptool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// bearer adds the token of a login to the requests to a server.
type bearer struct {
	logins *Logins
	spec   *spec
}

var _ auth.OAuthHandler = (*bearer)(nil)

// bearer returns nil if the server does not use logins.
func (s *spec) bearer() *bearer {
	if s.logins == nil {
		return nil
	}
	return &bearer{s.logins, s}
}

// TokenSource returns the token of the login. It reads the file each time, because another
// process may have logged in, logged out or refreshed the token.
func (b *bearer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	g, err := b.logins.read(b.spec.login, b.spec.url)
	if g != nil && !g.fresh(time.Now()) {
		b.spec.known.add(g.secrets()...)
		g, err = b.logins.refresh(ctx, b.spec.login, b.spec.url, g.Access)
	}
	if _, ok := errors.AsType[*loginError](err); ok {
		return nil, nil // the server answers this request with 401, and Authorize reports why
	}
	if err != nil || g == nil {
		return nil, err
	}
	b.spec.known.add(g.secrets()...)
	return oauth2.StaticTokenSource(g.token()), nil
}

// Authorize is called when the server rejects a request. It refreshes the token. It never
// asks the user, because nobody may be there: the error says what to do.
func (b *bearer) Authorize(ctx context.Context, r *http.Request, response *http.Response) error {
	defer func() { _ = response.Body.Close() }()           // the body is not used
	_, _ = io.CopyN(io.Discard, response.Body, mostHidden) // lets the connection be used again
	if response.StatusCode == http.StatusForbidden {
		challenges, _ := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate")) // an unreadable header says nothing
		for _, c := range challenges {
			if c.Params["error"] == "insufficient_scope" {
				return &loginError{b.spec.login, "the login does not have the rights for this request"}
			}
		}
		return errors.New(`the server answers "Forbidden": your account may not do this`)
	}
	used, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if used == "" {
		g, err := b.logins.read(b.spec.login, b.spec.url)
		if err != nil {
			return err
		}
		if g == nil {
			return &loginError{b.spec.login, "the server needs a login"}
		}
		used = g.Access
	}
	_, err := b.logins.refresh(ctx, b.spec.login, b.spec.url, used)
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*loginError](err); ok {
		return err
	}
	return fmt.Errorf("the server does not accept the token, and there is no new one: %w", err)
}
