package declare

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/netguard"
	"github.com/belay-run/belay/internal/tracecontext"
)

// The headers of a signed call. The signature is "sha256=" and an HMAC-SHA256 in
// hexadecimal digits. The signed text is the timestamp, a dot and the body.
const (
	SignatureHeader = "Belay-Signature"
	TimestampHeader = "Belay-Timestamp"
)

// Sign returns the signature of a call. Servers can use it to check calls.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// allowance is an entry of the allowlist.
type allowance struct {
	scheme string // empty for any scheme
	host   string // with the port, if it is not the scheme's default
	under  bool   // only subdomains of host
	path   string // empty for any path
}

func readAllowlist(entries []string) ([]allowance, error) {
	var list []allowance
	for _, entry := range entries {
		a := allowance{}
		rest := entry
		if strings.Contains(entry, "://") {
			u, err := url.Parse(entry)
			if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
				return nil, fmt.Errorf("allowlist: %q is not a URL: write https://host/path, or a host", entry)
			}
			a.scheme, rest, a.path = u.Scheme, hostOf(u), u.Path
		}
		rest, a.under = strings.CutPrefix(rest, "*.")
		a.host = strings.ToLower(rest)
		if a.host == "" || strings.ContainsAny(a.host, "/*@?# ") {
			return nil, fmt.Errorf("allowlist: %q is not a host: write host, host:port, *.host or https://host/path", entry)
		}
		list = append(list, a)
	}
	return list, nil
}

// hostOf returns the host of a URL, with the port if it is not the scheme's default.
func hostOf(u *url.URL) string {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	port := u.Port()
	if port == "" || u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, port)
}

func (a allowance) covers(u *url.URL) bool {
	host := hostOf(u)
	if a.under {
		if !strings.HasSuffix(host, "."+a.host) {
			return false
		}
	} else if host != a.host {
		return false
	}
	if a.scheme != "" && a.scheme != u.Scheme {
		return false
	}
	if a.path == "" || a.path == "/" {
		return true
	}
	path := u.EscapedPath()
	if strings.Contains(path, "..") || strings.Contains(strings.ToLower(path), "%2e") || strings.Contains(strings.ToLower(path), "%2f") {
		return false // the server may resolve this path to another path
	}
	base := strings.TrimSuffix(a.path, "/")
	return path == base || strings.HasPrefix(path, base+"/")
}

// Allowed reports whether an allowlist permits calls to a URL. See [Options].Allowlist.
func Allowed(allowlist []string, address string) (bool, error) {
	allowed, err := readAllowlist(allowlist)
	if err != nil {
		return false, fmt.Errorf("declare: %w", err)
	}
	u, err := endpoint(address)
	if err != nil {
		return false, fmt.Errorf("declare: %w", err)
	}
	return slices.ContainsFunc(allowed, func(a allowance) bool { return a.covers(u) }), nil
}

// check returns an error if the URL is not a valid endpoint or not in the allowlist.
func (s *Set) check(u *url.URL) error {
	if _, err := endpoint(u.String()); err != nil {
		return &hook.SafeError{Code: codes.Error, Message: "the webhook's URL is refused", Err: err}
	}
	for _, a := range s.allowed {
		if a.covers(u) {
			return nil
		}
	}
	return &hook.SafeError{
		Code: codes.Error, Message: "the webhook's URL is not on the allowlist",
		Err: fmt.Errorf("%s: ask the operator to add it to the allowlist", hostOf(u)),
	}
}

// newClient makes the HTTP client for webhooks. It follows no redirects and keeps no
// cookies. If transport is nil, the client uses no proxy, and checks the IP address when it
// connects.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		local := &net.Dialer{Timeout: 10 * time.Second, Control: onlyLoopback}
		guarded := netguard.Transport(nil)
		dial := guarded.DialContext
		guarded.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if plain, _ := ctx.Value(plainKey{}).(bool); plain {
				return local.DialContext(ctx, network, addr)
			}
			return dial(ctx, network, addr)
		}
		transport = guarded
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plainKey is the context key of calls without TLS. They must not leave this machine,
// even if localhost resolves to another address.
type plainKey struct{}

func onlyLoopback(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().IsLoopback() {
		return errors.New("http is only allowed to this machine: use https")
	}
	return nil
}

func (h *handler) newWebhook() (func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error), error) {
	if h.d.Webhook == nil {
		return nil, errors.New("the webhook has no url")
	}
	u, err := endpoint(h.d.Webhook.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) { return h.webhook(ctx, u, e) }, nil
}

// webhook posts the envelope and reads the answer.
func (h *handler) webhook(ctx context.Context, u *url.URL, e *worker.Envelope) (json.RawMessage, error) {
	body, err := encode(e)
	if err != nil {
		return nil, err
	}
	if body, err = h.set.redact.json(body); err != nil {
		return nil, err
	}
	if u.Scheme == "http" {
		ctx = context.WithValue(ctx, plainKey{}, true)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if err := h.set.check(request.URL); err != nil { // check exactly the URL that is called
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "belay")
	if e.Traceparent != "" {
		request.Header.Set(tracecontext.Header, e.Traceparent)
	}
	if name := h.d.Webhook.Secret; name != "" {
		secret := h.set.env.host[name]
		if secret == "" {
			return nil, &hook.SafeError{Code: codes.Error, Message: "the webhook was not called, because the variable with its secret is not set: set the variable"}
		}
		now := strconv.FormatInt(time.Now().Unix(), 10)
		request.Header.Set(TimestampHeader, now)
		request.Header.Set(SignatureHeader, Sign(secret, now, body))
	}
	return h.exchange(ctx, request)
}

func (h *handler) exchange(ctx context.Context, request *http.Request) (json.RawMessage, error) {
	response, err := h.set.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &hook.SafeError{Code: codes.Error, Message: "the webhook could not be reached", Err: errors.Unwrap(err)}
	}
	defer func() { _ = response.Body.Close() }() // only read, so an error does not matter
	out := newOutput()
	_, err = io.Copy(out, response.Body)
	return h.codec.read(out, responded(ctx, response.StatusCode, out, err))
}

// responded returns an error if the response is not usable, or nil.
func responded(ctx context.Context, status int, out *output, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case out.total > mostOutput:
		return invalid(fmt.Sprintf("the webhook answered more than %d KiB", mostOutput>>10), nil)
	case err != nil:
		return &hook.SafeError{Code: codes.Error, Message: "the webhook's answer is incomplete", Err: err}
	case status >= 300 && status < 400:
		return &hook.SafeError{Code: codes.Error, Message: "the webhook answered with a redirect, which Belay does not follow: use the final URL"}
	case status < 200 || status >= 300:
		return &hook.SafeError{Code: codes.Error, Message: fmt.Sprintf("the webhook answered with status %d", status)}
	default:
		return nil
	}
}
