package providertest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/provider/providertest"
)

// send sends a body like a client of OpenAI. headers override the usual headers. send
// returns the status and the body of the answer.
func send(t testing.TB, server providertest.Server, path, body string, headers map[string]string) (status int, said string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+server.Key())
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

func messageOf(t testing.TB, body string) string {
	t.Helper()
	var e struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Type == "" {
		t.Fatalf("not an error of the service: %s", body)
	}
	return e.Error.Message
}

// refusal is a body that the server must refuse, and a part of the error message.
type refusal struct{ rule, body, want string }

// wantRefusals sends bodies that the server must refuse.
func wantRefusals(t *testing.T, start func(t testing.TB) providertest.Server, path string, refusals []refusal) {
	t.Helper()
	for _, test := range refusals {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			status, body := send(t, server, path, test.body, nil)
			message := messageOf(t, body)
			if status != http.StatusBadRequest || !strings.Contains(message, test.want) {
				t.Errorf("got %d %q, want 400 with %q in it", status, message, test.want)
			}
			if requests := server.Requests(); len(requests) != 1 || requests[0].Refused != message || !bytes.Equal(requests[0].Body, []byte(test.body)) {
				t.Errorf("the request is not on record as it was: %+v", requests)
			}
		})
	}
}

// input returns a request for Responses with these items and other fields.
func input(items string, fields ...string) string {
	return `{"model":"m","store":false,"input":[` + items + `]` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

const (
	said       = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`
	spoke      = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`
	callItem   = `{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"}`
	outputItem = `{"type":"function_call_output","call_id":"c1","output":"seen"}`
)

// functionItem returns the field with a tool for Responses.
func functionItem(name, schema string) string {
	return `"tools":[{"type":"function","name":"` + name + `","parameters":` + schema + `,"strict":false}]`
}

// schemaRefusals are schemas that the server must refuse in both protocols.
var schemaRefusals = []refusal{
	{"a schema is an object", `[]`, "is not an object"},
	{"a schema has a type", `{"properties":{}}`, `got 'type: null'`},
	{"a schema is of an object", `{"type":"string"}`, `got 'type: \"string\"'`},
	{"a schema is of an object alone", `{"type":["object","null"],"properties":{}}`, "must be a JSON Schema of 'type"},
	{"a schema has no alternatives at its top", `{"type":"object","properties":{},"anyOf":[{}]}`, "at the top level"},
	{"a schema has no negation at its top", `{"type":"object","properties":{},"not":{}}`, "at the top level"},
	{"a schema has properties", `{"type":"object"}`, "object schema missing properties"},
	{"properties are an object", `{"type":"object","properties":7}`, "is not of type 'object'"},
	{"a list has items", `{"type":"object","properties":{"a":{"anyOf":[{"type":"array"}]}}}`, "In context=('properties', 'a', 'anyOf', '0'), array schema missing items"},
}

func TestResponsesRefusesWhatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 65)
	thinking := func(fields string) string { return `{"type":"reasoning","id":"rs_1"` + fields + `}` }
	refusals := []refusal{
		{"the body is JSON", `{"model":`, "could not parse the JSON body"},
		{"a model is required", `{"input":[` + said + `]}`, "Missing required parameter: 'model'"},
		{"input is required", `{"model":"m"}`, "Missing required parameter: 'input'"},
		{"there is some input", input(""), "Invalid 'input': empty array"},
		{"input is text or items", `{"model":"m","input":7}`, "Invalid type for 'input'"},
		{"an unknown field is refused", input(said, `"colour":"red"`), "Unknown parameter: 'colour'"},
		{"an unknown field of an item is refused", input(`{"type":"message","role":"user","content":"a","colour":1}`), "Unknown parameter: 'input[0].colour'"},
		{"an unknown field of content is refused", input(`{"role":"user","content":[{"type":"input_text","text":"a","colour":1}]}`), "Unknown parameter: 'input[0].content[0].colour'"},
		{"a type of item is known", input(`{"type":"song"}`), "Invalid value: 'song'"},
		{"a role is known", input(`{"role":"king","content":"a"}`), "Invalid value: 'king'"},
		{"a text is not empty", input(`{"role":"user","content":[{"type":"input_text","text":""}]}`), "Invalid 'input[0].content[0].text': empty string"},
		{"the user's text is input", input(`{"role":"user","content":[{"type":"output_text","text":"a"}]}`), "Invalid value: 'output_text'"},
		{"the model's text is output", input(said + `,{"role":"assistant","content":[{"type":"input_text","text":"a"}]}`), "Invalid value: 'input_text'"},
		{"content has a type", input(`{"role":"user","content":[{"text":"a"}]}`), "Missing required parameter: 'input[0].content[0].type'"},
		{"the user has no phase", input(`{"role":"user","content":"a","phase":"commentary"}`), "Unknown parameter: 'input[0].phase'"},
		{"a phase is known", input(said + `,{"role":"assistant","content":"a","phase":"final"}`), "Invalid value: 'final'"},
		{"an image is of a type that is looked at", input(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/bmp;base64,AAAA"}]}`), "unsupported file"},
		{"an image is base64", input(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,?"}]}`), "non-empty base64"},
		{"an image has an address", input(`{"role":"user","content":[{"type":"input_image","image_url":"nowhere"}]}`), "Expected a valid URL"},
		{"a file has a name", input(`{"role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}]}`), "Missing required parameter: 'input[0].content[0].filename'"},
		{"a call is answered", input(said + "," + callItem), "No tool output found for function call c1"},
		{"an output has a call", input(said + "," + outputItem), "No tool call found for function call output with call_id c1"},
		{"a call has one output", input(said + "," + callItem + "," + outputItem + "," + outputItem), "No tool call found"},
		{"an id is used once", input(said + "," + callItem + "," + outputItem + "," + callItem + "," + outputItem), "Duplicate function call found with call_id c1"},
		{"an id is not too long", input(said + `,{"type":"function_call","call_id":"` + long + `","name":"look","arguments":"{}"}`), "maximum length 64, but got a string with length 65"},
		{"a called tool has a fit name", input(said + `,{"type":"function_call","call_id":"c1","name":"look up","arguments":"{}"}`), "does not match pattern"},
		{"arguments are a text", input(said + `,{"type":"function_call","call_id":"c1","name":"look","arguments":{}}`), "Invalid type for 'input[1].arguments'"},
		{"arguments are an object", input(said + `,{"type":"function_call","call_id":"c1","name":"look","arguments":"[]"}`), "expected a JSON object in a string"},
		{"an output is required", input(said + "," + callItem + `,{"type":"function_call_output","call_id":"c1"}`), "Missing required parameter: 'input[2].output'"},
		{"thinking has an id", input(said + `,{"type":"reasoning","summary":[]},` + spoke), "Missing required parameter: 'input[1].id'"},
		{"thinking has a summary", input(said + "," + thinking("") + "," + spoke), "Missing required parameter: 'input[1].summary'"},
		{"thinking is encrypted if it is not stored", input(said + "," + thinking(`,"summary":[]`) + "," + spoke), "Items are not persisted when `store` is set to false"},
		{"thinking is the service's", input(said + "," + thinking(`,"summary":[],"encrypted_content":"mine"`) + "," + spoke), "could not be verified"},
		{"thinking has no content", input(said + "," + thinking(`,"summary":[],"content":[{"type":"reasoning_text","text":"a"}]`) + "," + spoke), "Expected an array with maximum length 0"},
		{"a bound is not too small", input(said, `"max_output_tokens":15`), "Expected a value >= 16"},
		{"an effort is known", input(said, `"reasoning":{"effort":"huge"}`), "Invalid value: 'huge'"},
		{"what is included is known", input(said, `"include":["everything"]`), "Invalid value: 'everything'"},
		{"a tool has a fit name", input(said, functionItem("look.up", `{"type":"object","properties":{}}`)), "does not match pattern"},
		{"a tool's name is not too long", input(said, functionItem(long, `{"type":"object","properties":{}}`)), "maximum length 64"},
		{"tools differ in name", input(said, `"tools":[{"type":"function","name":"a","parameters":{"type":"object","properties":{}},"strict":false},{"type":"function","name":"a","parameters":{"type":"object","properties":{}},"strict":false}]`), "is used twice"},
		{"a tool is of a known type", input(said, `"tools":[{"type":"hammer","name":"a"}]`), "Invalid value: 'hammer'"},
		{"a tool is strict unless it says otherwise", input(said, `"tools":[{"type":"function","name":"a","parameters":{"type":"object","properties":{}}}]`), "'additionalProperties' is required"},
	}
	for _, s := range schemaRefusals {
		refusals = append(refusals, refusal{s.rule, input(said, functionItem("look", s.body)), strings.ReplaceAll(s.want, `\"`, `"`)})
	}
	wantRefusals(t, providertest.StartResponses, "/responses", refusals)
}

// In a request, another item must follow thinking.
func TestResponsesWantsThinkingToLeadSomewhere(t *testing.T) {
	t.Parallel()
	server := providertest.NewResponses(t, nil)
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Thinking("Hm."), providertest.Redacted("secret"), providertest.Text("Hi.")}})
	_, body := send(t, server, "/responses", input(said), nil)
	var response struct {
		Output []json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal([]byte(body), &response); err != nil || len(response.Output) != 3 {
		t.Fatalf("got %s, %v, want three items", body, err)
	}
	thought, hidden := string(response.Output[0]), string(response.Output[1])
	for _, test := range []struct{ rule, items, want string }{
		{"a text may follow", said + "," + thought + "," + hidden + "," + spoke, ""},
		{"a call may follow", said + "," + thought + "," + callItem + "," + outputItem, ""},
		{"the user may not", said + "," + thought + "," + said, "without its required following item"},
		{"nothing may not", said + "," + thought, "without its required following item"},
		{"it comes once", said + "," + thought + "," + spoke + "," + thought + "," + spoke, "Duplicate item found with id"},
		{"it is not changed", said + "," + strings.Replace(thought, "Hm.", "Hm!", 1) + "," + spoke, "could not be verified"},
	} {
		if test.want == "" {
			server.Script(providertest.Reply{})
		}
		status, body := send(t, server, "/responses", input(test.items), nil)
		if test.want == "" && status != http.StatusOK || test.want != "" && !strings.Contains(body, test.want) {
			t.Errorf("%s: got %d %s, want %q", test.rule, status, body, test.want)
		}
	}
}

// chat returns a request for Chat with these messages and other fields.
func chat(messages string, fields ...string) string {
	return `{"model":"m","messages":[` + messages + `]` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

const (
	chatHello = `{"role":"user","content":"hello"}`
	chatCall  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	chatTwice = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	chatSeen  = `{"role":"tool","tool_call_id":"c1","content":"seen"}`
)

// chatTool returns the field with a tool for Chat.
func chatTool(name, description, schema string) string {
	return `"tools":[{"type":"function","function":{"name":"` + name + `","description":"` + description + `","parameters":` + schema + `}}]`
}

func TestChatRefusesWhatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{}}`
	refusals := []refusal{
		{"the body is JSON", `{"model":`, "could not parse the JSON body"},
		{"a model is required", `{"messages":[` + chatHello + `]}`, "Missing required parameter: 'model'"},
		{"messages are required", `{"model":"m"}`, "Missing required parameter: 'messages'"},
		{"there is a message", chat(""), "Invalid 'messages': empty array"},
		{"an unknown field is refused", chat(chatHello, `"colour":"red"`), "Unknown parameter: 'colour'"},
		{"an unknown field of a message is refused", chat(`{"role":"user","content":"a","colour":1}`), "Unknown parameter: 'messages[0].colour'"},
		{"a role is known", chat(`{"role":"king","content":"a"}`), "Invalid value: 'king'"},
		{"the user's message has content", chat(`{"role":"user","content":null}`), "expected a string, got null"},
		{"the model's message has content or calls", chat(chatHello + `,{"role":"assistant","content":null}`), "expected a string, got null"},
		{"content is text or parts", chat(`{"role":"user","content":7}`), "Invalid type for 'messages[0].content'"},
		{"a list of parts is not empty", chat(`{"role":"user","content":[]}`), "Invalid 'messages[0].content': empty array"},
		{"a type of part is known", chat(`{"role":"user","content":[{"type":"song"}]}`), "Invalid value: 'song'"},
		{"the model shows no images", chat(chatHello + `,{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`), "Invalid value: 'image_url'"},
		{"a result shows no images", chat(chatHello + "," + chatCall + `,{"role":"tool","tool_call_id":"c1","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`), "Invalid value: 'image_url'"},
		{"an image is of a type that is looked at", chat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/bmp;base64,AAAA"}}]}`), "unsupported file"},
		{"a file has a name", chat(`{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}`), "Missing required parameter: 'messages[0].content[0].file.filename'"},
		{"a call is answered", chat(chatHello + "," + chatCall), "did not have response messages: c1"},
		{"a call is answered right behind it", chat(chatHello + "," + chatCall + "," + chatHello + "," + chatSeen), "did not have response messages: c1"},
		{"every call is answered", chat(chatHello + "," + chatTwice + "," + chatSeen), "did not have response messages: c2"},
		{"a result has a call", chat(chatHello + "," + chatSeen), "must be a response to a preceding message"},
		{"a call has one result", chat(chatHello + "," + chatCall + "," + chatSeen + "," + chatSeen), "must be a response to a preceding message"},
		{"a result names its call", chat(chatHello + "," + chatCall + `,{"role":"tool","content":"a"}`), "Missing required parameter: 'messages[2].tool_call_id'"},
		{"an id is used once", chat(chatHello + "," + chatCall + "," + chatSeen + "," + chatCall + "," + chatSeen), "is used twice"},
		{"an id is not too long", chat(chatHello + "," + strings.Replace(chatCall, "c1", strings.Repeat("a", 41), 1)), "maximum length 40, but got a string with length 41"},
		{"a called tool has a fit name", chat(chatHello + "," + strings.Replace(chatCall, "look", "look up", 1)), "does not match pattern"},
		{"a call has a type", chat(chatHello + "," + strings.Replace(chatCall, `"type":"function",`, "", 1)), "Missing required parameter: 'messages[1].tool_calls[0].type'"},
		{"arguments are an object", chat(chatHello + "," + strings.Replace(chatCall, `"{}"`, `"[]"`, 1)), "expected a JSON object in a string"},
		{"thinking is the server's", chat(chatHello + `,{"role":"assistant","content":"a","reasoning_content":"mine"}`), "this was not thought here"},
		{"thinking is where the server has it", chat(chatHello + `,{"role":"assistant","content":"a","reasoning":"mine"}`), "Unknown parameter: 'messages[1].reasoning'"},
		{"there is one bound", chat(chatHello, `"max_tokens":5`, `"max_completion_tokens":5`), "at the same time"},
		{"a bound is positive", chat(chatHello, `"max_tokens":0`), "Expected a value >= 1"},
		{"an effort is known", chat(chatHello, `"reasoning_effort":"huge"`), "Invalid value: 'huge'"},
		{"what is for streams needs one", chat(chatHello, `"stream_options":{"include_usage":true}`), "only allowed when 'stream' is enabled"},
		{"a tool has a fit name", chat(chatHello, chatTool("look.up", "a", schema)), "does not match pattern"},
		{"a description is not too long", chat(chatHello, chatTool("look", strings.Repeat("a", 1025), schema)), "maximum length 1024"},
		{"a list of tools is not empty", chat(chatHello, `"tools":[]`), "Invalid 'tools': empty array"},
		{"there are not too many tools", chat(chatHello, `"tools":[`+strings.TrimSuffix(strings.Repeat("{},", 129), ",")+`]`), "maximum length 128"},
		{"an unknown field of a tool is refused", chat(chatHello, `"tools":[{"type":"function","name":"a"}]`), "Unknown parameter: 'tools[0].name'"},
	}
	for _, s := range schemaRefusals {
		refusals = append(refusals, refusal{s.rule, chat(chatHello, chatTool("look", "a", s.body)), strings.ReplaceAll(s.want, `\"`, `"`)})
	}
	wantRefusals(t, providertest.StartChat, "/chat/completions", refusals)
}

func TestOpenAIAcceptsWhatTheServiceAccepts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, path, body string }{
		{"Responses: a text", "/responses", `{"model":"m","input":"hello"}`},
		{"Responses: text as content", "/responses", input(`{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"developer","content":"be nice"}`)},
		{"Responses: outputs out of order", "/responses", input(said + "," + callItem + "," + strings.Replace(callItem, "c1", "c2", 1) + "," + strings.Replace(outputItem, "c1", "c2", 1) + "," + outputItem)},
		{"Responses: an output of parts", "/responses", input(said + "," + callItem + `,{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://example.com/a.png"}]}`)},
		{"Responses: everything else", "/responses", input(said+`,{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}]}`, `"instructions":"a"`, `"temperature":1`, `"reasoning":{"effort":"low","summary":"auto"}`, `"include":["reasoning.encrypted_content"]`, `"max_output_tokens":16`, `"stream":true`, `"tool_choice":"auto"`, `"parallel_tool_calls":true`)},
		{"Chat: a text", "/chat/completions", chat(chatHello)},
		{"Chat: neighbours on one side", "/chat/completions", chat(`{"role":"system","content":"a"},` + chatHello + "," + chatHello + `,{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},` + chatHello)},
		{"Chat: results out of order", "/chat/completions", chat(chatHello + "," + chatTwice + "," + strings.Replace(chatSeen, "c1", "c2", 1) + "," + chatSeen)},
		{"Chat: everything else", "/chat/completions", chat(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`, `"temperature":1`, `"reasoning_effort":"low"`, `"max_completion_tokens":1`, `"stream":true`, `"stream_options":{"include_usage":true}`, `"tool_choice":"auto"`)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.StartChat(t)
			if test.path == "/responses" {
				server = providertest.StartResponses(t)
			}
			server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("fine")}})
			if status, body := send(t, server, test.path, test.body, nil); status != http.StatusOK || !strings.Contains(body, "fine") {
				t.Errorf("got %d %s, want 200", status, body)
			}
		})
	}
}

func TestOpenAIWantsHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		path    string
		headers map[string]string
		status  int
	}{
		{"a key is required", "/responses", map[string]string{"Authorization": ""}, http.StatusUnauthorized},
		{"the key is the right one", "/responses", map[string]string{"Authorization": "Bearer another"}, http.StatusUnauthorized},
		{"the content is JSON", "/responses", map[string]string{"Content-Type": "text/plain"}, http.StatusBadRequest},
		{"the path is the protocol's", "/chat/completions", nil, http.StatusNotFound},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewResponses(t, &providertest.ResponsesOptions{Key: "the-right-one"})
			if status, body := send(t, server, test.path, input(said), test.headers); status != test.status {
				t.Errorf("got %d %s, want %d", status, body, test.status)
			}
		})
	}
}

func TestOpenAIReports(t *testing.T) {
	t.Parallel()
	t.Run("a request that has no reply fails the test", func(t *testing.T) {
		t.Parallel()
		probetest.Run(t, func(p testing.TB) { send(t, providertest.NewChat(p, nil), "/chat/completions", chat(chatHello), nil) }).WantFailure(t, "no scripted reply")
	})
	server := providertest.NewChat(t, nil)
	items := providertest.NewResponses(t, nil)
	for _, test := range []struct {
		rule           string
		server         providertest.Server
		earlier, later string
		want           string
	}{
		{"a message is added", server, chat(chatHello), chat(chatHello + "," + chatCall), ""},
		{"a text goes on", server, chat(chatHello), chat(`{"role":"user","content":"hello\n\nand?"}`), ""},
		{"a text is another", server, chat(chatHello), chat(`{"role":"user","content":"hello!"}`), "item 0 of the conversation differs"},
		{"a message is gone", server, chat(chatHello + "," + chatCall), chat(chatHello), "item 1 of the conversation is gone"},
		{"a field is added", server, chat(chatHello), chat(chatHello, `"seed":1`), "seed was added"},
		{"a field differs", server, chat(chatHello, `"seed":1`), chat(chatHello, `"seed":2`), "seed differs"},
		{"an item is added", items, input(said), input(said + "," + spoke), ""},
		{"an item differs", items, input(said), input(spoke), "item 0 of the conversation differs"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			err := test.server.Extends(providertest.Request{Body: []byte(test.earlier)}, providertest.Request{Body: []byte(test.later)})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestChatSaysWhatItCannotSay(t *testing.T) {
	t.Parallel()
	text, thinking, hidden, call := providertest.Text("a"), providertest.Thinking("a"), providertest.Redacted("a"), providertest.Call("c1", "look")
	for _, test := range []struct {
		rule     string
		thinking string
		parts    []providertest.Part
		can      bool
	}{
		{"thinking, text, calls", "", []providertest.Part{thinking, text, call, call}, true},
		{"text behind a call", "", []providertest.Part{call, text}, false},
		{"thinking behind text", "", []providertest.Part{text, thinking}, false},
		{"two texts", "", []providertest.Part{text, text}, false},
		{"hidden thinking", "", []providertest.Part{hidden}, false},
		{"hidden thinking in details", "reasoning_details", []providertest.Part{thinking, hidden, text}, true},
	} {
		why := providertest.NewChat(t, &providertest.ChatOptions{Thinking: test.thinking}).Cannot(providertest.Reply{Parts: test.parts})
		if (why == "") != test.can {
			t.Errorf("%s: got %q, want it sayable: %t", test.rule, why, test.can)
		}
	}
}

func TestOpenAIAnswersWithoutAStream(t *testing.T) {
	t.Parallel()
	reply := providertest.Reply{
		Parts: []providertest.Part{providertest.Thinking("Hm", "m."), providertest.Text("Good ", "morning!"), providertest.Call("c1", "look", `{"at":`, `"left"}`)},
		Usage: belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4},
	}
	for _, test := range []struct {
		server     providertest.Server
		path, body string
		want       []string
	}{
		{
			providertest.NewResponses(t, &providertest.ResponsesOptions{Whole: true}), "/responses", input(said, `"stream":true`),
			[]string{`"status":"completed"`, `"text":"Hmm."`, `"text":"Good morning!"`, `"arguments":"{\"at\":\"left\"}"`, `"input_tokens":8`, `"cached_tokens":3`},
		},
		{
			providertest.NewChat(t, &providertest.ChatOptions{Whole: true}), "/chat/completions", chat(chatHello, `"stream":true`),
			[]string{`"finish_reason":"tool_calls"`, `"reasoning_content":"Hmm."`, `"content":"Good morning!"`, `"arguments":"{\"at\":\"left\"}"`, `"prompt_tokens":8`, `"cached_tokens":3`},
		},
	} {
		test.server.Script(reply)
		_, body := send(t, test.server, test.path, test.body, nil)
		for _, want := range test.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got %s, want %s in it", test.path, body, want)
			}
		}
	}
}
