package providertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tap is a server that forwards requests to a service and records the exchanges.
type tap struct {
	*httptest.Server

	t       testing.TB
	service *url.URL

	mu   sync.Mutex
	kept []exchange
}

// newTap starts a tap. It stops when the test ends.
func newTap(t testing.TB, service *url.URL) *tap {
	t.Helper()
	p := &tap{t: t, service: service}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *tap) exchanges() []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kept)
}

// serve forwards a request and streams the answer back.
func (p *tap) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	target := *p.service
	target.Path, target.RawQuery = r.URL.Path, r.URL.RawQuery
	onward, err := http.NewRequestWithContext(r.Context(), r.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		p.t.Errorf("recording: %v", err)
		return
	}
	onward.Header = r.Header.Clone()
	onward.Header.Del("Accept-Encoding") // the recorded answer must be plain text
	onward.Header.Del("Connection")
	answer, err := http.DefaultTransport.RoundTrip(onward)
	if err != nil {
		p.t.Errorf("recording: the service does not answer: %v", err)
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	x := exchange{
		Method: r.Method, Path: r.URL.Path, Request: readable(body), Status: answer.StatusCode,
		ContentType: answer.Header.Get("Content-Type"), RetryAfter: answer.Header.Get("Retry-After"),
	}
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := answer.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(answer.StatusCode)
	var said strings.Builder
	flush := http.NewResponseController(w).Flush
	for buffer := make([]byte, 32<<10); ; {
		n, err := answer.Body.Read(buffer)
		said.Write(buffer[:n])
		_, _ = w.Write(buffer[:n])
		_ = flush()
		if err != nil {
			break // io.EOF, or the answer was cut off
		}
	}
	x.Answer = said.String()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, x)
}

// readable returns a body as JSON. If the body is not JSON, it becomes a JSON string.
func readable(body []byte) json.RawMessage {
	if json.Valid(body) {
		return body
	}
	return encodeJSON(string(body))
}

// player is a server that sends the recorded answers of a service.
type player struct {
	*httptest.Server

	t    testing.TB
	file string

	mu   sync.Mutex
	rest []exchange
}

// newPlayer starts a player. It stops when the test ends.
func newPlayer(t testing.TB, file string, r *recording) *player {
	t.Helper()
	p := &player{t: t, file: file, rest: r.Exchanges}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

// serve sends the next recorded answer. If the request differs from the recorded request,
// serve logs the difference and still sends the answer.
func (p *player) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) == 0 {
		p.t.Errorf("%s: there are more requests than were recorded: %.2000s", p.file, body)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	x := p.rest[0]
	p.rest = p.rest[1:]
	if r.Method != x.Method || r.URL.Path != x.Path {
		p.t.Errorf("%s: a request goes to %s %s, but was recorded as %s %s", p.file, r.Method, r.URL.Path, x.Method, x.Path)
	}
	if scrub(string(readable(body)), "") != string(compacted(x.Request)) {
		p.t.Logf("%s: a request is not the one that was recorded: record again to see whether the service accepts it\n%.2000s\nwas\n%.2000s", p.file, body, x.Request)
	}
	w.Header().Set("Content-Type", x.ContentType)
	if x.RetryAfter != "" {
		w.Header().Set("Retry-After", x.RetryAfter)
	}
	w.WriteHeader(x.Status)
	_, _ = io.WriteString(w, x.Answer) // an error means that the client has left
}

func compacted(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
