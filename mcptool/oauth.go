package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// LoginOptions are the options of [Logins.Login]. A nil *LoginOptions is not valid, because
// Open is required.
type LoginOptions struct {
	// Open shows the user an address to open in a browser. It must not wait for the user.
	Open func(ctx context.Context, address string) error
	// Paste waits until the user gives the address to which the browser was redirected. It
	// is for a browser on another machine, which cannot reach this one. Defaults to none.
	Paste func(ctx context.Context) (string, error)
	// ClientID and ClientSecret identify a client that is registered by hand. Defaults to
	// dynamic registration.
	ClientID, ClientSecret string
	// Port is the port on this machine to which the browser is redirected. Defaults to a free
	// port.
	Port int
	// Transport sends the requests to the server. See [Options].Transport.
	Transport http.RoundTripper
}

// ErrNoLoginNeeded says that a server works without a login.
var ErrNoLoginNeeded = errors.New("the server does not ask for a login")

// Login logs in to a server with the OAuth authorization code flow: discovery, dynamic client
// registration, PKCE, and a redirect to a port of this machine. It stores the login after the
// server has accepted the new token. Login replaces an earlier login.
func (l *Logins) Login(ctx context.Context, s Server, opts *LoginOptions) error {
	fail := func(err error) error { return fmt.Errorf("log in to mcp server %q: %w", s.Name, err) }
	if err := s.sound(); err != nil {
		return err
	}
	if s.URL == "" {
		return fail(errors.New("only a server with a url has a login"))
	}
	environ := s.Environ
	if environ == nil {
		environ = os.Environ()
	}
	spec, err := resolve(&s, newEnviron(environ), "")
	if err != nil {
		return fail(err)
	}
	if spec.hasAuthorization() {
		return fail(errors.New("its declaration has an Authorization header, which would be used instead: remove the header first"))
	}
	if s.Prepare != nil {
		if _, err := s.Prepare(ctx, nil); err != nil {
			return fail(err)
		}
	}
	back, err := listenBack(ctx, opts)
	if err != nil {
		return fail(err)
	}
	defer back.close()
	got := &login{Server: s.Name, URL: s.URL}
	handler, err := l.handler(spec, back, got, opts)
	if err != nil {
		return fail(err)
	}
	if err := connectOnce(ctx, spec, handler, opts.Transport); err != nil {
		return fail(errors.New(spec.hide(loginReason(err))))
	}
	if got.Access == "" {
		return fail(ErrNoLoginNeeded)
	}
	return l.write(got)
}

// loginReason returns why a login failed, in words for the user.
func loginReason(err error) string {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return "the authorization server gives no token: " + cutText(printable(strings.TrimSpace(refused.ErrorCode+" "+refused.ErrorDescription)), 500)
	}
	text := err.Error()
	if strings.Contains(text, "no configured client registration methods") { // this error has no type
		return "the authorization server does not register new clients by itself: register a client there, and give its id (--client-id)"
	}
	if _, why, ok := strings.Cut(text, "rejected by transport: "); ok {
		return why
	}
	return text
}

// handler returns the SDK's handler of the flow. It fills in the login.
func (l *Logins) handler(spec *spec, back *redirect, got *login, opts *LoginOptions) (*auth.AuthorizationCodeHandler, error) {
	client := l.client()
	client.Transport = publicClient{client.Transport}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back.url, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: client,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			address, err := url.Parse(args.URL)
			if err != nil || checkURL(args.URL) != nil {
				return nil, errors.New("the authorization server has an address that is not https: Belay does not open it")
			}
			got.Resource = address.Query().Get("resource")
			return back.code(ctx, args.URL, address.Query().Get("state"))
		},
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			got.TokenURL, got.ClientID, got.ClientSecret, got.InHeader = c.Endpoint.TokenURL, c.ClientID, c.ClientSecret, c.Endpoint.AuthStyle == oauth2.AuthStyleInHeader || c.Endpoint.AuthStyle == oauth2.AuthStyleAutoDetect && c.ClientSecret != ""
			got.Access, got.Refresh, got.Expires, got.Scope = t.AccessToken, t.RefreshToken, t.Expiry, strings.Join(c.Scopes, " ")
			spec.known.add(got.secrets()...)
			return oauth2.StaticTokenSource(t), nil
		},
	}
	if opts.ClientID != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: opts.ClientID}
		if opts.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: opts.ClientSecret}
		}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Belay", RedirectURIs: []string{back.url}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the login: %w", err)
	}
	return handler, nil
}

// connectOnce does the handshake with the server. The handler logs in when the server asks for
// it.
func connectOnce(ctx context.Context, spec *spec, handler auth.OAuthHandler, through http.RoundTripper) error {
	if through == nil {
		through = guarded()
	}
	transport := newHTTP(spec, &headed{headers: spec.headers, base: through, announced: func() {}})
	transport.OAuthHandler, transport.DisableStandaloneSSE = handler, true
	client := mcp.NewClient(&mcp.Implementation{Name: "belay", Version: version()}, &mcp.ClientOptions{Logger: slog.New(slog.DiscardHandler), Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: lastInitialize})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err //nolint:wrapcheck // the caller adds the server
	}
	_ = session.Close() // the login has succeeded
	return nil
}

// redirect receives the user's browser after the login.
type redirect struct {
	url    string
	opts   *LoginOptions
	server *http.Server

	mu    sync.Mutex
	state string // the expected state; "" before the address was shown, and after the answer
	got   chan url.Values
}

// listenBack listens on a port of this machine.
func listenBack(ctx context.Context, opts *LoginOptions) (*redirect, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	r := &redirect{url: "http://" + listener.Addr().String() + "/callback", opts: opts, got: make(chan url.Values, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = r.server.Serve(listener) }() // ends with close
	return r, nil
}

func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if r.server.Shutdown(ctx) != nil { // lets the browser read the answer
		_ = r.server.Close() // a browser keeps a connection open
	}
}

// ServeHTTP takes the redirect of the browser. Other pages in the browser can send requests
// too: a request with a wrong state changes nothing.
func (r *redirect) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if "http://"+in.Host+in.URL.Path != r.url || in.Method != http.MethodGet {
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	}
	if !r.take(in.URL.Query()) {
		http.Error(w, "This address does not belong to the login that Belay waits for. Start the login again.", http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintln(w, "Belay has received the answer. You can close this window and return to the terminal.") // the browser may be gone
}

// take uses the parameters of a redirect if they have the expected state. It uses only the
// first ones.
func (r *redirect) take(query url.Values) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == "" || query.Get("state") != r.state {
		return false
	}
	r.state = ""
	r.got <- query
	return true
}

// code shows the address to the user, and waits for the redirect.
func (r *redirect) code(ctx context.Context, address, state string) (*auth.AuthorizationResult, error) {
	if state == "" {
		return nil, errors.New("the login has no state")
	}
	r.mu.Lock()
	r.state = state
	r.mu.Unlock()
	if err := r.opts.Open(ctx, address); err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	if r.opts.Paste != nil {
		pasting, stop := context.WithCancel(ctx)
		defer stop()
		go func() { failed <- r.paste(pasting) }() // ends with the context, or with the user's line
	}
	for {
		select {
		case query := <-r.got:
			if why := query.Get("error"); why != "" {
				return nil, fmt.Errorf("the authorization server answers: %s", cutText(printable(strings.TrimSpace(why+" "+query.Get("error_description"))), 500))
			}
			return &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}, nil
		case err := <-failed:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// paste takes the redirect from a text of the user.
func (r *redirect) paste(ctx context.Context) error {
	text, err := r.opts.Paste(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	address, err := url.Parse(strings.TrimSpace(text))
	if err != nil || !r.take(address.Query()) {
		return errors.New("this is not the address of the page to which the browser was redirected after this login: start again, and paste the whole address")
	}
	return nil
}
