package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/belay-run/belay/internal/wholefile"
)

// Logins keeps the OAuth logins of servers with a URL in files. Only the user can read the
// files. A login belongs to a server's name and URL: a server with the same name and another
// URL does not get the token.
//
// [Logins.Login] logs in. An extension whose Options.Logins is set uses the tokens, and
// refreshes them. Several processes can use one directory.
type Logins struct {
	// Dir is the directory of the logins. It is created when needed.
	Dir string
	// Transport sends the requests to authorization servers. The default is the same as for
	// Options.Transport.
	Transport http.RoundTripper
}

// login is the file of one login.
type login struct {
	Server   string `json:"server"`
	URL      string `json:"url"`
	Resource string `json:"resource,omitempty"` // the resource for which the token is valid
	Scope    string `json:"scope,omitempty"`

	TokenURL     string `json:"token_url"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	InHeader     bool   `json:"in_header,omitempty"` // how the client sends its id and secret

	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// early is how long before its end a token is refreshed.
const early = 30 * time.Second

func (g *login) fresh(now time.Time) bool {
	return g.Access != "" && (g.Expires.IsZero() || now.Add(early).Before(g.Expires))
}

func (g *login) secrets() []string { return []string{g.Access, g.Refresh, g.ClientSecret} }

// token returns the token for a request.
func (g *login) token() *oauth2.Token {
	return &oauth2.Token{AccessToken: g.Access, TokenType: "Bearer", Expiry: g.Expires}
}

// file returns the file of a login. The name of a server may have any characters, so the
// file's name is a hash.
func (l *Logins) file(server, address string) string {
	sum := sha256.Sum256([]byte(server + "\n" + address))
	return filepath.Join(l.Dir, hex.EncodeToString(sum[:16])+".json")
}

// read returns the login of a server, or nil if there is none.
func (l *Logins) read(server, address string) (*login, error) {
	data, err := os.ReadFile(l.file(server, address))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	g := new(login)
	if err == nil {
		err = json.Unmarshal(data, g)
	}
	if err != nil {
		return nil, fmt.Errorf("read the login of mcp server %q: %w: log in again with `belay mcp login %s`", server, err, server)
	}
	if g.Server != server || g.URL != address {
		return nil, nil
	}
	return g, nil
}

func (l *Logins) write(g *login) error {
	err := os.MkdirAll(l.Dir, 0o700)
	if err == nil {
		err = wholefile.Write(l.file(g.Server, g.URL), encoded(g))
	}
	if err != nil {
		return fmt.Errorf("store the login of mcp server %q: %w", g.Server, err)
	}
	return nil
}

// Logout removes the login of a server. It reports whether there was one. It does not tell
// the authorization server, where the token stays valid until it expires.
func (l *Logins) Logout(s *Server) (bool, error) {
	err := os.Remove(l.file(s.Name, s.URL))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("log out of mcp server %q: %w", s.Name, err)
	}
	return true, nil
}

// Has reports whether there is a login for a server.
func (l *Logins) Has(s *Server) bool {
	g, err := l.read(s.Name, s.URL)
	return g != nil && err == nil
}

// client returns the client for requests to authorization servers. It follows redirects of
// reads only, because other requests have secrets.
func (l *Logins) client() *http.Client {
	transport := l.Transport
	if transport == nil {
		transport = guarded()
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || len(via) > 3 {
			return fmt.Errorf("the authorization server redirects to %s, and Belay does not follow it", r.URL.Redacted())
		}
		return checkURL(r.URL.String())
	}}
}

// publicClient sends the id of a client without a secret in the body of a request. The
// library tries the header first, and a strict authorization server then ends the code.
type publicClient struct{ base http.RoundTripper }

func (p publicClient) RoundTrip(r *http.Request) (*http.Response, error) {
	id, secret, basic := r.BasicAuth()
	if !basic || secret != "" || r.Body == nil || r.Method != http.MethodPost {
		return p.base.RoundTrip(r) //nolint:wrapcheck // as it came
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	form.Set("client_id", id)
	text := form.Encode()
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	return p.base.RoundTrip(r) //nolint:wrapcheck // likewise
}

// loginError says that only the user can get a new token.
type loginError struct{ server, why string }

func (e *loginError) Error() string {
	return fmt.Sprintf("%s: run `belay mcp login %s`", e.why, e.server)
}

// refresh gets a new token, unless another process has already done so. old is the access
// token that is no longer good.
func (l *Logins) refresh(ctx context.Context, server, address, old string) (*login, error) {
	free, err := l.lock(ctx, server, address)
	if err != nil {
		return nil, err
	}
	defer free()
	g, err := l.read(server, address)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, &loginError{server, "the server needs a login"}
	case g.Access != old && g.fresh(time.Now()):
		return g, nil // another process was faster
	case g.Refresh == "":
		return nil, &loginError{server, "the login has expired"}
	}
	if err := l.exchange(ctx, g); err != nil {
		return nil, err
	}
	return g, l.write(g)
}

// exchange exchanges the refresh token for a new token.
func (l *Logins) exchange(ctx context.Context, g *login) error {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	if !g.InHeader {
		form.Set("client_id", g.ClientID)
		if g.ClientSecret != "" {
			form.Set("client_secret", g.ClientSecret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("refresh the token: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if g.InHeader {
		r.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	}
	response, err := l.client().Do(r)
	if err != nil {
		return fmt.Errorf("refresh the token: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // the body was only read
	var got struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Expires float64 `json:"expires_in"`
		Error   string  `json:"error"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&got)
	switch {
	case got.Error == "invalid_grant" || got.Error == "invalid_client":
		return &loginError{g.Server, "the login is no longer valid"}
	case response.StatusCode != http.StatusOK || err != nil || got.Access == "":
		return fmt.Errorf("refresh the token: the authorization server answers %q", strings.TrimSpace(response.Status+" "+cutText(printable(got.Error), 100)))
	}
	g.Access, g.Expires = got.Access, time.Time{}
	if got.Refresh != "" {
		g.Refresh = got.Refresh
	}
	if got.Expires > 0 {
		g.Expires = time.Now().Add(time.Duration(got.Expires * float64(time.Second)))
	}
	return nil
}

// mostWait is how long a refresh waits for another one. A refresh takes at most 30 seconds.
const mostWait = time.Minute

// lock makes other goroutines and processes wait. Without it, two of them would use the same
// refresh token, and a strict authorization server then ends the login.
func (l *Logins) lock(ctx context.Context, server, address string) (free func(), err error) {
	name := l.file(server, address) + ".refreshing"
	ctx, cancel := context.WithTimeoutCause(ctx, mostWait, fmt.Errorf("another process refreshes the token for too long: end it, and remove %s", name))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		free, err := tryLock(name)
		if err != nil {
			return nil, fmt.Errorf("refresh the token: %w", err)
		}
		if free != nil {
			return free, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("refresh the token: %w", context.Cause(ctx))
		}
	}
}
