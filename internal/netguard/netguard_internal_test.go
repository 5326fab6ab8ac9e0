package netguard

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// The guard checks a host name, a resolved name, and every way to write an address.
//
// SPEC P-15
func TestTargets(t *testing.T) {
	t.Parallel()
	g := &guard{Options: Options{Private: []string{"intra.example.com", "*.corp.example.com"}}, proxies: []string{"proxy.example.com"}}
	for _, test := range []struct {
		host, addr string
		want       string // part of the error; "" means allowed
	}{
		{"example.com", "203.0.114.1", ""},
		{"example.com", "2606:4700::1111", ""},
		{"example.com", "10.0.0.1", "private"},
		{"example.com", "172.16.3.4", "private"},
		{"example.com", "192.168.1.1", "private"},
		{"example.com", "100.64.0.1", "private"},
		{"example.com", "127.0.0.1", "private"},
		{"example.com", "127.9.9.9", "private"},
		{"example.com", "::1", "private"},
		{"example.com", "fd12::1", "private"},
		{"example.com", "198.18.0.1", "private"},
		{"example.com", "::ffff:10.0.0.1", "private"},
		{"example.com", "::ffff:127.0.0.1", "private"},
		{"example.com", "64:ff9b::7f00:1", "private"},
		{"example.com", "64:ff9b::a00:1", "private"},
		{"example.com", "2002:a00:1::", "private"},
		{"example.com", "::7f00:1", "private"},
		{"example.com", "0.0.0.0", "never"},
		{"example.com", "::", "never"},
		{"example.com", "::ffff:0.0.0.0", "never"},
		{"example.com", "169.254.169.254", "never"},
		{"example.com", "::ffff:169.254.169.254", "never"},
		{"example.com", "64:ff9b::a9fe:a9fe", "never"},
		{"example.com", "fe80::1%eth0", "never"},
		{"example.com", "fd00:ec2::254", "never"},
		{"example.com", "100.100.100.200", "never"},
		{"example.com", "224.0.0.1", "never"},
		{"169.254.169.254", "169.254.169.254", "never"},
		{"0.0.0.0", "0.0.0.0", "never"},
		{"127.0.0.1", "127.0.0.1", ""},
		{"::1", "::1", ""},
		{"10.0.0.1", "10.0.0.1", ""},
		{"localhost", "127.0.0.1", ""},
		{"LOCALHOST.", "::1", ""},
		{"localhost", "203.0.114.1", "not this machine"},
		{"localhost", "10.0.0.1", "not this machine"},
		{"localhost.example.com", "127.0.0.1", "private"},
		{"intra.example.com", "10.0.0.1", ""},
		{"Intra.Example.com.", "10.0.0.1", ""},
		{"intra.example.com", "169.254.169.254", "never"},
		{"x.intra.example.com", "10.0.0.1", "private"},
		{"a.corp.example.com", "192.168.1.1", ""},
		{"corp.example.com", "192.168.1.1", "private"},
		{"evilcorp.example.com", "192.168.1.1", "private"},
		{"proxy.example.com", "10.0.0.9", ""},
	} {
		err := g.check(test.host, netip.MustParseAddr(test.addr))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s at %s: %v, want %q", test.host, test.addr, err, test.want)
		}
	}
}

// nameserver answers each question for an IPv4 address with the next of these addresses.
func nameserver(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() { // ends when the connection is closed
		asked := 0
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if n < 17 {
				continue
			}
			end := 12 + bytes.IndexByte(buffer[12:n], 0) + 5 // the end of the question's name, type and class
			reply := append(bytes.Clone(buffer[:2]), 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
			reply = append(reply, buffer[12:end]...)
			if buffer[end-3] == 1 { // the question is for an IPv4 address
				address := netip.MustParseAddr(addresses[min(asked, len(addresses)-1)]).As4()
				asked++
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				reply = append(reply, address[:]...)
			}
			_, _ = conn.WriteTo(reply, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name first resolves to a public address and later to this machine. The guard refuses
// the later connection. For comparison, a name that may resolve to private addresses is
// allowed.
//
// SPEC P-15
func TestNamesThatMoveAreCheckedWhenConnecting(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("a test connects to this machine alone")
	get := func(o *Options) error {
		transport := Transport(o)
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://moves.example.com.:"+port+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	moving := &Options{Resolver: nameserver(t, "203.0.114.1", "127.0.0.1"), connect: func(address string) error {
		if strings.HasPrefix(address, "127.") {
			return nil
		}
		return stopped
	}}
	if err := get(moving); !errors.Is(err, stopped) {
		t.Errorf("the public address: %v", err)
	}
	if err := get(moving); err == nil || !strings.Contains(err.Error(), "resolves to the private address 127.0.0.1") || served.Load() != 0 {
		t.Errorf("the private address: %v, and the server was asked %d times", err, served.Load())
	}
	if err := get(&Options{Resolver: nameserver(t, "127.0.0.1"), Private: []string{"moves.example.com"}}); err != nil || served.Load() != 1 {
		t.Errorf("the control: %v, and the server was asked %d times", err, served.Load())
	}
}

// The guard checks a redirect to a private name like any other connection.
//
// SPEC P-15
func TestRedirectsAreChecked(t *testing.T) {
	t.Parallel()
	var inside atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	t.Cleanup(target.Close)
	_, port, err := net.SplitHostPort(target.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.RedirectHandler("http://inside.example.com:"+port+"/", http.StatusFound))
	t.Cleanup(front.Close)
	for _, private := range [][]string{nil, {"inside.example.com"}} {
		transport := Transport(&Options{Resolver: nameserver(t, "127.0.0.1"), Private: private})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		transport.CloseIdleConnections()
		if refused := err != nil; refused != (private == nil) || inside.Load() != int32(len(private)) {
			t.Errorf("with %q: %v, and the server inside was asked %d times", private, err, inside.Load())
		}
	}
}

// SPEC P-15
func TestProxiesAreUsedIfAskedFor(t *testing.T) {
	t.Parallel()
	if Transport(nil).Proxy != nil {
		t.Error("a proxy is used that nobody asked for")
	}
	if Transport(&Options{Proxy: true}).Proxy == nil {
		t.Error("no proxy is used")
	}
	env := map[string]string{"HTTPS_PROXY": "http://user:secret@Proxy.Example.com:3128", "http_proxy": "10.0.0.9:3128"}
	if got := strings.Join(proxies(func(name string) string { return env[name] }), " "); got != "proxy.example.com 10.0.0.9" {
		t.Errorf("the proxies are %s", got)
	}
}
