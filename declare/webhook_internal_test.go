package declare

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/declare/worker"
)

// localhost may resolve to any address. A call without TLS must not leave this machine
// even then.
//
// SPEC C-09
func TestWebhookWithoutTLSDoesNotLeaveTheMachine(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	for _, test := range []struct{ rule, resolved, fails string }{
		{"this machine", server.Listener.Addr().String(), ""},
		{"another machine", "192.0.2.1:80", "http is only allowed to this machine: use https"},
		{"another machine, with IPv6", "[2001:db8::1]:80", "http is only allowed to this machine: use https"},
		{"all addresses of this machine", "0.0.0.0:" + server.Listener.Addr().String()[strings.LastIndex(server.Listener.Addr().String(), ":")+1:], "http is only allowed to this machine: use https"},
	} {
		client := newClient(nil)
		transport, ok := client.Transport.(*http.Transport)
		if !ok {
			t.Fatalf("the transport is %T", client.Transport)
		}
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, test.resolved) // as if localhost had this address
		}
		h := &handler{
			codec: codecOf(t, "tool.pre"), d: &Declaration{Webhook: &Endpoint{URL: "http://localhost/"}},
			set: &Set{client: client, redact: newRedactor(nil), allowed: []allowance{{host: "localhost"}}},
		}
		post, err := h.newWebhook()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // without the check, the call would connect and get no answer
		_, err = post(ctx, &worker.Envelope{})
		cancel()
		transport.CloseIdleConnections()
		if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
			t.Errorf("%s: %v, want %q", test.rule, err, test.fails)
		}
	}
}

// The transport of webhooks has no proxy, and never connects to the metadata service of a
// cloud. Package netguard checks the address at each connection.
//
// SPEC P-15
func TestWebhookConnectionsAreGuarded(t *testing.T) {
	t.Parallel()
	client := newClient(nil)
	transport, ok := client.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Fatalf("the transport is %T, and may use a proxy", client.Transport)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://169.254.169.254/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "Belay never connects to such an address") {
		t.Errorf("the error is %v", err)
	}
}
