package serve

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

const (
	codeNotFound  = codes.RequestNotFound
	codeForbidden = codes.AuthForbidden
	codeExists    = codes.SessionExists
)

// guard adds the defences that every request passes: the headers for browsers, the check of
// the Host header against DNS rebinding, and the check against requests of other sites.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem(http.StatusForbidden, codes.RequestCrossOrigin, "a page of another site sent this request").send(w)
	}))
	inner := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(s.timeouts.body)) // ignore errors: tests use writers without deadlines
		_ = control.SetWriteDeadline(time.Now().Add(s.timeouts.body))
		maps.Copy(w.Header(), headers)
		if !s.knownHost(r.Host) {
			problem(http.StatusMisdirectedRequest, codes.RequestHost, "the server does not have the name %q: add it with --host", hostName(r.Host)).send(w)
			return
		}
		if !isClean(r.URL.EscapedPath()) {
			notFound("resource", r.URL.Path).send(w)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// hostName returns a host without its port.
func hostName(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(hostOnly(host), "[]"), "."))
}

// knownHost reports whether the server has this name. An attacker who lets his own name
// resolve to this machine (DNS rebinding) sends that name. An IP address cannot be rebound.
func (s *Server) knownHost(host string) bool {
	name := hostName(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(s.opts.Hosts, func(known string) bool { return hostName(known) == name })
}

// authenticate finds the token of a request.
func (s *Server) authenticate(r *http.Request) (*Token, *Problem) {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || secret == "" {
		p := problem(http.StatusUnauthorized, codes.AuthRequired, "the request has no token: send the header Authorization: Bearer TOKEN")
		return nil, p
	}
	token, err := s.opts.Tokens.find(secret)
	if err != nil {
		return nil, s.problemOf(r.Context(), err)
	}
	if token != nil {
		return token, nil
	}
	if wait := s.failed.add(s.client(r), time.Now()); wait > 0 {
		p := problem(http.StatusTooManyRequests, codes.AuthRate, "too many requests with an unknown token came from this address: wait for %s", wait.Round(time.Second))
		p.retry = int(wait.Seconds()) + 1
		return nil, p
	}
	return nil, problem(http.StatusUnauthorized, codes.AuthRequired, "the token is unknown: it may have been revoked or rotated. Ask the operator of the server for another one")
}

// client returns the address of the client.
func (s *Server) client(r *http.Request) string {
	if lines := r.Header.Values("X-Forwarded-For"); s.opts.TrustProxy && len(lines) > 0 {
		// A client can send values and whole lines of its own. Our proxy adds the last value.
		last := lines[len(lines)-1]
		last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		if addr, err := netip.ParseAddr(strings.Trim(hostOnly(last), "[]")); err == nil {
			return addr.Unmap().String()
		}
	}
	return hostOnly(r.RemoteAddr)
}

// hostOnly returns an address without its port, if it has one.
func hostOnly(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// failedLogins counts requests with unknown tokens, by address.
type failedLogins struct {
	mu    sync.Mutex
	count map[string]int
	since time.Time
}

// Each address may send this many unknown tokens in a window. mostAddresses limits the
// memory.
const (
	loginWindow   = time.Minute
	mostLogins    = 30
	mostAddresses = 10_000
)

func newFailedLogins() *failedLogins { return &failedLogins{count: make(map[string]int)} }

// add counts a failed login. It returns how long the address must wait, or 0.
func (f *failedLogins) add(address string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) > loginWindow || len(f.count) >= mostAddresses {
		f.since = now
		clear(f.count)
	}
	if f.count[address]++; f.count[address] <= mostLogins {
		return 0
	}
	return loginWindow - now.Sub(f.since)
}

// limitListener returns a listener that accepts no more than n connections at once.
func limitListener(l net.Listener, n int) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, n), done: make(chan struct{})}
}

type limitedListener struct {
	net.Listener

	slots chan struct{}
	done  chan struct{} // closed by Close, so that Accept stops waiting for a slot
	once  sync.Once
}

// Accept waits until there is room, and then for a connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err //nolint:wrapcheck // net/http compares it
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close stops the listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close() //nolint:wrapcheck // net/http compares it
}

type limitedConn struct {
	net.Conn

	leave func()
}

// Close gives the slot to another connection.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close() //nolint:wrapcheck // net/http compares it
}
