package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// schema draws a random schema, which may be invalid.
func schema(r *rapid.T, depth int) any {
	if depth == 0 {
		return rapid.SampledFrom([]any{true, false, 7, map[string]any{}, map[string]any{"type": "array"}, map[string]any{"$ref": "#/$defs/a"}, map[string]any{"type": []string{"object", "null"}}}).Draw(r, "leaf")
	}
	s := map[string]any{}
	for _, keyword := range rapid.SliceOfN(rapid.SampledFrom([]string{
		"type", "properties", "items", "anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$defs", "required", "description", "additionalProperties", "prefixItems", "x-mine",
	}), 0, 5).Draw(r, "keywords") {
		below := func() any { return schema(r, depth-1) }
		switch keyword {
		case "type":
			s[keyword] = rapid.SampledFrom([]any{"object", "array", "string", []string{"array", "null"}, 7}).Draw(r, "type")
		case "properties", "$defs":
			s[keyword] = map[string]any{"a": below(), "b": below()}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			s[keyword] = []any{below(), below()}
		case "enum":
			s[keyword] = []any{1, map[string]any{"type": "array"}}
		case "$ref":
			s[keyword] = rapid.SampledFrom([]string{"#/$defs/a", "#/$defs/b", "#/nowhere", "https://example.com"}).Draw(r, "reference")
		case "required":
			s[keyword] = rapid.SampledFrom([]any{[]string{"a"}, 7}).Draw(r, "required")
		case "description":
			s[keyword] = rapid.SampledFrom([]any{"said", 7}).Draw(r, "description")
		default:
			s[keyword] = below()
		}
	}
	return s
}

// For any schema, either the service accepts the tool or CheckTools rejects it.
func TestAnySchemaIsTakenOrRefused(t *testing.T) {
	t.Parallel()
	server := providertest.NewResponses(t, nil)
	model := open(server, &openai.Options{API: openai.Responses})
	rapid.Check(t, func(r *rapid.T) {
		raw, err := json.Marshal(schema(r, 3))
		if err != nil {
			r.Fatal(err)
		}
		req := hello()
		req.Tools = []belay.ToolDeclaration{{Name: "look", InputSchema: raw}}
		if model.CheckTools(req.Tools) != nil {
			return
		}
		server.Script(providertest.Reply{})
		if _, err := answer(t, model, req); err != nil {
			r.Fatalf("%s: %v", raw, err)
		}
	})
}

// For any answer of the server, the sequence ends with exactly one response or one error.
func TestAnyAnswerIsAResponseOrAFailure(t *testing.T) {
	t.Parallel()
	items := event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"look"}}`) +
		event("response.function_call_arguments.delta", `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`) +
		event("response.reasoning_summary_text.delta", `{"type":"response.reasoning_summary_text.delta","output_index":1,"summary_index":0,"delta":"hm"}`) +
		event("response.output_item.done", `{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"rs","encrypted_content":"x","summary":[{"text":"hm"}]}}`) +
		event("response.completed", `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":1}}}}`)
	chunks := data(`{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`, `[DONE]`)
	junk := []string{"", "null", "0", "-1", "{}", "[]", `""`, "\n\n", "data:", "{", "}", "\x00", "1e999", `"error":{},`}
	rapid.Check(t, func(r *rapid.T) {
		api, body := openai.Responses, items
		if rapid.Bool().Draw(r, "chat") {
			api, body = openai.Chat, chunks
		}
		for range rapid.IntRange(0, 4).Draw(r, "cuts") {
			from := rapid.IntRange(0, len(body)).Draw(r, "from")
			to := min(len(body), from+rapid.IntRange(0, 12).Draw(r, "length"))
			body = body[:from] + rapid.SampledFrom(junk).Draw(r, "junk") + body[to:]
		}
		c := &wiretest.Canned{ContentType: rapid.SampledFrom([]string{streamType, jsonType}).Draw(r, "type"), Body: []byte(body)}
		if c.ContentType == jsonType {
			c.Body = []byte(strings.TrimPrefix(strings.SplitN(body, "\n", 2)[0], "data: "))
		}
		model := openai.New("m", &openai.Options{API: api, Key: "k", URL: "http://localhost", HTTPClient: &http.Client{Transport: c}})
		ends := 0
		for chunk, err := range model.Stream(t.Context(), hello()) {
			if err != nil || chunk.Response != nil {
				ends++
			}
		}
		if ends != 1 {
			r.Fatalf("the sequence has %d ends: %s", ends, body)
		}
	})
}

// The service must accept any tool name, and different names must stay different.
func TestAnyNameIsTaken(t *testing.T) {
	t.Parallel()
	server := providertest.NewChat(t, nil)
	model := open(server, &openai.Options{API: openai.Chat})
	names := rapid.OneOf(rapid.StringN(1, 20, -1), rapid.StringMatching(`[a-z_./-]{1,80}`), rapid.StringMatching(`[a-c]{62,66}`))
	rapid.Check(t, func(r *rapid.T) {
		some := rapid.SliceOfNDistinct(names, 1, 6, rapid.ID[string]).Draw(r, "names")
		req := hello()
		var calls, results []belay.Part
		for i, name := range some {
			req.Tools = append(req.Tools, belay.ToolDeclaration{Name: name})
			calls, results = append(calls, called(name, name, fmt.Sprintf(`{"i":%d}`, i))), append(results, result(name, name, belay.Result{}))
		}
		req.Messages = append(req.Messages, message(belay.RoleAssistant, calls...), message(belay.RoleUser, results...))
		server.Script(providertest.Reply{})
		if _, err := answer(t, model, req); err != nil {
			r.Fatal(err)
		}
	})
}
