package wiretest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// Serve starts a server that sends the same answer to every request. It returns the server's
// URL. The headers alternate: a name, then its value.
func Serve(t testing.TB, status int, contentType, body string, headers ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Canned is a transport that returns the same answer to every request and uses no network.
// With it, a benchmark measures only the client.
type Canned struct {
	ContentType string
	Body        []byte
}

// RoundTrip implements http.RoundTripper.
func (c *Canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return answer(r, http.StatusOK, c.ContentType, bytes.NewReader(c.Body)), nil
}

// endless is a transport whose answers never end. The answers contain only SSE comments.
type endless struct{ status int }

func (e endless) RoundTrip(r *http.Request) (*http.Response, error) {
	line := ":" + string(bytes.Repeat([]byte("."), 8<<10)) + "\n"
	return answer(r, e.status, "text/event-stream", &repeated{line: []byte(line)}), nil
}

func answer(r *http.Request, status int, contentType string, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body), Request: r,
	}
}

// repeated is a reader that repeats a line without end.
type repeated struct{ line, left []byte }

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		r.left = r.line
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// MedianOf runs f in a benchmark and reports the median of its run times.
func MedianOf(b *testing.B, f func()) {
	b.Helper()
	f()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
}

// Bare sends a request with net/http and decodes each event of the answer once. Benchmarks
// compare Belay with it.
func Bare(b *testing.B, client *http.Client, body []byte) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://localhost/", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var event map[string]any
		if err := json.Unmarshal(data, &event); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStream measures a request with a long conversation, and a bare HTTP request of
// about the same length. The difference of the medians is Belay's overhead.
func BenchmarkStream(b *testing.B, client *http.Client, model belay.Model) {
	b.Helper()
	for _, size := range []int{11, 201, 1001} {
		req := Long(size)
		b.Run(fmt.Sprintf("%d messages/bare HTTP", size), func(b *testing.B) {
			body, err := json.Marshal(req.Messages)
			if err != nil {
				b.Fatal(err)
			}
			MedianOf(b, func() { Bare(b, client, body) })
		})
		b.Run(fmt.Sprintf("%d messages/belay", size), func(b *testing.B) {
			MedianOf(b, func() {
				// A new message has no cached encoding, so each run encodes one message.
				req.Messages[len(req.Messages)-1] = User(strings.Repeat("question ", 110))
				if _, err := Answer(b, model, req); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
