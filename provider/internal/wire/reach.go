package wire

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
)

// NotAResponse returns an error if an answer with a status below 400 cannot be a model's
// response. Examples are a redirect and the login page of a proxy. A retry would get the
// same answer. NotAResponse also accepts general content types, such as text/plain, and a
// missing content type.
func NotAResponse(answer *http.Response) error {
	got := answer.Status
	if answer.StatusCode < http.StatusMultipleChoices {
		kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // kind is empty if the header cannot be parsed
		switch kind {
		case "", "text/event-stream", "text/plain", "application/octet-stream":
			return nil
		}
		if strings.Contains(kind, "json") {
			return nil
		}
		got = kind
	}
	return fmt.Errorf("the server answered %.60s, which is not a model's response: check the URL, and check whether a proxy or a login page answered", got)
}

// notListening returns an error if a request failed because no program listens at an address
// of this machine. A retry does not help then. For other failures notListening returns nil.
func notListening(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return nil
	}
	what := "server"
	if op.Op == "proxyconnect" {
		what = "proxy"
		if inner, ok := errors.AsType[*net.OpError](op.Err); ok {
			op = inner
		}
	}
	at, ok := op.Addr.(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() || !isRefused(op.Err) {
		return nil
	}
	return fmt.Errorf("no program listens at %s: start the %s (%w)", at, what, op.Err)
}

// isRefused reports whether a connection was refused because no program listens at the
// address.
func isRefused(err error) bool {
	const onWindows = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || runtime.GOOS == "windows" && errors.Is(err, onWindows)
}
