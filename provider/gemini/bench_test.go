package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
)

// canned is a transport that answers everything with the same stream, so that a
// benchmark measures what the client does and nothing else.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(c)), Request: r,
	}, nil
}

// answering is a client that hears a text of some pieces.
func answering(pieces int) *http.Client {
	var b bytes.Buffer
	for i := range pieces {
		b.WriteString(event(parts(fmt.Sprintf(`{"text":"piece %d "}`, i))))
	}
	b.WriteString(event(stopped("STOP")))
	return &http.Client{Transport: canned(b.Bytes())}
}

// long is a conversation of some messages of a kilobyte, with twenty tools.
func long(messages int) *belay.Request {
	req := &belay.Request{System: strings.Repeat("Be careful. ", 500)}
	for i := range 20 {
		req.Tools = append(req.Tools, belay.ToolDeclaration{Name: fmt.Sprint("tool", i), Description: strings.Repeat("does things ", 20), InputSchema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	for i := range messages {
		if i%2 == 0 {
			req.Messages = append(req.Messages, user(strings.Repeat("question ", 110)))
		} else {
			req.Messages = append(req.Messages, said(strings.Repeat("an answer ", 100)))
		}
	}
	return req
}

// BenchmarkStream measures a request at the end of a conversation. There are two
// floors: the SDK as a program uses it that knows nothing else, and a bare HTTP
// request of the very bytes that belay sends, whose events are decoded once. The
// overhead is the difference of the medians.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{11, 201, 1001} {
		client := answering(50)
		req := long(size)
		b.Run(fmt.Sprintf("%d messages/bare SDK", size), func(b *testing.B) {
			api, err := sdk.NewClient(context.Background(), &sdk.ClientConfig{APIKey: "k", Backend: sdk.BackendGeminiAPI, HTTPClient: client})
			if err != nil {
				b.Fatal(err)
			}
			contents, config := bare(req)
			medianOf(b, func() {
				for _, err := range api.Models.GenerateContentStream(context.Background(), "m", contents, config) {
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
		b.Run(fmt.Sprintf("%d messages/bare HTTP, same bytes", size), func(b *testing.B) {
			contents, _ := bare(req)
			body, err := json.Marshal(map[string]any{"contents": contents})
			if err != nil {
				b.Fatal(err)
			}
			medianOf(b, func() { bareHTTP(b, client, body) })
		})
		model := gemini.New("m", &gemini.Options{Key: "k", HTTPClient: client})
		b.Run(fmt.Sprintf("%d messages/belay", size), func(b *testing.B) {
			medianOf(b, func() {
				// What a step adds is encoded each time.
				req.Messages[len(req.Messages)-1] = user(strings.Repeat("question ", 110))
				if _, err := answer(b, model, req); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// medianOf runs f and reports the median of the times it takes.
func medianOf(b *testing.B, f func()) {
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

// bareHTTP sends a body and decodes the events of the answer.
func bareHTTP(b *testing.B, client *http.Client, body []byte) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://localhost/v1beta/models/m:streamGenerateContent?alt=sse", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(all) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			var e sdk.GenerateContentResponse
			if err := json.Unmarshal(data, &e); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// bare is the request as a program writes it that uses the SDK directly.
func bare(req *belay.Request) ([]*sdk.Content, *sdk.GenerateContentConfig) {
	config := &sdk.GenerateContentConfig{SystemInstruction: sdk.NewContentFromText(req.System, "")}
	tool := &sdk.Tool{}
	for _, t := range req.Tools {
		tool.FunctionDeclarations = append(tool.FunctionDeclarations, &sdk.FunctionDeclaration{
			Name: t.Name, Description: t.Description,
			ParametersJsonSchema: map[string]any{"type": "object", "properties": map[string]any{"path": map[string]string{"type": "string"}}},
		})
	}
	config.Tools = []*sdk.Tool{tool}
	var contents []*sdk.Content
	for _, m := range req.Messages {
		role := sdk.Role(sdk.RoleUser)
		if m.Role == belay.RoleAssistant {
			role = sdk.RoleModel
		}
		contents = append(contents, sdk.NewContentFromText(m.Text(), role))
	}
	return contents, config
}
