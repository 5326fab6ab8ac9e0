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

// NotAResponse returns why an answer with a status below 400 is not a model's response, such
// as a redirect or the login page of a proxy, and nil if it may be one. Asking again would
// give the same answer. Content types that say nothing about the content are accepted.
func NotAResponse(answer *http.Response) error {
	got := answer.Status
	if answer.StatusCode < http.StatusMultipleChoices {
		kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // empty if it cannot be parsed
		switch kind {
		case "", "text/event-stream", "text/plain", "application/octet-stream":
			return nil
		}
		if strings.Contains(kind, "json") {
			return nil
		}
		got = kind
	}
	return fmt.Errorf("it answered %.60s, not a model's response: is the URL right, or did a proxy or a login page answer?", got)
}

// notListening returns an error that says so if a request failed because nothing listens at
// an address of this machine: trying again would not start the server. It returns nil for
// other failures.
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
	return fmt.Errorf("nothing listens at %s: is the %s started? (%w)", at, what, op.Err)
}

// isRefused reports whether a connection was refused because no program accepts it.
func isRefused(err error) bool {
	const onWindows = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || runtime.GOOS == "windows" && errors.Is(err, onWindows)
}
