package jsonrpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/acp/internal/jsonrpc"
)

// peer is the other side of a connection.
type peer struct {
	t    *testing.T
	conn *jsonrpc.Conn
	in   *io.PipeWriter
	out  *bufio.Scanner
	end  chan error
}

func connect(t *testing.T, opts *jsonrpc.Options, accept jsonrpc.Accept) *peer {
	t.Helper()
	in, toConn := io.Pipe()
	fromConn, out := io.Pipe()
	p := &peer{t: t, conn: jsonrpc.New(in, out, opts), in: toConn, out: bufio.NewScanner(fromConn), end: make(chan error, 1)}
	go func() {
		p.end <- p.conn.Serve(context.Background(), accept)
		_ = out.Close() // ignore errors: a pipe has none
	}()
	return p
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the next message of the connection.
func (p *peer) next() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatal("the connection has ended")
	}
	return p.out.Text()
}

func (p *peer) close() {
	p.t.Helper()
	_ = p.in.Close() // ignore errors: a pipe has none
	if err := <-p.end; err != nil {
		p.t.Errorf("Serve returned %v", err)
	}
}

// echo answers with the parameters.
func echo(r *jsonrpc.Request) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return r.Params, nil }
}

// Broken messages get an error response, and the connection goes on.
//
// SPEC U-05
func TestBrokenMessagesGetErrors(t *testing.T) {
	t.Parallel()
	p := connect(t, &jsonrpc.Options{MaxMessage: 200}, echo)
	defer p.close()
	long := strings.Repeat("x", 1000)
	for _, test := range []struct{ line, want string }{
		{`nonsense`, `"id":null,"error":{"code":-32700`},
		{`[{"jsonrpc":"2.0","id":1,"method":"a"}]`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":{},"method":"a"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":3,"method":7}`, `"id":3,"error":{"code":-32600`},
		{`{}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":5,"method":"a","params":"` + long + `"}`, `"id":5,"error":{"code":-32600`},
		{`{"params":"` + long + `","id":6,"method":"a"}`, `"id":6,"error":{"code":-32600`},
		{`{"params":"` + strings.Repeat(long, 5) + `","id":7,"method":"a"}`, `"id":null,"error":{"code":-32600`},
		{strings.Repeat("[", 190), `"id":null,"error":{"code":-32700`},
	} {
		p.send(test.line)
		if got := p.next(); !strings.Contains(got, test.want) {
			t.Errorf("%.40s: the response is %s, want %s", test.line, got, test.want)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":99,"result":{}}`) // nobody asked
	p.send(``)
	p.send(`{"jsonrpc":"2.0","id":"z","method":"a","params":[1]}`)
	if got := p.next(); got != `{"jsonrpc":"2.0","id":"z","result":[1]}` {
		t.Errorf("the response is %s", got)
	}
}

// A handler that panics gives an error response, in accept too.
//
// SPEC U-05
func TestPanicsAreErrors(t *testing.T) {
	t.Parallel()
	p := connect(t, nil, func(r *jsonrpc.Request) func(context.Context) (any, error) {
		if r.Method == "accept" {
			panic("no")
		}
		return func(context.Context) (any, error) { panic("never") }
	})
	defer p.close()
	for _, method := range []string{"accept", "run"} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		if got := p.next(); !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, "panic") {
			t.Errorf("%s: the response is %s", method, got)
		}
	}
}

// Accept is called in the order of the messages, and work that belongs after a response is
// done after it.
func TestOrder(t *testing.T) {
	t.Parallel()
	var order []string
	var p *peer
	ready := make(chan struct{})
	p = connect(t, nil, func(r *jsonrpc.Request) func(context.Context) (any, error) {
		<-ready
		order = append(order, r.Method)
		return func(context.Context) (any, error) {
			return jsonrpc.Reply{Result: "yes", After: func() { _ = p.conn.Notify("after", nil) }}, nil
		}
	})
	close(ready)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	if first, second := p.next(), p.next(); !strings.Contains(first, `"result":"yes"`) || !strings.Contains(second, `"method":"after"`) {
		t.Errorf("the messages are %s, %s", first, second)
	}
	for _, method := range []string{"b", "c", "d"} {
		p.send(`{"jsonrpc":"2.0","method":"` + method + `"}`)
	}
	for range 3 {
		p.next()
	}
	p.close()
	if got := strings.Join(order, ""); got != "abcd" {
		t.Errorf("the order is %s", got)
	}
}

// A call is withdrawn when its context ends. A request of the other side is cancelled when the
// other side withdraws it.
func TestCancelRequest(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	p := connect(t, nil, func(*jsonrpc.Request) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			close(begun)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	})
	defer p.close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.conn.Call(ctx, "ask", struct{}{}, nil) }()
	if got := p.next(); got != `{"jsonrpc":"2.0","id":1,"method":"ask","params":{}}` {
		t.Errorf("the request is %s", got)
	}
	cancel()
	if got := p.next(); got != `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}` {
		t.Errorf("the withdrawal is %s", got)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Call returned %v", err)
	}
	p.send(`{"jsonrpc":"2.0","id":7,"method":"wait"}`)
	<-begun
	p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`)
	if got := p.next(); !strings.Contains(got, `"id":7,"error":{"code":-32800`) {
		t.Errorf("the response is %s", got)
	}
}

// When the other side leaves, calls end, and Serve waits for the requests that run.
func TestLeaving(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	var p *peer
	called := make(chan error, 1)
	p = connect(t, &jsonrpc.Options{Closing: func() { close(closing) }}, func(*jsonrpc.Request) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			called <- p.conn.Call(ctx, "ask", nil, nil)
			<-closing
			return "late", nil
		}
	})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	p.next() // the call
	_ = p.in.Close()
	if err := <-called; !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("the call returned %v", err)
	}
	if got := p.next(); !strings.Contains(got, `"result":"late"`) {
		t.Errorf("the response is %s", got)
	}
	p.close()
}

// A client that does not read blocks nobody for ever.
//
// SPEC U-05
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	p := connect(t, &jsonrpc.Options{Grace: time.Millisecond}, echo)
	for range 5 {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	}
	p.close()
}

// More requests than the limit are refused.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := connect(t, &jsonrpc.Options{MaxRequests: 1}, func(*jsonrpc.Request) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { <-release; return "done", nil }
	})
	defer p.close()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"a"}`)
	if got := p.next(); !strings.Contains(got, `"id":2,"error"`) {
		t.Errorf("the response is %s", got)
	}
	close(release)
	if got := p.next(); !strings.Contains(got, `"id":1,"result"`) {
		t.Errorf("the response is %s", got)
	}
}

// FuzzMessages sends anything: the connection answers with messages and ends cleanly.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`, `[]`, `{"id":`, "\x00", `{"method":"$/cancel_request","params":{"requestId":1}}`, `{"id":1e400,"method":"a"}`, `{"id":"` + "\xff" + `","result":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out strings.Builder
		conn := jsonrpc.New(strings.NewReader(string(data)), &out, &jsonrpc.Options{MaxMessage: 64})
		if err := conn.Serve(context.Background(), echo); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("the connection wrote %q", line)
			}
		}
	})
}
