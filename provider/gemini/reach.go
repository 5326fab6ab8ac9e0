package gemini

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

// strange says why an answer with the status of success is none of a model, as the page
// is not with which a proxy wants a login. It would be no other one if it was asked for
// again. A type that says nothing about what is in it is not taken amiss.
func strange(answer *http.Response) error {
	what := answer.Status
	if answer.StatusCode < http.StatusMultipleChoices {
		kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // what cannot be read is empty
		switch kind {
		case "", "text/event-stream", "text/plain", "application/octet-stream":
			return nil
		}
		if strings.Contains(kind, "json") {
			return nil
		}
		what = kind
	}
	return fmt.Errorf("it answered %.60s, not a model's response: does a proxy or a login page stand in between, is the URL right?", what)
}

// unheard says that nothing listens at an address of this machine, if that is why a
// request failed: trying again would not start it. It is nil for other failures.
func unheard(err error) error {
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

// isRefused reports whether nobody was there to take a connection.
func isRefused(err error) bool {
	const onWindows = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || runtime.GOOS == "windows" && errors.Is(err, onWindows)
}
