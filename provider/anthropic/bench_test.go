package anthropic_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
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
	b.WriteString(event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`))
	b.WriteString(event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	for i := range pieces {
		b.WriteString(event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"piece %d "}}`, i)))
	}
	b.WriteString(event("content_block_stop", `{"type":"content_block_stop","index":0}`))
	b.WriteString(event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`))
	b.WriteString(event("message_stop", `{"type":"message_stop"}`))
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
// floors: the SDK as a program uses it that knows nothing else, and the SDK when
// it is handed the very bytes that belay sends. The overhead is the difference of
// the medians.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{11, 201, 1001} {
		client := answering(50)
		req := long(size)
		params := bare(req)
		api := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithHTTPClient(client), option.WithAPIKey("k"), option.WithMaxRetries(0))
		b.Run(fmt.Sprintf("%d messages/bare SDK", size), func(b *testing.B) {
			medianOf(b, func() {
				stream := api.Messages.NewStreaming(context.Background(), params)
				var message sdk.Message
				for stream.Next() {
					if err := message.Accumulate(stream.Current()); err != nil {
						b.Fatal(err)
					}
				}
				if err := stream.Err(); err != nil {
					b.Fatal(err)
				}
			})
		})
		b.Run(fmt.Sprintf("%d messages/bare SDK, same bytes", size), func(b *testing.B) {
			body, err := params.MarshalJSON()
			if err != nil {
				b.Fatal(err)
			}
			medianOf(b, func() {
				var raw *http.Response
				err := api.Execute(context.Background(), http.MethodPost, "v1/messages", body, &raw)
				stream := ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(raw), err)
				for stream.Next() {
					_ = stream.Current()
				}
				if err := stream.Err(); err != nil {
					b.Fatal(err)
				}
			})
		})
		model := anthropic.New("m", &anthropic.Options{Key: "k", HTTPClient: client})
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

// bare is the request as a program writes it that uses the SDK directly.
func bare(req *belay.Request) sdk.MessageNewParams {
	params := sdk.MessageNewParams{Model: "m", MaxTokens: 8192, System: []sdk.TextBlockParam{{Text: req.System}}}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name: t.Name, Description: param.NewOpt(t.Description),
			InputSchema: sdk.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]string{"type": "string"}}},
		}})
	}
	for _, m := range req.Messages {
		block := sdk.NewTextBlock(m.Text())
		if m.Role == belay.RoleUser {
			params.Messages = append(params.Messages, sdk.NewUserMessage(block))
		} else {
			params.Messages = append(params.Messages, sdk.NewAssistantMessage(block))
		}
	}
	return params
}
