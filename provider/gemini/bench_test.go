package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/internal/wiretest"
)

// answering returns a client whose server answers with a text of some pieces.
func answering(pieces int) *http.Client {
	var b bytes.Buffer
	for i := range pieces {
		b.WriteString(event(parts(fmt.Sprintf(`{"text":"piece %d "}`, i))))
	}
	b.WriteString(event(stopped("STOP")))
	return &http.Client{Transport: &wiretest.Canned{ContentType: "text/event-stream", Body: b.Bytes()}}
}

// BenchmarkStream measures a request at the end of a conversation. There are two
// floors: the SDK in ordinary use, and a bare HTTP request with the bytes that belay sends,
// whose events are decoded once. The overhead is the difference of the medians.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{11, 201, 1001} {
		client := answering(50)
		req := wiretest.Long(size)
		b.Run(fmt.Sprintf("%d messages/bare SDK", size), func(b *testing.B) {
			api, err := sdk.NewClient(context.Background(), &sdk.ClientConfig{APIKey: "k", Backend: sdk.BackendGeminiAPI, HTTPClient: client})
			if err != nil {
				b.Fatal(err)
			}
			contents, config := bare(req)
			wiretest.MedianOf(b, func() {
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
			wiretest.MedianOf(b, func() { bareHTTP(b, client, body) })
		})
		model := gemini.New("m", &gemini.Options{Key: "k", HTTPClient: client})
		b.Run(fmt.Sprintf("%d messages/belay", size), func(b *testing.B) {
			wiretest.MedianOf(b, func() {
				// The new message of a step is encoded each time.
				req.Messages[len(req.Messages)-1] = user(strings.Repeat("question ", 110))
				if _, err := answer(b, model, req); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
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

// bare returns the request for the SDK.
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
