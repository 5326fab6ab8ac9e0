package providertest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends a body like a client of the Messages API. headers override the usual headers.
// post returns the status and the body of the answer.
func post(t testing.TB, server *providertest.Anthropic, body string, headers map[string]string) (status int, said string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL()+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Api-Key", server.Key())
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all)
}

// errorOf returns the type and the message of an error.
func errorOf(t testing.TB, body string) (kind, message string) {
	t.Helper()
	var e struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Type != "error" {
		t.Fatalf("not an error of the service: %s", body)
	}
	return e.Error.Type, e.Error.Message
}

// request returns a valid request with these messages and other fields.
func request(messages string, fields ...string) string {
	return `{"model":"m","max_tokens":2000,"messages":[` + messages + `]` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

const (
	hello  = `{"role":"user","content":"hello"}`
	call   = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{}}]}`
	twice  = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{}},{"type":"tool_use","id":"c2","name":"look","input":{}}]}`
	seen   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"seen"}]}`
	marked = `"cache_control":{"type":"ephemeral"}`
	// thinking has the signature for its text.
	thinking = `{"type":"thinking","thinking":"a","signature":"ajYLw6z1LilWjRUF2lMXmwHA7yuT6BKnU9UAu/qDxjw="}`
)

// user returns a message of the user with these blocks.
func user(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

// assistant returns a message of the assistant with these blocks.
func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func TestAnthropicRefusesWhatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		body string
		want string // a part of the message
	}{
		{"the body is JSON", `{"model":`, "not valid JSON"},
		{"nothing is behind the JSON", request(hello) + "{}", "not valid JSON"},
		{"a model is required", `{"max_tokens":1,"messages":[` + hello + `]}`, "model: field required"},
		{"max_tokens is required", `{"model":"m","messages":[` + hello + `]}`, "max_tokens: field required"},
		{"max_tokens is positive", `{"model":"m","max_tokens":0,"messages":[` + hello + `]}`, "max_tokens: must be"},
		{"messages are required", `{"model":"m","max_tokens":1}`, "messages: field required"},
		{"there is a message", request(""), "messages: at least one"},
		{"an unknown field is refused", request(hello, `"colour":"red"`), "colour: extra inputs"},
		{"an unknown field of a message is refused", request(`{"role":"user","content":"hello","colour":1}`), "messages.0.colour: extra inputs"},
		{"an unknown field of a block is refused", request(user(`{"type":"text","text":"a","colour":1}`)), "messages.0.content.0.colour: extra inputs"},
		{"a field of another type of block is refused", request(user(`{"type":"text","text":"a","id":"c1"}`)), "messages.0.content.0.text.id: extra inputs"},
		{"a type of block is known", request(user(`{"type":"song"}`)), `messages.0.content.0.type: "song"`},
		{"a role is user or assistant", request(`{"role":"system","content":"hello"}`), "messages.0.role"},
		{"the first message is the user's", request(assistant(`{"type":"text","text":"a"}`) + "," + hello), "messages.0.role: the first message"},
		{"content is text or blocks", request(`{"role":"user","content":7}`), "messages.0.content: must be"},
		{"a message has content", request(hello + "," + assistant() + "," + hello), "messages.1: messages must have non-empty content"},
		{"a message is not an empty text", request(`{"role":"user","content":""}`), "messages.0.content.0: text content blocks must be non-empty"},
		{"a text block is not empty", request(user(`{"type":"text","text":"a"}`, `{"type":"text","text":""}`)), "messages.0.content.1: text content blocks must be non-empty"},
		{"a text block is not white space", request(user(`{"type":"text","text":" \n"}`)), "messages.0.content.0: text content blocks must contain"},
		{"a system prompt is not empty", request(hello, `"system":""`), "system.0: text content blocks"},
		{"a system prompt is text", request(hello, `"system":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]`), "system.0: a system prompt"},
		{"a call is answered", request(hello + "," + call), `messages.1.content.0: tool_use ids were found without tool_result blocks immediately after: "c1"`},
		{"a call is answered by the next message", request(hello + "," + call + "," + hello + "," + assistant(`{"type":"text","text":"a"}`) + "," + seen), "messages.1.content.0: tool_use ids"},
		{"every call is answered", request(hello + "," + twice + "," + seen), `immediately after: "c2"`},
		{"results come before text", request(hello + "," + call + "," + user(`{"type":"text","text":"a"}`, `{"type":"tool_result","tool_use_id":"c1"}`)), "messages.1.content.0: tool_use ids"},
		{"a result has a call", request(seen), `messages.0.content.0: unexpected tool_use_id "c1"`},
		{"a result has a call right before it", request(hello + "," + call + "," + seen + "," + assistant(`{"type":"text","text":"a"}`) + "," + seen), "messages.4.content.0: unexpected"},
		{"a call has one result", request(hello + "," + call + "," + seen + "," + seen), "messages.3.content.0: each tool_use must have a single result"},
		{"an id is used once", request(hello + "," + call + "," + seen + "," + call + "," + seen), `messages.3.content.0: tool_use ids must be unique, "c1"`},
		{"an id has no strange characters", request(hello + "," + assistant(`{"type":"tool_use","id":"c.1","name":"look","input":{}}`)), "messages.1.content.0.tool_use.id"},
		{"a called tool has a fit name", request(hello + "," + assistant(`{"type":"tool_use","id":"c1","name":"look up","input":{}}`)), "messages.1.content.0.tool_use.name"},
		{"an input is an object", request(hello + "," + assistant(`{"type":"tool_use","id":"c1","name":"look","input":[]}`)), "messages.1.content.0.tool_use.input"},
		{"an input is not null", request(hello + "," + assistant(`{"type":"tool_use","id":"c1","name":"look","input":null}`)), "messages.1.content.0.tool_use.input"},
		{"an input is not missing", request(hello + "," + assistant(`{"type":"tool_use","id":"c1","name":"look"}`)), "messages.1.content.0.tool_use.input"},
		{"the user makes no calls", request(user(`{"type":"tool_use","id":"c1","name":"look","input":{}}`)), "messages.0.content.0: a block of type tool_use"},
		{"the assistant has no results", request(hello + "," + assistant(`{"type":"tool_result","tool_use_id":"c1"}`)), "messages.1.content.0: a block of type tool_result"},
		{"a result names its call", request(hello + "," + call + "," + user(`{"type":"tool_result"}`)), "messages.2.content.0.tool_result.tool_use_id"},
		{"an error says something", request(hello + "," + call + "," + user(`{"type":"tool_result","tool_use_id":"c1","is_error":true}`)), "messages.2.content.0.tool_result: content cannot be empty"},
		{"an error is text", request(hello + "," + call + "," + user(`{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}`)), "messages.2.content.0.tool_result.content.0: all content must be type text"},
		{"characters are whole", request(user(`{"type":"text","text":"\ud83d"}`)), "no low surrogate"},
		{"thinking is not the last of a message", request(hello + "," + assistant(thinking) + "," + hello), "messages.1.content.0: the final block"},
		{"an image is of the type it is called by", request(user(`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptV"}}`)), "messages.0.content.0.source: the image was specified"},
		{"an image is not too wide", request(user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAH0EAAAABCAAAAACZyqz4"}}`)), "messages.0.content.0.source.base64.data: at least one"},
		{"an image is not too large", request(user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("AAAA", 5<<18+1) + `"}}`)), "messages.0.content.0.source.base64: image exceeds"},
		{"a binding wants a beta", request(hello, `"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`), "thinking.block_binding: extra inputs"},
		{"text in a result is not empty", request(hello + "," + call + "," + user(`{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":""}]}`)), "messages.2.content.0.tool_result.content.0: text content blocks"},
		{"a result holds no calls", request(hello + "," + call + "," + user(`{"type":"tool_result","tool_use_id":"c1","content":[{"type":"tool_use","id":"c9","name":"look","input":{}}]}`)), "messages.2.content.0.tool_result.content.0: a result holds"},
		{"thinking is signed", request(hello + "," + assistant(`{"type":"thinking","thinking":"a"}`) + "," + hello), "messages.1.content.0: invalid signature"},
		{"thinking is signed by the service", request(hello + "," + assistant(`{"type":"thinking","thinking":"a","signature":"b"}`) + "," + hello), "messages.1.content.0: invalid signature"},
		{"redacted thinking is the service's", request(hello + "," + assistant(`{"type":"redacted_thinking","data":"b"}`) + "," + hello), "messages.1.content.0: invalid data"},
		{"thinking has no mark", request(hello + "," + assistant(`{"type":"thinking","thinking":"a","signature":"b",`+marked+`}`) + "," + hello), "messages.1.content.0.thinking.cache_control: extra inputs"},
		{"an image has a source", request(user(`{"type":"image"}`)), "messages.0.content.0.source: field required"},
		{"an image is of a type that is looked at", request(user(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AAAA"}}`)), "messages.0.content.0.source.media_type"},
		{"an image is base64", request(user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}`)), "messages.0.content.0.source.data"},
		{"a source is of a known type", request(user(`{"type":"image","source":{"type":"file","media_type":"image/png"}}`)), "messages.0.content.0.source.type"},
		{"a tool has a fit name", request(hello, `"tools":[{"name":"look.up","input_schema":{"type":"object"}}]`), "tools.0.name"},
		{"a tool's name is not too long", request(hello, `"tools":[{"name":"`+strings.Repeat("a", 129)+`","input_schema":{"type":"object"}}]`), "tools.0.name"},
		{"tools differ in name", request(hello, `"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]`), "tools.1.name"},
		{"a tool has a schema", request(hello, `"tools":[{"name":"a"}]`), "tools.0.input_schema: field required"},
		{"a schema is of an object", request(hello, `"tools":[{"name":"a","input_schema":{"type":"string"}}]`), "tools.0.input_schema.type"},
		{"a schema has no alternatives at its top", request(hello, `"tools":[{"name":"a","input_schema":{"type":"object","anyOf":[{}]}}]`), "tools.0.input_schema: input_schema does not support"},
		{"a tool is of a known type", request(hello, `"tools":[{"name":"a","type":"hammer","input_schema":{"type":"object"}}]`), "tools.0.type"},
		{"an unknown field of a tool is refused", request(hello, `"tools":[{"name":"a","colour":1,"input_schema":{"type":"object"}}]`), "tools.0.colour: extra inputs"},
		{"a mark is of a known type", request(user(`{"type":"text","text":"a","cache_control":{"type":"eternal"}}`)), "messages.0.content.0.cache_control"},
		{"a mark lasts minutes or an hour", request(user(`{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1y"}}`)), "messages.0.content.0.cache_control"},
		{
			"there are four marks at most",
			request(user(`{"type":"text","text":"a",`+marked+`}`, `{"type":"text","text":"b",`+marked+`}`, `{"type":"text","text":"c",`+marked+`}`),
				`"system":[{"type":"text","text":"a",`+marked+`}]`, `"tools":[{"name":"a","input_schema":{"type":"object"},`+marked+`}]`),
			"a maximum of 4 blocks with cache_control may be provided, found 5",
		},
		{"thinking has a budget", request(hello, `"thinking":{"type":"enabled","budget_tokens":1000}`), "thinking.budget_tokens"},
		{"a budget leaves room", request(hello, `"thinking":{"type":"enabled","budget_tokens":2000}`), "max_tokens: must be greater"},
		{"thinking is of a known type", request(hello, `"thinking":{"type":"hard"}`), "thinking.type"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			status, body := post(t, server, test.body, nil)
			kind, message := errorOf(t, body)
			if status != http.StatusBadRequest || kind != "invalid_request_error" || !strings.Contains(message, test.want) {
				t.Errorf("got %d %s %q, want 400 invalid_request_error with %q in it", status, kind, message, test.want)
			}
			if requests := server.Requests(); len(requests) != 1 || requests[0].Refused != message || !bytes.Equal(requests[0].Body, []byte(test.body)) {
				t.Errorf("the request is not on record as it was: %+v", requests)
			}
		})
	}
}

func TestAnthropicAcceptsWhatTheServiceAccepts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, body string }{
		{"a text", request(hello)},
		{"neighbours on one side", request(hello + "," + hello + "," + assistant(`{"type":"text","text":"a"}`) + "," + assistant(`{"type":"text","text":"b"}`) + "," + hello)},
		{"results in two messages", request(hello + "," + twice + "," + seen + "," + user(`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a"}],"is_error":true}`, `{"type":"text","text":"and?"}`))},
		{"a result that says nothing", request(hello + "," + call + "," + user(`{"type":"tool_result","tool_use_id":"c1","content":""}`))},
		{"everything else", request(user(`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`, `{"type":"document","title":"a","source":{"type":"text","media_type":"text/plain","data":"a"}}`),
			`"system":"a"`, `"stop_sequences":["a"]`, `"temperature":0.5`, `"top_p":1`, `"top_k":1`, `"metadata":{}`, `"tool_choice":{"type":"auto"}`, `"thinking":{"type":"enabled","budget_tokens":1024}`, `"stream":true`)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("fine")}})
			if status, body := post(t, server, test.body, nil); status != http.StatusOK || !strings.Contains(body, "fine") {
				t.Errorf("got %d %s, want 200", status, body)
			}
		})
	}
}

func TestAnthropicWantsHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		headers map[string]string
		status  int
	}{
		{"a key is required", map[string]string{"X-Api-Key": ""}, http.StatusUnauthorized},
		{"the key is the right one", map[string]string{"X-Api-Key": "another"}, http.StatusUnauthorized},
		{"a version is required", map[string]string{"Anthropic-Version": ""}, http.StatusBadRequest},
		{"the version exists", map[string]string{"Anthropic-Version": "2020-01-01"}, http.StatusBadRequest},
		{"the content is JSON", map[string]string{"Content-Type": "text/plain"}, http.StatusBadRequest},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, &providertest.AnthropicOptions{Key: "the-right-one"})
			if status, body := post(t, server, request(hello), test.headers); status != test.status {
				t.Errorf("got %d %s, want %d", status, body, test.status)
			}
		})
	}
}

func TestAnthropicReports(t *testing.T) {
	t.Parallel()
	t.Run("a request that has no reply fails the test", func(t *testing.T) {
		t.Parallel()
		failures := probetest.Run(t, func(p testing.TB) { post(t, providertest.NewAnthropic(p, nil), request(hello), nil) }).Failures()
		if len(failures) != 1 || !strings.Contains(failures[0], "no scripted reply") {
			t.Errorf("got %q, want a failure that says so", failures)
		}
	})
	t.Run("a request that does not extend another is reported with the place", func(t *testing.T) {
		t.Parallel()
		server := providertest.NewAnthropic(t, nil)
		hello := user(`{"type":"text","text":"hello"}`)
		bodies := []string{
			request(hello), request(user(`{"type":"text","text":"hullo"}`)),
			request(hello, `"system":"a"`), request(hello, `"system":"b"`),
			request(hello + "," + assistant(`{"type":"text","text":"a"}`) + "," + hello),
			request(user(`{"type":"text","text":"hello",` + marked + `}`)),
		}
		for _, test := range []struct {
			earlier, later int
			want           string
		}{
			{0, 1, "block 0 of the conversation differs"},
			{0, 2, "system was added"},
			{2, 3, "system differs"},
			{2, 0, "system differs"},
			{4, 0, "block 1 of the conversation is gone"},
			{0, 4, ""},
			{0, 5, ""},
			{5, 4, ""},
		} {
			err := server.Extends(providertest.Request{Body: []byte(bodies[test.earlier])}, providertest.Request{Body: []byte(bodies[test.later])})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d and %d: got %v, want %q", test.earlier, test.later, err, test.want)
			}
		}
	})
}

func TestAnthropicAnswersWithoutAStream(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	server.Script(providertest.Reply{
		Parts: []providertest.Part{providertest.Thinking("Hm", "m."), providertest.Text("Good ", "morning!"), providertest.Call("c1", "look", `{"at":`, `"left"}`)},
		Usage: belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4},
	})
	_, body := post(t, server, request(hello), nil)
	var message struct {
		Content []struct {
			Text      string          `json:"text"`
			Thinking  string          `json:"thinking"`
			Signature string          `json:"signature"`
			Input     json.RawMessage `json:"input"`
		} `json:"content"`
		StopReason string         `json:"stop_reason"`
		Usage      map[string]int `json:"usage"`
	}
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		t.Fatal(err)
	}
	c := message.Content
	if len(c) != 3 || c[0].Thinking != "Hmm." || c[0].Signature == "" || c[1].Text != "Good morning!" || string(c[2].Input) != `{"at":"left"}` {
		t.Errorf("got %s, want thinking, text and call", body)
	}
	if message.StopReason != "tool_use" || message.Usage["cache_read_input_tokens"] != 3 || message.Usage["output_tokens"] != 2 {
		t.Errorf("got %s, want the stop reason and the usage", body)
	}
	back := assistant(`{"type":"thinking","thinking":"Hmm.","signature":"`+c[0].Signature+`"}`, `{"type":"text","text":"a"}`)
	server.Script(providertest.Reply{})
	if status, body := post(t, server, request(hello+","+back+","+hello), nil); status != http.StatusOK {
		t.Errorf("its own thinking is refused: %s", body)
	}
}
