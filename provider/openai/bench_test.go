package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
)

// answering returns a client whose server answers with a text of some pieces.
func answering(api openai.API, pieces int) *http.Client {
	var b bytes.Buffer
	if api == openai.Responses {
		b.WriteString(event("response.created", `{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`))
		b.WriteString(event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`))
		for i := range pieces {
			b.WriteString(event("response.output_text.delta", fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"piece %d "}`, i)))
		}
		b.WriteString(event("response.completed", `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":9}}}`))
	} else {
		for i := range pieces {
			b.WriteString(data(fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"piece %d "},"finish_reason":null}]}`, i)))
		}
		b.WriteString(data(`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":9}}`, "[DONE]"))
	}
	return &http.Client{Transport: &wiretest.Canned{ContentType: streamType, Body: b.Bytes()}}
}

// BenchmarkStream measures a request at the end of a conversation, in both
// protocols. The floor is the SDK in ordinary use. The overhead is the difference of the
// medians.
func BenchmarkStream(b *testing.B) {
	for _, api := range []openai.API{openai.Responses, openai.Chat} {
		for _, size := range []int{11, 201, 1001} {
			client := answering(api, 50)
			req := wiretest.Long(size)
			bare := sdk.NewClient(option.WithHTTPClient(client), option.WithBaseURL("http://localhost/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
			b.Run(fmt.Sprintf("%s/%d messages/bare SDK", api, size), func(b *testing.B) {
				call := bareResponses(b, &bare, req)
				if api == openai.Chat {
					call = bareChat(b, &bare, req)
				}
				wiretest.MedianOf(b, call)
			})
			model := openai.New("m", &openai.Options{Key: "k", HTTPClient: client, API: api, URL: "http://localhost/v1"})
			b.Run(fmt.Sprintf("%s/%d messages/belay", api, size), func(b *testing.B) {
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
}

// parameters returns a schema for the SDK.
func parameters(b *testing.B, schema json.RawMessage) map[string]any {
	b.Helper()
	var m map[string]any
	if err := json.Unmarshal(schema, &m); err != nil {
		b.Fatal(err)
	}
	return m
}

// bareResponses returns a function that sends the request with the SDK.
func bareResponses(b *testing.B, api *sdk.Client, req *belay.Request) func() {
	b.Helper()
	params := responses.ResponseNewParams{Model: "m", Instructions: param.NewOpt(req.System), Store: param.NewOpt(false)}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: t.Name, Description: param.NewOpt(t.Description), Strict: param.NewOpt(false), Parameters: parameters(b, t.InputSchema),
		}})
	}
	for _, m := range req.Messages {
		role := responses.EasyInputMessageRoleUser
		if m.Role == belay.RoleAssistant {
			role = responses.EasyInputMessageRoleAssistant
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, responses.ResponseInputItemParamOfMessage(m.Text(), role))
	}
	return func() {
		stream := api.Responses.NewStreaming(context.Background(), params)
		var text strings.Builder
		for stream.Next() {
			text.WriteString(stream.Current().Delta)
		}
		if err := stream.Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// bareChat returns a function that sends the request with the SDK.
func bareChat(b *testing.B, api *sdk.Client, req *belay.Request) func() {
	b.Helper()
	params := sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(req.System)}}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(sdk.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Description), Parameters: parameters(b, t.InputSchema)}))
	}
	for _, m := range req.Messages {
		if m.Role == belay.RoleUser {
			params.Messages = append(params.Messages, sdk.UserMessage(m.Text()))
		} else {
			params.Messages = append(params.Messages, sdk.AssistantMessage(m.Text()))
		}
	}
	return func() {
		stream := api.Chat.Completions.NewStreaming(context.Background(), params)
		var whole sdk.ChatCompletionAccumulator
		for stream.Next() {
			whole.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			b.Fatal(err)
		}
	}
}
