package postgres_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// proxy passes on the connections between a store and its server, and simulates network
// failures.
type proxy struct {
	listener net.Listener
	socket   string // the server's socket

	mu sync.Mutex
	// refuse is called for each new connection, with its number (from 1). It returns the
	// answer to the client, or nil to accept the connection. An empty answer closes the
	// connection.
	refuse func(n int) []byte
	// cut gets all data that clients send. When it returns true, the server still gets the
	// data, but its answer is lost and the connection is closed.
	cut func(said []byte) bool
	// mute gets all data that clients send. When it returns true, the connection is silent
	// from then on.
	mute func(said []byte) bool
	// If a request contains the text holds, its answer waits until released is closed.
	// waiting is closed when the answer waits.
	holds             []byte
	waiting, released chan struct{}
	dials             int
	links             map[*link]bool
}

// link is a connection through the proxy.
type link struct {
	client, server net.Conn
	silent         bool // the proxy drops all data without an error
	cutting        bool
	held           bool
}

// through returns a DSN that connects through a new proxy. The proxy ends with the test.
func through(t testing.TB, dsn string) (p *proxy, by string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	settings := u.Query()
	p = &proxy{socket: filepath.Join(settings.Get("host"), ".s.PGSQL.5432"), links: make(map[*link]bool)}
	if p.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	settings.Set("host", host)
	settings.Set("port", port)
	settings.Set("sslmode", "disable")
	u.RawQuery = settings.Encode()
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.mu.Lock()
		for l := range p.links {
			l.end()
		}
		p.mu.Unlock()
		serving.Wait()
	})
	return p, u.String()
}

func (l *link) end() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// serve accepts connections until the listener is closed.
func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.dials++
		var answer []byte
		if p.refuse != nil {
			answer = p.refuse(p.dials)
		}
		p.mu.Unlock()
		if answer != nil {
			if len(answer) > 0 {
				_, _ = client.Read(make([]byte, 4096)) // the client's first message
				_, _ = client.Write(answer)
			}
			_ = client.Close()
			continue
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "unix", p.socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		serving.Go(func() { p.pump(l, client, server, true) })
		serving.Go(func() { p.pump(l, server, client, false) })
	}
}

// pump copies data from one side to the other. asks means that the data comes from the
// client.
func (p *proxy) pump(l *link, from io.Reader, to io.Writer, asks bool) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		l.end()
		delete(p.links, l)
	}()
	said := make([]byte, 1<<16)
	for {
		n, err := from.Read(said)
		if n > 0 && !p.pass(l, said[:n], asks) {
			if l.cutting {
				return
			}
			continue
		}
		if n > 0 {
			if _, err := to.Write(said[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass reports whether data is passed on. It may wait first.
func (p *proxy) pass(l *link, said []byte, asks bool) bool {
	p.mu.Lock()
	if asks {
		if p.cut != nil && p.cut(said) {
			p.cut, l.cutting = nil, true
			p.mu.Unlock()
			return true // the server still gets the request
		}
		if p.mute != nil && p.mute(said) {
			p.mute, l.silent = nil, true
		}
		if p.holds != nil && bytes.Contains(said, p.holds) {
			p.holds, l.held = nil, true
		}
	}
	held, lost := l.held && !asks, l.silent || l.cutting && !asks
	if held {
		l.held = false
		close(p.waiting)
	}
	released := p.released
	p.mu.Unlock()
	if held {
		<-released
	}
	return !lost
}

// silence makes all existing connections silent, like a network that has lost them. New
// connections work.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.silent = true
	}
}

// hold delays the answer to the next request that contains a text, until release is called.
func (p *proxy) hold(t testing.TB, text string) (waiting <-chan struct{}, release func()) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds, p.waiting, p.released = []byte(text), make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(p.released) })
	t.Cleanup(release)
	return p.waiting, release
}

// set changes the proxy's behaviour under its lock.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// dialed returns the number of connections so far.
func (p *proxy) dialed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

// fatal returns the message with which a server rejects a connection.
func fatal(t testing.TB, code string) []byte {
	t.Helper()
	text, err := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "refused with " + strconv.Quote(code)}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// commitAfter returns a function for proxy.cut. It cuts the answer to the commit of the
// first transaction that contains a text.
func commitAfter(text string) func([]byte) bool {
	found := false
	return func(said []byte) bool {
		found = found || bytes.Contains(said, []byte(text))
		return found && bytes.Contains(said, []byte("commit"))
	}
}
