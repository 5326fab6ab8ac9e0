package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

const (
	jsonType   = "application/json"
	streamType = "text/event-stream"
)

func TestStopReasons(t *testing.T) {
	t.Parallel()
	call := []providertest.Part{providertest.Call("c1", "look", "{}")}
	for _, test := range []struct {
		api   openai.API
		word  string
		parts []providertest.Part
		want  belay.StopReason
	}{
		{openai.Responses, "", nil, belay.StopEnd},
		{openai.Responses, "", call, belay.StopToolUse},
		{openai.Responses, "max_output_tokens", nil, belay.StopMaxTokens},
		{openai.Responses, "content_filter", nil, belay.StopRefusal},
		{openai.Responses, "a_word_of_tomorrow", nil, belay.StopEnd},
		{openai.Responses, "a_word_of_tomorrow", call, belay.StopToolUse},
		{openai.Chat, "stop", nil, belay.StopEnd},
		{openai.Chat, "stop", call, belay.StopToolUse}, // many servers send this
		{openai.Chat, "tool_calls", call, belay.StopToolUse},
		{openai.Chat, "length", nil, belay.StopMaxTokens},
		{openai.Chat, "content_filter", nil, belay.StopRefusal},
		{openai.Chat, "model_length", nil, belay.StopMaxTokens}, // from Mistral
		{openai.Chat, "model_context_window_exceeded", nil, belay.StopMaxTokens},
		{openai.Chat, "sensitive", nil, belay.StopRefusal}, // from Z.ai
		{openai.Chat, "a_word_of_tomorrow", nil, belay.StopEnd},
	} {
		t.Run(fmt.Sprintf("%s: %q with %d calls is %s", test.api, test.word, len(test.parts), test.want), func(t *testing.T) {
			t.Parallel()
			server := providertest.StartResponses(t)
			if test.api == openai.Chat {
				server = providertest.StartChat(t)
			}
			server.Script(providertest.Reply{Parts: test.parts, StopWord: test.word})
			r, err := answer(t, open(server, &openai.Options{API: test.api}), hello())
			if err != nil || r.StopReason != test.want || r.Model != "model-of-a-test" {
				t.Errorf("got %+v, %v, want %s of model-of-a-test", r, err, test.want)
			}
		})
	}
}

// SPEC L-04
func TestRefusalsAreToldApart(t *testing.T) {
	t.Parallel()
	errorOf := func(fields string) string { return `{"error":{` + fields + `}}` }
	for _, test := range []struct {
		rule   string
		status int
		body   string
		kind   belay.ModelErrorKind
		want   string
	}{
		{"the page of a proxy is repeated in part", 502, "<html>bad gateway" + strings.Repeat(" ", 5000) + "end</html>", belay.ModelServer, "bad gateway"},
		{"a body that is a list is classified by its status", 429, `["slow down"]`, belay.ModelRateLimited, "slow down"},
		{"a body that is a word is classified by its status", 400, `"no"`, belay.ModelInvalid, "no"},
		{"a body that is missing is classified by its status", 529, "", belay.ModelOverloaded, "529"},
		{"an error may be a mere text", 400, `{"error":"no such model"}`, belay.ModelInvalid, "no such model"},
		{"a message may stand alone", 404, `{"message":"not here"}`, belay.ModelInvalid, "not here"},
		{"a code may be a number", 400, errorOf(`"code":400,"message":"bad"`), belay.ModelInvalid, "bad"},
		{"OpenAI has a code for what is too long", 400, errorOf(`"code":"context_length_exceeded","message":"too much"`), belay.ModelTooLong, "too much"},
		{"vLLM says it in words", 400, errorOf(`"type":"BadRequestError","message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"`), belay.ModelTooLong, "8192"},
		{"llama.cpp has a type for it", 400, errorOf(`"code":400,"type":"exceed_context_size_error","message":"request (4390 tokens) is long"`), belay.ModelTooLong, "4390"},
		{"llama.cpp may say it with status 500", 500, errorOf(`"code":500,"type":"server_error","message":"Context size has been exceeded."`), belay.ModelTooLong, "exceeded"},
		{"vLLM has other words for it", 400, errorOf(`"type":"BadRequestError","message":"You passed 9000 input tokens and requested 0 output tokens. However, the model's context length is only 8192 tokens"`), belay.ModelTooLong, "8192"},
		{"and others", 400, errorOf(`"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192."`), belay.ModelTooLong, "8192"},
		{"SGLang says it in words", 400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","code":400}`, belay.ModelTooLong, "9000"},
		{"LM Studio says it in words", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, belay.ModelTooLong, "greater"},
		{"xAI says it in words", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, belay.ModelTooLong, "537812"},
		{"Moonshot says it in words", 400, errorOf(`"type":"invalid_request_error","message":"Invalid request: Your request exceeded model token limit: 262144"`), belay.ModelTooLong, "262144"},
		{"Z.ai says it in words", 400, errorOf(`"code":"1261","message":"Prompt exceeds max length"`), belay.ModelTooLong, "max length"},
		{"OpenRouter quotes what another server said", 400, errorOf(`"code":400,"message":"Provider returned error","metadata":{"provider_name":"Nvidia","raw":"{\"error\":{\"message\":\"This model's maximum context length is 262144 tokens.\",\"type\":\"Bad Request\",\"code\":400}}"}`), belay.ModelTooLong, "262144"},
		{"with a code of its own", 400, errorOf(`"code":400,"message":"Provider returned error","metadata":{"raw":{"error":{"message":"no","code":"context_length_exceeded"}}}`), belay.ModelTooLong, "returned error: context_length_exceeded: no"},
		{"or without one", 502, errorOf(`"code":502,"message":"Provider returned error","metadata":{"raw":"upstream is gone"}`), belay.ModelServer, "returned error: upstream is gone"},
		{"what it quotes may be nothing", 502, errorOf(`"code":502,"message":"Provider returned error","metadata":"none"`), belay.ModelServer, "returned error"},
		{"what it quotes is bounded", 502, errorOf(`"message":"Provider returned error","metadata":{"raw":"` + strings.Repeat("x", 5000) + `"}`), belay.ModelServer, "xxx"},
		{"the key is taken out of what it quotes", 400, errorOf(`"message":"Provider returned error","metadata":{"raw":"key-of-a-test"}`), belay.ModelInvalid, "[key]"},
		{"a rate limit is not too long for speaking of context", 429, errorOf(`"message":"slow down: maximum context length per minute"`), belay.ModelRateLimited, "slow down"},
		{"more than a minute's tokens at once never passes", 429, errorOf(`"type":"tokens","code":"rate_limit_exceeded","message":"Request too large for gpt on tokens per min"`), belay.ModelTooLong, "Request too large"},
		{"an empty purse does not fill by waiting", 429, errorOf(`"type":"insufficient_quota","code":"insufficient_quota","message":"check your plan"`), belay.ModelInvalid, "check your plan"},
		{"Moonshot has another word for it", 429, errorOf(`"type":"exceeded_current_quota_error","message":"recharge"`), belay.ModelInvalid, "recharge"},
		{"503 with the word overloaded is overloaded", 503, errorOf(`"message":"The engine is currently overloaded"`), belay.ModelOverloaded, "overloaded"},
		{"503 without it is the server's", 503, errorOf(`"message":"Service unavailable"`), belay.ModelServer, "unavailable"},
		{"a slow-down is overloaded", 503, errorOf(`"code":"slow_down","message":"reduce your rate"`), belay.ModelOverloaded, "reduce"},
		{"408 may pass", 408, errorOf(`"message":"timed out"`), belay.ModelServer, "timed out"},
		{"402 does not", 402, errorOf(`"code":402,"message":"more credits"`), belay.ModelInvalid, "more credits"},
		{"the key is taken out", 401, errorOf(`"message":"key-of-a-test is wrong"`), belay.ModelAuth, "[key] is wrong"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			for _, api := range []openai.API{openai.Responses, openai.Chat} {
				_, err := answer(t, wild(t, api, test.status, jsonType, test.body), hello())
				if e := wantFailure(t, err, test.kind, test.want); e.Status != test.status {
					t.Errorf("the status is %d, want %d", e.Status, test.status)
				}
				if len(err.Error()) > 1000 || strings.Contains(err.Error(), "%!") {
					t.Errorf("the error is too long or badly worded: %v", err)
				}
			}
		})
	}
}

func TestAnswersOutOfTheOrdinary(t *testing.T) {
	t.Parallel()
	const (
		completed = `{"type":"response.completed","response":{"model":"m","status":"completed","usage":{"input_tokens":5,"output_tokens":7}}}`
		finished  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		content   = `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
	)
	textItem := event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"a"}]}}`)
	for _, test := range []struct {
		rule        string
		api         openai.API
		contentType string
		body        string
		kind        belay.ModelErrorKind // the kind of the error; empty if there is none
		want        string               // a part of the error, or the parts of the response in JSON
	}{
		{"a page in place of a stream is no response", openai.Responses, "text/html", "<html>log in</html>", belay.ModelInvalid, "answered text/html"},
		{"nothing in place of a stream is no response", openai.Chat, streamType, "", belay.ModelNetwork, "before the response was complete"},
		{"half an event is no event", openai.Responses, streamType, "event: response.completed\ndata: " + completed + "\n", belay.ModelNetwork, "before the response was complete"},
		{"an event that is not JSON is the server's fault", openai.Responses, streamType, event("response.output_item.added", "{"), belay.ModelServer, "response.output_item.added"},
		{"a chunk that is not JSON is the server's fault", openai.Chat, streamType, data("{"), belay.ModelServer, "chunk"},
		{"an answer that is not JSON is the server's fault", openai.Chat, jsonType, "{", belay.ModelServer, "chunk"},
		{"an answer without a response is the server's fault", openai.Chat, jsonType, "{}", belay.ModelServer, "contains no response"},
		{"a response without output is the server's fault", openai.Responses, jsonType, "{}", belay.ModelServer, "contains no response"},

		{"an error has its fields in the event", openai.Responses, streamType, event("error", `{"type":"error","code":"rate_limit_exceeded","message":"slow"}`), belay.ModelRateLimited, "slow"},
		{"or in one of its own", openai.Responses, streamType, event("error", `{"type":"error","error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"busy"}}`), belay.ModelOverloaded, "busy"},
		{"or in a response that failed", openai.Responses, streamType, event("response.failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oh"}}}`), belay.ModelServer, "oh"},
		{"a response may fail without a word", openai.Responses, streamType, event("response.failed", `{"type":"response.failed","response":{"status":"failed"}}`), belay.ModelServer, "gives no reason"},
		{"a response that is too long may show in the stream", openai.Responses, streamType, event("response.failed", `{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}`), belay.ModelTooLong, "too long"},
		{"a prompt that is refused may show in the stream", openai.Responses, streamType, event("response.failed", `{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"no"}}}`), belay.ModelInvalid, "no"},
		{"a policy may show in the stream", openai.Responses, streamType, event("response.failed", `{"type":"response.failed","response":{"error":{"code":"cyber_policy","message":"no"}}}`), belay.ModelInvalid, "no"},
		{"an error of an unknown kind is the server's", openai.Responses, streamType, event("error", `{"type":"error","code":"error_of_tomorrow","message":"hm"}`), belay.ModelServer, "hm"},
		{"a key is taken out of an error in the stream", openai.Responses, streamType, event("error", `{"type":"error","message":"key-of-a-test"}`), belay.ModelServer, "[key]"},
		{"an error of authentication may show in the stream", openai.Chat, streamType, data(`{"error":{"code":"invalid_api_key","message":"who"}}`), belay.ModelAuth, "who"},
		{"a chunk may be an error with a status as its code", openai.Chat, streamType, data(content, `{"error":{"code":429,"message":"slow"}}`), belay.ModelRateLimited, "slow"},
		{"an error may be the whole answer", openai.Chat, jsonType, `{"error":{"code":400,"type":"exceed_context_size_error","message":"long"}}`, belay.ModelTooLong, "long"},

		{"an error may be in the name of its event alone", openai.Responses, streamType, event("error", `{"error":{"code":"context_length_exceeded","message":"long"}}`), belay.ModelTooLong, "long"},
		{"an error may be of something on the way", openai.Responses, streamType, data(`{"error":{"message":"Overloaded","type":"overloaded_error"}}`), belay.ModelOverloaded, "Overloaded"},
		{"an event may be called an error in Chat too", openai.Chat, streamType, data(content) + event("error", `{"message":"slow","code":"429"}`), belay.ModelRateLimited, "slow"},
		{"a reason may be a failure", openai.Chat, streamType, data(content, `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`, "[DONE]"), belay.ModelServer, "aborted the response"},
		{"a failure may be one of load", openai.Chat, streamType, data(content, `{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}`, "[DONE]"), belay.ModelOverloaded, "aborted the response"},
		{"an error may be that of a choice", openai.Chat, jsonType, `{"choices":[{"message":{"content":"a"},"finish_reason":"error","error":{"code":429,"message":"slow"}}]}`, belay.ModelRateLimited, "slow"},

		{"what is not known may hold anything", openai.Responses, streamType, event("response.delta_of_tomorrow", `{"type":"response.delta_of_tomorrow","delta":{"a":1},"item":7}`) + textItem +
			event("response.output_item.done", `{"type":"response.output_item.done","output_index":1,"item":{"type":"item_of_tomorrow","content":"b","summary":"c","arguments":{}}}`) + event("response.completed", completed), "", `[{"type":"text","text":"a"}]`},
		{"so may what comes whole", openai.Responses, jsonType, `{"status":"completed","output":[{"type":"item_of_tomorrow","content":"b"},{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`, "", `[{"type":"text","text":"a"}]`},
		{"types may be in the data alone", openai.Responses, streamType, data(`{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, completed), "", `[{"type":"text","text":"a"}]`},
		{"what is not known is passed over", openai.Responses, streamType, ": a comment\n\n" + event("event_of_tomorrow", `{"type":"event_of_tomorrow"}`) + textItem +
			event("response.output_item.added", `{"type":"response.output_item.added","output_index":1,"item":{"type":"item_of_tomorrow","id":"x"}}`) + event("response.completed", completed) + data("[DONE]"), "", `[{"type":"text","text":"a"}]`},
		{"an item may come whole", openai.Responses, streamType, textItem + event("response.completed", completed), "", `[{"type":"text","text":"a"}]`},
		{"a response may come whole at the end of its stream", openai.Responses, streamType, event("response.completed", `{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":1}"}]}}`), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{"at":1}}}]`},
		{"arguments may come whole", openai.Responses, streamType, event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"look"}}`) +
			event("response.function_call_arguments.done", `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"at\":1}"}`) + event("response.completed", completed), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{"at":1}}}]`},
		{"arguments of one call may come whole while those of another come in pieces", openai.Responses, streamType, event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"look"}}`) +
			event("response.output_item.added", `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c2","name":"look"}}`) +
			event("response.function_call_arguments.delta", `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"at\":2}"}`) +
			event("response.function_call_arguments.done", `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"at\":1}"}`) +
			event("response.function_call_arguments.done", `{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"at\":2}"}`) + event("response.completed", completed), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{"at":1}}},{"type":"tool_call","call":{"id":"c2","tool":"look","input":{"at":2}}}]`},
		{"a model that hides nothing thinks aloud", openai.Responses, streamType, event("response.reasoning_text.delta", `{"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}`) + event("response.completed", completed), "", `[{"type":"thinking","text":"hm","provider":"P"}]`},
		{"a text may have a phase", openai.Responses, streamType, event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"a"}]}}`) + event("response.completed", completed), "", `[{"type":"text","text":"a","opaque":{"phase":"commentary"},"provider":"P"}]`},

		{"the last line may be missing", openai.Chat, streamType, data(content, finished), "", `[{"type":"text","text":"a"}]`},
		{"but not the reason", openai.Chat, streamType, data(content), belay.ModelNetwork, "before the response was complete"},
		{"a reason may come with the last piece", openai.Chat, streamType, data(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, "[DONE]"), "", `[{"type":"text","text":"a"}]`},
		{"content may be a list", openai.Chat, streamType, data(`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, finished, "[DONE]"), "", `[{"type":"text","text":"ab"}]`},
		{"choices that were not asked for are passed over", openai.Chat, streamType, data(`{"choices":[{"index":1,"delta":{"content":"b"}}]}`, content, finished, "[DONE]"), "", `[{"type":"text","text":"a"}]`},
		{"arguments may be an object", openai.Chat, streamType, data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":{"at":1}}}]}}]}`, finished, "[DONE]"), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{"at":1}}}]`},
		{"calls may have one number and ids of their own", openai.Chat, streamType, data(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"name":"look","arguments":"{\"a\":1}"}}]}}]}`, finished, "[DONE]"), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{}}},{"type":"tool_call","call":{"id":"c2","tool":"look","input":{"a":1}}}]`},
		{"ids may be numbers", openai.Chat, streamType, data(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":7,"function":{"name":"look","arguments":"{}"}}]}}]}`, finished, "[DONE]"), "", `[{"type":"tool_call","call":{"id":"7","tool":"look","input":{}}}]`},
		{"calls may have neither", openai.Chat, streamType, data(
			`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"look","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"wait","arguments":"{\"a\":1}"}}]}}]}`, finished, "[DONE]"), "", `[{"type":"tool_call","call":{"id":"","tool":"look","input":{}}},{"type":"tool_call","call":{"id":"","tool":"wait","input":{"a":1}}}]`},
		{"each piece of a call may have an id of its own", openai.Chat, streamType, data(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{\"a\""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"arguments":":1}"}}]}}]}`, finished, "[DONE]"), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{"a":1}}}]`},
		{"a call may repeat its name with each piece", openai.Chat, streamType, data(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{\"a\""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":":1}"}}]}}]}`, finished, "[DONE]"), "", `[{"type":"tool_call","call":{"id":"c1","tool":"look","input":{"a":1}}}]`},
		{
			"thinking and text may take turns", openai.Chat, streamType, data(
				`{"choices":[{"delta":{"reasoning":"hm"}}]}`, content, `{"choices":[{"delta":{"reasoning":"so"}}]}`, content, finished, "[DONE]"), "",
			`[{"type":"thinking","text":"hm","opaque":{"field":"reasoning"},"provider":"P"},{"type":"text","text":"a"},{"type":"thinking","text":"so","opaque":{"field":"reasoning"},"provider":"P"},{"type":"text","text":"a"}]`,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := wild(t, test.api, 200, test.contentType, test.body)
			r, err := answer(t, model, hello())
			if test.kind != "" {
				_ = wantFailure(t, err, test.kind, test.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Parts {
				if r.Parts[i].Provider != "" {
					r.Parts[i].Provider = "P"
				}
			}
			got, err := json.Marshal(r.Parts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC L-04
func TestAStreamMaySayHowLongToWait(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]time.Duration{
		"Please try again in 1.5s.":      1500 * time.Millisecond,
		"Please try again in 200ms.":     200 * time.Millisecond,
		"Try again in 3 s":               3 * time.Second,
		"Please try again in a while.":   0,
		"Try again in 999999s":           24 * time.Hour,
		"Try again in 99999999999999s":   0, // too long for a time.Duration
		"Please try again in 6m0s, then": 6 * time.Minute,
	} {
		_, err := answer(t, wild(t, openai.Responses, 200, streamType, event("error", fmt.Sprintf(`{"type":"error","code":"rate_limit_exceeded","message":%q}`, message))), hello())
		if e := wantFailure(t, err, belay.ModelRateLimited, message); e.RetryAfter != want {
			t.Errorf("%q: got %v, want %v", message, e.RetryAfter, want)
		}
	}
}

func TestADroppedConnectionSaysWhy(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("a")}, Break: &providertest.Break{After: 2}})
		if _, err := answer(t, open(server, &openai.Options{API: api}), hello()); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v, want the error of the connection in it", err)
		}
	})
}

// SPEC L-07
func TestUsageAsServersSayIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, usage string
		want        belay.Usage
	}{
		{"cached tokens are among those in", `{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":10}}`, belay.Usage{In: 30, Out: 7, CacheRead: 60, CacheWrite: 10}},
		{"DeepSeek has a field of its own", `{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":60}`, belay.Usage{In: 40, Out: 7, CacheRead: 60}},
		{"OpenRouter says what it cost", `{"prompt_tokens":100,"completion_tokens":7,"cost":0.0125}`, belay.Usage{In: 100, Out: 7, Cost: 0.0125}},
		{"with keys of one's own that is not all", `{"prompt_tokens":100,"completion_tokens":7,"cost":0.0125,"is_byok":true,"cost_details":{"upstream_inference_cost":0.25}}`, belay.Usage{In: 100, Out: 7, Cost: 0.2625}},
		{"without them it is", `{"prompt_tokens":100,"completion_tokens":7,"cost":0.25,"is_byok":false,"cost_details":{"upstream_inference_cost":0.25}}`, belay.Usage{In: 100, Out: 7, Cost: 0.25}},
		{"thinking is among the tokens out", `{"prompt_tokens":100,"completion_tokens":70,"total_tokens":170,"completion_tokens_details":{"reasoning_tokens":60}}`, belay.Usage{In: 100, Out: 70}},
		{"xAI counts it beside them", `{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`, belay.Usage{In: 32, Out: 103}},
		{"Moonshot has a field of its own too", `{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":60}`, belay.Usage{In: 40, Out: 7, CacheRead: 60}},
		{"details may be missing", `{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null}`, belay.Usage{In: 100, Out: 7}},
		{"counts of another shape are passed over", `{"prompt_tokens":100,"completion_tokens":7,"cost":"0.01","prompt_tokens_details":[]}`, belay.Usage{In: 100, Out: 7}},
		{"counts that do not fit are not negative", `{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}`, belay.Usage{Out: 7, CacheRead: 60}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			r, err := answer(t, wild(t, openai.Chat, 200, streamType, data(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":`+test.usage+`}`, "[DONE]")), hello())
			if err != nil || r.Usage != test.want {
				t.Errorf("got %+v, %v, want %+v", r, err, test.want)
			}
		})
	}
}

// The parts of a summary are joined with a blank line. They are sent back as separate parts.
func TestASummaryMayHaveParts(t *testing.T) {
	t.Parallel()
	body := event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1"}}`)
	for i, text := range []string{"one", "two"} {
		body += event("response.reasoning_summary_text.delta", fmt.Sprintf(`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":%d,"delta":%q}`, i, text))
	}
	body += event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"secret","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}]}}`) +
		event("response.completed", `{"type":"response.completed","response":{"status":"completed"}}`)
	r, err := answer(t, wild(t, openai.Responses, 200, streamType, body), hello())
	if err != nil || len(r.Parts) != 1 || r.Parts[0].Text != "one\n\ntwo" {
		t.Fatalf("got %+v, %v, want both parts of the summary", r, err)
	}
	want := `{"id":"rs_1","encrypted":"secret","summary":["one","two"]}`
	if string(r.Parts[0].Opaque) != want {
		t.Errorf("got %s, want %s", r.Parts[0].Opaque, want)
	}
}
