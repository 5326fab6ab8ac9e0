package anthropic_test

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
)

// failing is a transport whose requests fail.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// If nothing listens on this machine, the user must start the server. On another machine, a
// server may be back soon, so a retry can help.
func TestWhatDoesNotListen(t *testing.T) {
	t.Parallel()
	dial := func(at string, errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at)), Err: os.NewSyscallError("connect", errno)}
	}
	for _, test := range []struct {
		rule string
		err  error
		kind belay.ModelErrorKind
		want string
	}{
		{"a server of this machine is not started", dial("127.0.0.1:11434", syscall.ECONNREFUSED), belay.ModelInvalid, "no program listens at 127.0.0.1:11434: start the server"},
		{"nor is one by the other protocol", dial("[::1]:11434", syscall.ECONNREFUSED), belay.ModelInvalid, "no program listens at [::1]:11434: start the server"},
		{"nor is a proxy", &net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial("127.0.0.1:8080", syscall.ECONNREFUSED)}, belay.ModelInvalid, "no program listens at 127.0.0.1:8080: start the proxy"},
		{"another machine may be starting it", dial("192.0.2.1:443", syscall.ECONNREFUSED), belay.ModelNetwork, "connection refused"},
		{"a connection may be lost here too", dial("127.0.0.1:11434", syscall.ECONNRESET), belay.ModelNetwork, "reset"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := anthropic.New("m", &anthropic.Options{Key: "k", HTTPClient: &http.Client{Transport: failing{test.err}}})
			_, err := answer(t, model, &belay.Request{Messages: []*belay.Message{user("a")}})
			wantFailure(t, err, test.kind, test.want)
		})
	}
}
