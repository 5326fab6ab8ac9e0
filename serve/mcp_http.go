package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/hook/codes"
)

// pathMCP is where MCP clients connect over HTTP.
const pathMCP = "/mcp"

// mcpIdle is how long a session of an MCP client lives without a request.
const mcpIdle = time.Hour

// mcpHandler serves MCP over streamable HTTP. It needs a token with the role run. A session
// belongs to the token that began it.
func (s *Server) mcpHandler() http.Handler {
	inner := auth.RequireBearerToken(func(_ context.Context, secret string, _ *http.Request) (*auth.TokenInfo, error) {
		token, err := s.opts.Tokens.find(secret)
		if err == nil && token == nil {
			err = auth.ErrInvalidToken
		}
		if err != nil {
			return nil, err
		}
		return &auth.TokenInfo{UserID: token.Hash, Extra: map[string]any{"token": token}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		token, _ := auth.TokenInfoFromContext(r.Context()).Extra["token"].(*Token)
		server, err := s.mcpServer(r.Context(), token)
		if err != nil {
			s.log.ErrorContext(r.Context(), "cannot make the MCP server", "error", err)
			return nil
		}
		server.AddReceivingMiddleware(s.mcp.count(token))
		return server
	}, &mcp.StreamableHTTPOptions{
		Logger: s.log, SessionTimeout: mcpIdle, MaxRequestBodyBytes: s.opts.MaxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the guard checks the Host of every request
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, p := s.authenticate(r)
		if p == nil {
			p = s.usages.request(token, time.Now())
		}
		switch {
		case p != nil:
		case !token.may(RoleRun):
			p = problem(http.StatusForbidden, codeForbidden, "the token %q lacks the role %s", token.Name, RoleRun)
		case s.stopping():
			p = problem(http.StatusServiceUnavailable, codes.ServerDraining, "the server is stopping: send the request again")
			p.retry = 2
		}
		if p != nil {
			p.send(w)
			return
		}
		if err := s.serveMCP(inner, token, w, r); err != nil {
			s.problemFor(r.Context(), token, err).send(w)
		}
	})
}

// serveMCP passes a request on to the SDK, and limits how long and how often it holds a
// connection. It returns an error if it has not answered.
func (s *Server) serveMCP(inner http.Handler, token *Token, w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(r, s.opts.MaxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 { // callsTool and the SDK have different decoders
		if err := checkJSON(body); err != nil {
			return err
		}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the body is here, and a turn may take long
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case r.Method == http.MethodGet: // a stream without end, which must not keep the server from stopping
		ctx, done, err := s.hold(r.Context(), token)
		if err != nil {
			return err
		}
		defer done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.draining, cancel)()
		r = r.WithContext(ctx)
	case callsTool(body): // mcpCall ends when the token is revoked
		closed, p := s.usages.openStream(token)
		if p != nil {
			return p
		}
		defer closed()
	}
	out := &patientResponse{ResponseWriter: w, out: patientWriter{w: w, control: control, each: s.timeouts.event}}
	inner.ServeHTTP(out, r)
	_ = control.SetWriteDeadline(time.Now().Add(s.timeouts.event)) // the last write may be long ago
	return nil
}

// callsTool reports whether the body of a request calls a tool. Such a request holds its
// connection for as long as a turn takes. An answer of the user, which a turn may wait for, is
// no such request: it must pass when a token has used all of its streams.
func callsTool(body []byte) bool {
	type message struct {
		Method string `json:"method"`
	}
	var one message
	if json.Unmarshal(body, &one) == nil {
		return one.Method == "tools/call"
	}
	var batch []message
	if json.Unmarshal(body, &batch) != nil {
		return false
	}
	for _, m := range batch {
		if m.Method == "tools/call" {
			return true
		}
	}
	return false
}

// patientResponse is a response whose client may take a limited time to read each part.
type patientResponse struct {
	http.ResponseWriter

	out patientWriter
}

// Write writes data in parts.
func (p *patientResponse) Write(data []byte) (int, error) { return p.out.Write(data) }

// Unwrap lets http.ResponseController find the connection.
func (p *patientResponse) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// mcpSessions are the sessions of MCP clients over HTTP. A session costs memory until its
// client ends it or has sent nothing for mcpIdle.
type mcpSessions struct {
	most int // of one token

	mu      sync.Mutex
	open    map[string]map[*mcp.ServerSession]bool // by the hash of the token
	waiting sync.WaitGroup                         // one for each open session
}

func newMCPSessions(most int) *mcpSessions {
	return &mcpSessions{most: most, open: make(map[string]map[*mcp.ServerSession]bool)}
}

// count returns a middleware that refuses a session if the token has too many.
func (m *mcpSessions) count(token *Token) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if session, ok := r.GetSession().(*mcp.ServerSession); ok && method == "initialize" {
				if err := m.add(token, session); err != nil {
					return nil, err
				}
			}
			return next(ctx, method, r)
		}
	}
}

// add counts a session until it ends.
func (m *mcpSessions) add(token *Token, session *mcp.ServerSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	open := m.open[token.Hash]
	if open[session] {
		return nil // a second "initialize" in the same session
	}
	if len(open) >= m.most {
		return fmt.Errorf("the token %q has %d MCP sessions, which is the maximum: end some, or wait until they expire", token.Name, len(open))
	}
	if open == nil {
		open = make(map[*mcp.ServerSession]bool)
		m.open[token.Hash] = open
	}
	open[session] = true
	m.waiting.Go(func() { // ends with the session
		_ = session.Wait() // ignore errors: only the end matters
		m.mu.Lock()
		defer m.mu.Unlock()
		if delete(open, session); len(open) == 0 && len(m.open[token.Hash]) == 0 {
			delete(m.open, token.Hash)
		}
	})
	return nil
}

// end ends all sessions, and waits until they have ended.
func (m *mcpSessions) end() error {
	m.mu.Lock()
	var all []*mcp.ServerSession
	for _, open := range m.open {
		for session := range open {
			all = append(all, session)
		}
	}
	m.mu.Unlock()
	var errs []error
	for _, session := range all {
		errs = append(errs, session.Close())
	}
	m.waiting.Wait()
	return errors.Join(errs...)
}
