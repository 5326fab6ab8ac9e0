package serve_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/store/memstore"
)

// Ten thousand connections of one client take no more than the allowed number of places. When
// the client leaves, others are served again.
//
// SPEC V-06
func TestManyConnections(t *testing.T) {
	t.Parallel()
	const most, tries = 50, 10_000
	w := newWorld(t, nil, nil)
	server, err := serve.New(w.host, &serve.Options{Tokens: w.tokens, Connections: most})
	if err != nil {
		t.Fatal(err)
	}
	small := w.again(server)
	addr := strings.TrimPrefix(small.url, "http://")
	var served, refused atomic.Int64
	var mu sync.Mutex
	var open []net.Conn
	var trying sync.WaitGroup
	places := make(chan struct{}, 200) // the file limit of the machine counts, too
	for range tries {
		places <- struct{}{}
		trying.Go(func() {
			defer func() { <-places }()
			dialer := net.Dialer{Timeout: 50 * time.Millisecond}
			conn, err := dialer.DialContext(t.Context(), "tcp", addr)
			if err != nil { // the queue of the machine is full
				refused.Add(1)
				return
			}
			mu.Lock()
			open = append(open, conn)
			keep := len(open) <= 500 // each of the first ones stays open
			mu.Unlock()
			if !keep {
				_ = conn.Close()
				return
			}
			_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				return
			}
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_ = resp.Body.Close()
				served.Add(1)
			}
		})
	}
	trying.Wait()
	if n := served.Load(); n > most || n == 0 {
		t.Errorf("%d connections are served at once, want at most %d and some", n, most)
	}
	t.Logf("%d of %d connections were served, %d were refused by the machine", served.Load(), tries, refused.Load())
	for _, conn := range open {
		_ = conn.Close()
	}
	eventually(t, "others are served again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, small.url+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// Whatever a client sends in X-Forwarded-For, its address is a valid one: that of the header
// or that of the connection.
//
// SPEC V-06
func FuzzForwarded(f *testing.F) {
	f.Add("203.0.113.7", "")
	f.Add("a, b", "[::1]:80")
	f.Add(",", "fe80::1%eth0")
	server := &serve.Server{}
	server.SetTrustProxy()
	f.Fuzz(func(t *testing.T, first, second string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header["X-Forwarded-For"] = []string{first, second}
		if _, err := netip.ParseAddr(server.Client(r)); err != nil {
			t.Errorf("the address of %q, %q is %v", first, second, err)
		}
	})
}

// understands returns an error if belay.Events does not understand a position.
func understands(position string) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // only the position is checked
	for _, err := range belay.NewEvents().Watch(ctx, memstore.New(nil), &belay.WatchOptions{Session: "s", After: position}) {
		return err
	}
	return nil
}

// A position that the server accepts is one that the stream understands, and no position can
// add a line to the stream.
//
// SPEC V-03, V-06
func FuzzPositions(f *testing.F) {
	for _, text := range []string{"0", "12", "3-1", "7-end-2-end_turn", "x", "1-", "-1", "1-end-", "0\nid: 1", "1-end-1-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !serve.ValidPosition(text) {
			return
		}
		if strings.ContainsAny(text, "\r\n \x00") || len(text) > 100 {
			t.Errorf("the position %q is accepted", text)
		}
		if err := understands(text); err != nil {
			t.Errorf("the position %q is accepted, and the stream says %v", text, err)
		}
	})
}
