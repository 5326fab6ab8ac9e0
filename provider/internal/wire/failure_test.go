package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	f := wire.NewFailures("p/m", "key-of-a-test")
	dial := func(address string, errno syscall.Errno) error {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
		return &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: os.NewSyscallError("connect", errno)}
	}
	cut := errors.New("cut")
	for _, test := range []struct {
		rule string
		err  *belay.ModelError
		kind belay.ModelErrorKind
		want string
	}{
		{"an error has the name of the model", f.New(belay.ModelServer, cut), belay.ModelServer, "p/m"},
		{"the key is removed", f.New(belay.ModelServer, errors.New("got key-of-a-test")), belay.ModelServer, "got [key]"},
		{"a missing key is an error of authentication", f.Unusable(wire.NoKey("THE_KEY")), belay.ModelAuth, "THE_KEY"},
		{"other wrong options are invalid", f.Unusable(cut), belay.ModelInvalid, "cut"},
		{"a local server that is not started", f.NoAnswer(dial("127.0.0.1:11434", syscall.ECONNREFUSED)), belay.ModelInvalid, "no program listens at 127.0.0.1:11434: start the server"},
		{"a local server with an IPv6 address", f.NoAnswer(dial("[::1]:11434", syscall.ECONNREFUSED)), belay.ModelInvalid, "no program listens at [::1]:11434: start the server"},
		{"a local proxy that is not started", f.NoAnswer(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial("127.0.0.1:8080", syscall.ECONNREFUSED)}), belay.ModelInvalid, "no program listens at 127.0.0.1:8080: start the proxy"},
		{"a server on another machine may be starting", f.NoAnswer(dial("192.0.2.1:443", syscall.ECONNREFUSED)), belay.ModelNetwork, "connection refused"},
		{"a local connection may be lost too", f.NoAnswer(dial("127.0.0.1:11434", syscall.ECONNRESET)), belay.ModelNetwork, "reset"},
		{"an answer that was cut", f.Cut(cut, nil), belay.ModelNetwork, "cut"},
		{"an answer that was cut for a reason", f.Cut(cut, io.ErrUnexpectedEOF), belay.ModelNetwork, "cut: unexpected EOF"},
		{"an answer that is too long", f.Cut(cut, wire.ErrTooLong), belay.ModelInvalid, "256 MiB"},
	} {
		if test.err.Kind != test.kind || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got %v of kind %s, want %q of kind %s", test.rule, test.err, test.err.Kind, test.want, test.kind)
		}
	}
	if e := f.NotAResponse(&http.Response{StatusCode: http.StatusFound}, cut); e.Kind != belay.ModelInvalid || e.Status != http.StatusFound {
		t.Errorf("got %+v, want an invalid one with the status", e)
	}
}

// A wrapped error may contain the key. The wrapped error must not be reachable with
// errors.Is.
func TestAScrubbedErrorWrapsNothing(t *testing.T) {
	t.Parallel()
	inner := errors.New("key-of-a-test")
	f := wire.NewFailures("p/m", inner.Error())
	if err := f.New(belay.ModelServer, inner); errors.Is(err, inner) {
		t.Errorf("%v still wraps the error with the key", err)
	}
}

func TestBeginning(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""}, {"12345", "12345"}, {"123456", "12345…"}, {"a\xffb", "ab"}, {"1234ä", "1234…"},
	} {
		if got := wire.Beginning(test.text, 5); got != test.want {
			t.Errorf("Beginning(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		ms, header string
		want       time.Duration
	}{
		{"", "", 0},
		{"", "7", 7 * time.Second},
		{"", "0.5", 500 * time.Millisecond},
		{"250", "7", 250 * time.Millisecond},
		{"nonsense", "7", 7 * time.Second},
		{"", "soon", 0},
		{"", "-3", 0},
		{"1e300", "", wire.MaxWait},
		{"", "1e300", wire.MaxWait},
		{"", now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{"", now.Add(-time.Minute).Format(http.TimeFormat), 0},
	} {
		headers := http.Header{}
		headers.Set("Retry-After-Ms", test.ms)
		headers.Set("Retry-After", test.header)
		if got := wire.RetryAfter(headers, now); got != test.want {
			t.Errorf("%q, %q: got %v, want %v", test.ms, test.header, got, test.want)
		}
	}
}

func TestUnlessDone(t *testing.T) {
	t.Parallel()
	err, why := errors.New("failed"), errors.New("because")
	if got := wire.UnlessDone(t.Context(), err); !errors.Is(got, err) {
		t.Errorf("got %v, want the error", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if got := wire.UnlessDone(ctx, err); errors.Is(got, err) || !errors.Is(got, context.Canceled) || !errors.Is(got, why) {
		t.Errorf("got %v, want the error of the context with its cause", got)
	}
}
