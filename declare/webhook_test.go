package declare_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// server starts a server for webhooks on the loopback interface.
func server(t *testing.T, handle http.HandlerFunc) (address, host string) {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, u.Host
}

// SPEC C-09
func TestWebhookIsPostedTheEnvelope(t *testing.T) {
	t.Parallel()
	const secret = "the-signing-secret"
	address, host := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e envelope
		if err := json.Unmarshal(body, &e); err != nil || e.V != 1 || e.Phase != "tool.pre" || e.Session != "test" || e.Input.Tool != "write" {
			t.Errorf("body = %s, %v, want the envelope", body, err)
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(r.Header.Get("Belay-Timestamp") + "."))
		mac.Write(body)
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("Belay-Signature") != want || r.Header.Get("Belay-Timestamp") == "" {
			t.Errorf("signature = %q, want %q", r.Header.Get("Belay-Signature"), want)
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s of %s, want a POST of JSON", r.Method, r.Header.Get("Content-Type"))
		}
		_, _ = io.WriteString(w, `{"decision": "deny", "reason": "says the server"}`)
	})
	opts := &declare.Options{Allowlist: []string{host}, Environ: []string{"KEY=" + secret}}
	trial := try(t, newPlace(t).set(gate("webhook: { url: '"+address+"/hook?a=b', secret: KEY }"), opts), write)
	if trial.Output.Decision != belay.ToolDeny || trial.Output.Reason != "says the server" || len(trial.Diagnostics) > 0 {
		t.Errorf("%v, want the server's answer", trial)
	}
	opts.Environ = []string{}
	if trial := try(t, newPlace(t).set(gate("webhook: { url: '"+address+"', secret: KEY }"), opts), write); !strings.Contains(trial.Output.Reason, "the webhook was not called") {
		t.Errorf("%v, want nothing sent without the secret", trial)
	}
}

// SPEC C-09, C-03
func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		status int
		body   string
		want   belay.ToolDecision
		code   codes.Code
		reason string
	}{
		{"nothing is no opinion", 200, "", belay.ToolPass, "", ""},
		{"no content is no opinion", 204, "", belay.ToolPass, "", ""},
		{"an answer", 200, `{"decision": "ask"}`, belay.ToolAsk, "", ""},
		{"text is shown", 200, "hello", belay.ToolPass, "", ""},
		{"an unknown key", 200, `{"decisio": "ask"}`, belay.ToolDeny, codes.OutputInvalid, "decisio"},
		{"null is no opinion", 200, "null", belay.ToolPass, "", ""},
		{"a list is no answer", 200, "[]", belay.ToolDeny, codes.OutputInvalid, "not an object"},
		{"a debug line in front", 200, "debug\n{\"decision\": \"ask\"}", belay.ToolDeny, codes.OutputInvalid, "mixes JSON and text"},
		{"too much", 200, strings.Repeat("x", 1<<20+1), belay.ToolDeny, codes.OutputInvalid, "more than 1024 KiB"},
		{"an error of the server", 500, `{"decision": "pass"}`, belay.ToolDeny, codes.Error, "status 500"},
		{"an address that is gone", 404, "", belay.ToolDeny, codes.Error, "status 404"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			address, host := server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			trial := try(t, newPlace(t).set(gate("webhook: "+address), &declare.Options{Allowlist: []string{host}}), write)
			if trial.Output.Decision != test.want || code(trial) != test.code || !strings.Contains(trial.Output.Reason, test.reason) {
				t.Errorf("%v, reason %q: want %q, %q, %q", trial, trial.Output.Reason, test.want, test.code, test.reason)
			}
		})
	}
}

// SPEC C-09
func TestWebhookIsNotRedirected(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	elsewhere, _ := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		address, host := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, status) })
		trial := try(t, newPlace(t).set(gate("webhook: "+address), &declare.Options{Allowlist: []string{host}}), write)
		if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, "which Belay does not follow") || reached.Load() {
			t.Errorf("%d: %v, want the redirect not followed", status, trial)
		}
	}
}

// SPEC C-09
func TestWebhookAllowlist(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		list    []string
		url     string
		allowed bool
	}{
		{"nothing is allowed by default", nil, "https://example.com/", false},
		{"a host", []string{"example.com"}, "https://example.com/a", true},
		{"a host in capitals", []string{"Example.COM"}, "https://EXAMPLE.com/a", true},
		{"a host with its root", []string{"example.com"}, "https://example.com./a", true},
		{"the port of the scheme", []string{"example.com"}, "https://example.com:443/a", true},
		{"another port", []string{"example.com"}, "https://example.com:8443/a", false},
		{"a host with a port", []string{"example.com:8443"}, "https://example.com:8443/a", true},
		{"a host that ends alike", []string{"example.com"}, "https://badexample.com/", false},
		{"a host that begins alike", []string{"example.com"}, "https://example.com.evil.org/", false},
		{"hosts below", []string{"*.example.com"}, "https://a.b.example.com/", true},
		{"hosts below, not the host", []string{"*.example.com"}, "https://example.com/", false},
		{"an address", []string{"https://example.com/hooks"}, "https://example.com/hooks/a", true},
		{"an address itself", []string{"https://example.com/hooks"}, "https://example.com/hooks?a=b", true},
		{"another path", []string{"https://example.com/hooks"}, "https://example.com/hooksevil", false},
		{"a path that goes up", []string{"https://example.com/hooks"}, "https://example.com/hooks/../admin", false},
		{"a path that goes up, spelled otherwise", []string{"https://example.com/hooks"}, "https://example.com/hooks/%2e%2e/admin", false},
		{"this machine", []string{"127.0.0.1:1"}, "http://127.0.0.1:1/", true},
		{"this machine by its other address", []string{"[::1]:1"}, "http://[::1]:1/", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var called atomic.Bool
			opts := &declare.Options{Allowlist: test.list, Transport: transport(func(r *http.Request) (*http.Response, error) {
				called.Store(true)
				return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
			})}
			trial := try(t, newPlace(t).set(gate("webhook: '"+test.url+"'"), opts), write)
			if called.Load() != test.allowed || (trial.Output.Decision == belay.ToolPass) != test.allowed {
				t.Errorf("called %t, %v: want %t", called.Load(), trial, test.allowed)
			}
			if !test.allowed && !strings.Contains(trial.Output.Reason, "not on the allowlist") {
				t.Errorf("reason = %q", trial.Output.Reason)
			}
		})
	}
	for _, bad := range []string{"", "*", "https://", "ftp://example.com", "a/b", "https://u@example.com/", "https://example.com/?x=1"} {
		if _, err := declare.New(nil, hook.Origin{}, &declare.Options{Allowlist: []string{bad}}); err == nil {
			t.Errorf("allowlist %q: want it refused", bad)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// SPEC C-09
func TestWebhookEndsWithItsTimeout(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	address, host := server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done() // ends when the client has gone
		close(gone)
	})
	trial := try(t, newPlace(t).set(gate("webhook: "+address, "timeout: 100ms"), &declare.Options{Allowlist: []string{host}}), write)
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout {
		t.Errorf("%v, want a denial with hook.timeout", trial)
	}
	<-gone
}

// SPEC C-09
func TestWebhookThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	trial := try(t, newPlace(t).set(gate("webhook: http://"+host+"/"), &declare.Options{Allowlist: []string{host}}), write)
	if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, "could not be reached") || time.Since(begun) > 20*time.Second {
		t.Errorf("%v, want a denial", trial)
	}
}
