package anthropic_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/internal/wiretest"
)

// answering returns a client whose server answers with a text of some pieces.
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
	return &http.Client{Transport: &wiretest.Canned{ContentType: "text/event-stream", Body: b.Bytes()}}
}

// BenchmarkStream measures a request at the end of a conversation. There are two
// floors: the SDK in ordinary use, and the SDK when it gets the bytes that belay sends.
// The overhead is the difference of the medians.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{11, 201, 1001} {
		client := answering(50)
		req := wiretest.Long(size)
		params := bare(req)
		api := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithHTTPClient(client), option.WithAPIKey("k"), option.WithMaxRetries(0))
		b.Run(fmt.Sprintf("%d messages/bare SDK", size), func(b *testing.B) {
			wiretest.MedianOf(b, func() {
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
			wiretest.MedianOf(b, func() {
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

// bare returns the request for the SDK.
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
