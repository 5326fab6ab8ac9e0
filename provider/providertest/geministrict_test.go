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

// geminiPath is the path of a request to a new model.
const geminiPath = "/v1beta/models/gemini-3-flash-preview:generateContent"

// postGemini sends a body like a client of the Gemini API. It returns the status and the
// body of the answer.
func postGemini(t testing.TB, server *providertest.Gemini, path, key, body string) (status int, said string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("X-Goog-Api-Key", key)
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

// geminiErrorOf returns the code, the status and the message of an error.
func geminiErrorOf(t testing.TB, body string) (code int, status, message string) {
	t.Helper()
	var e struct {
		Error struct {
			Code    int    `json:"code"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Code == 0 {
		t.Fatalf("not an error of the service: %s", body)
	}
	return e.Error.Code, e.Error.Status, e.Error.Message
}

// contents returns a request with these contents and other fields.
func contents(contents string, fields ...string) string {
	return `{"contents":[` + contents + `]` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

// asks returns a content of the user with these parts.
func asks(parts ...string) string {
	return `{"role":"user","parts":[` + strings.Join(parts, ",") + `]}`
}

// says returns a content of the model with these parts.
func says(parts ...string) string {
	return `{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`
}

const (
	hi       = `{"role":"user","parts":[{"text":"hello"}]}`
	looks    = `{"functionCall":{"id":"c1","name":"look","args":{}},"thoughtSignature":"skip_thought_signature_validator"}`
	looksOn  = `{"functionCall":{"id":"c2","name":"look","args":{}}}`
	finds    = `{"functionResponse":{"id":"c1","name":"look","response":{"output":"seen"}}}`
	findsToo = `{"functionResponse":{"id":"c2","name":"look","response":{"output":"seen"}}}`
)

// declares returns the field with the tools of a request.
func declares(declarations ...string) string {
	return `"tools":[{"functionDeclarations":[` + strings.Join(declarations, ",") + `]}]`
}

func TestGeminiRefusesWhatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	const count = "the number of function response parts is equal"
	for _, test := range []struct {
		rule string
		body string
		want string // a part of the message
	}{
		{"the body is JSON", `{"contents":`, "Invalid JSON payload"},
		{"nothing is behind the JSON", contents(hi) + "{}", "Invalid JSON payload"},
		{"an unknown field is refused", contents(hi, `"colour":"red"`), `Unknown name "colour": Cannot find field`},
		{"an unknown field of a content is refused", contents(`{"role":"user","parts":[{"text":"a"}],"colour":1}`), `Unknown name "colour" at 'contents[0]'`},
		{"an unknown field of a part is refused", contents(asks(`{"text":"a","colour":1}`)), `Unknown name "colour" at 'contents[0].parts[0]'`},
		{"contents are required", `{}`, "contents is not specified"},
		{"there is a content", contents(""), "contents is not specified"},
		{"a role is user or model", contents(`{"role":"assistant","parts":[{"text":"a"}]}`), "valid role"},
		{"a content has parts", contents(asks()), "contents[0].parts: contents.parts must not be empty"},
		{"a part has data", contents(asks(`{}`)), "contents[0].parts[0].data: required oneof field 'data'"},
		{"a signature is no data", contents(hi + "," + says(`{"thoughtSignature":"s"}`) + "," + hi), "contents[1].parts[0].data: required oneof"},
		{"a part has one kind of data", contents(asks(`{"text":"a","inlineData":{"mimeType":"image/png","data":"AAAA"}}`)), "oneof field 'data' is already set"},
		{"a text says something", contents(asks(`{"text":""}`)), "contents[0].parts[0]: unable to submit request because it must have a text"},
		{"a system prompt says something", contents(hi, `"systemInstruction":{"parts":[{"text":""}]}`), "must have a text"},
		{"a system prompt is text", contents(hi, `"systemInstruction":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`), "system prompt is text"},
		{"a call follows the user", contents(says(looks) + "," + asks(finds)), "function call turn comes immediately after a user turn"},
		{"a call does not follow the model", contents(hi + "," + says(`{"text":"a"}`) + "," + says(looks) + "," + asks(finds)), "function call turn comes immediately after a user turn"},
		{"the user makes no calls", contents(asks(looks)), "function call turn comes"},
		{"a call is answered", contents(hi + "," + says(looks)), count},
		{"a call is answered by the next content", contents(hi + "," + says(looks) + "," + hi), count},
		{"every call is answered", contents(hi + "," + says(looks, looksOn) + "," + asks(finds)), count},
		{"no call is answered twice", contents(hi + "," + says(looks) + "," + asks(finds, finds)), count},
		{"a result has a call", contents(asks(finds)), "function response turn comes immediately after a function call turn"},
		{"a result has a call right before it", contents(hi + "," + says(looks) + "," + asks(finds) + "," + says(`{"text":"a"}`) + "," + asks(finds)), "function response turn comes immediately"},
		{"a result has the id of its call", contents(hi + "," + says(looks) + "," + asks(findsToo)), `"look" with id "c2" has no function call`},
		{"a result has the name of its call", contents(hi + "," + says(looks) + "," + asks(strings.Replace(finds, "look", "wait", 1))), `"wait" with id "c1" has no function call`},
		{"the model has no results", contents(hi + "," + says(finds)), "function response turn comes immediately"},
		{"a result has a name", contents(hi + "," + says(looks) + "," + asks(`{"functionResponse":{"id":"c1","response":{}}}`)), "function_response.name: Name cannot be empty"},
		{"a result has a response", contents(hi + "," + says(looks) + "," + asks(`{"functionResponse":{"id":"c1","name":"look"}}`)), "function_response.response"},
		{"a response is an object", contents(hi + "," + says(looks) + "," + asks(`{"functionResponse":{"id":"c1","name":"look","response":"seen"}}`)), "Invalid JSON payload"},
		{"an input is an object", contents(hi + "," + says(`{"functionCall":{"name":"look","args":[]}}`)), "contents[1].parts[0].function_call.args"},
		{"a called tool has a fit name", contents(hi + "," + says(`{"functionCall":{"name":"7 up"}}`)), "contents[1].parts[0].function_call.name"},
		{"a call of the turn is signed", contents(hi + "," + says(looksOn) + "," + asks(findsToo)), "missing a thought_signature in functionCall parts"},
		{"a call of every step of the turn is", contents(hi + "," + says(looks) + "," + asks(finds) + "," + says(looksOn) + "," + asks(findsToo)), "missing a thought_signature"},
		{"a text behind results does not begin a turn", contents(hi + "," + says(looksOn) + "," + asks(findsToo, `{"text":"a"}`)), "missing a thought_signature"},
		{"a signature is the service's", contents(hi + "," + says(`{"text":"a","thoughtSignature":"bWluZQ=="}`) + "," + hi), "Corrupted thought signature"},
		{"a signature on nothing is the service's", contents(hi + "," + says(`{"text":"","thoughtSignature":"bWluZQ=="}`) + "," + hi), "Corrupted thought signature"},
		{"a file is base64", contents(asks(`{"inlineData":{"mimeType":"image/png","data":"?"}}`)), "contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64"},
		{"a file is not empty", contents(asks(`{"inlineData":{"mimeType":"image/png","data":""}}`)), "inline_data.data: must not be empty"},
		{"a file is of a type that is looked at", contents(asks(`{"inlineData":{"mimeType":"image/gif","data":"AAAA"}}`)), "Unsupported MIME type: image/gif"},
		{"a file that is elsewhere is too", contents(asks(`{"fileData":{"mimeType":"image/gif","fileUri":"https://example.com/a.gif"}}`)), "file_data"},
		{"a file within a result is of fewer types", contents(hi + "," + says(looks) + "," + asks(`{"functionResponse":{"id":"c1","name":"look","response":{},"parts":[{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}}]}}`)), "Unsupported MIME type: audio/wav"},
		{"a part of a result has data", contents(hi + "," + says(looks) + "," + asks(`{"functionResponse":{"id":"c1","name":"look","response":{},"parts":[{}]}}`)), "function_response.parts[0].data"},
		{"a tool has a fit name", contents(hi, declares(`{"name":"look up"}`)), "tools[0].function_declarations[0].name: [FIELD_INVALID]"},
		{"a tool's name begins with a letter", contents(hi, declares(`{"name":"a"}`, `{"name":"7up"}`)), "function_declarations[1].name: [FIELD_INVALID]"},
		{"a tool's name is not too long", contents(hi, declares(`{"name":"`+strings.Repeat("a", 65)+`"}`)), "[FIELD_INVALID]"},
		{"tools differ in name", contents(hi, declares(`{"name":"a"}`, `{"name":"a"}`)), "Duplicate function declaration found: a"},
		{"an unknown field of a tool is refused", contents(hi, declares(`{"name":"a","colour":1}`)), `Unknown name "colour"`},
		{"a schema is an object", contents(hi, declares(`{"name":"a","parametersJsonSchema":true}`)), "must be an object"},
		{"a schema is of an object", contents(hi, declares(`{"name":"a","parametersJsonSchema":{"type":"string"}}`)), "must describe an object"},
		{"a reference has no company", contents(hi, declares(`{"name":"a","parametersJsonSchema":{"type":"object","properties":{"b":{"$ref":"#/$defs/b","description":"c"}},"$defs":{"b":{}}}}`)), "schema at properties.b can only contain properties starting with '$'"},
		{"a reference leads somewhere", contents(hi, declares(`{"name":"a","parametersJsonSchema":{"type":"object","properties":{"b":{"items":{"anyOf":[{"$ref":"#/$defs/b"}]}}}}}`)), "reference to undefined schema at properties.b.items.anyOf.0"},
		{"a schema within one is an object", contents(hi, declares(`{"name":"a","parametersJsonSchema":{"type":"object","properties":{"b":true}}}`)), "schema at properties.b must be an object"},
		{"a bound is positive", contents(hi, `"generationConfig":{"maxOutputTokens":0}`), "max_output_tokens must be positive"},
		{"thinking has a budget or a level", contents(hi, `"generationConfig":{"thinkingConfig":{"thinkingBudget":100,"thinkingLevel":"low"}}`), "only one of thinking budget and thinking level"},
		{"a budget is in range", contents(hi, `"generationConfig":{"thinkingConfig":{"thinkingBudget":-2}}`), "out of range"},
		{"a level is known", contents(hi, `"generationConfig":{"thinkingConfig":{"thinkingLevel":"hard"}}`), "thinking_level"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewGemini(t, nil)
			httpStatus, body := postGemini(t, server, geminiPath, server.Key(), test.body)
			code, status, message := geminiErrorOf(t, body)
			if httpStatus != http.StatusBadRequest || code != httpStatus || status != "INVALID_ARGUMENT" || !strings.Contains(message, test.want) {
				t.Errorf("got %d %s %q, want 400 INVALID_ARGUMENT with %q in it", httpStatus, status, message, test.want)
			}
			if requests := server.Requests(); len(requests) != 1 || requests[0].Refused != message || !bytes.Equal(requests[0].Body, []byte(test.body)) {
				t.Errorf("the request is not on record as it was: %+v", requests)
			}
		})
	}
}

func TestGeminiAcceptsWhatTheServiceAccepts(t *testing.T) {
	t.Parallel()
	const old = "/v1beta/models/gemini-2.5-flash:generateContent"
	for _, test := range []struct{ rule, path, body string }{
		{"a text", geminiPath, contents(hi)},
		{"neighbours on one side", geminiPath, contents(hi + "," + hi + "," + says(`{"text":"a"}`) + "," + says(`{"text":"b"}`) + "," + hi)},
		{"results in another order, and text behind them", geminiPath, contents(hi + "," + says(looks, looksOn) + "," + asks(findsToo, finds, `{"text":"and?"}`))},
		{"a call of an earlier turn without a signature", geminiPath, contents(hi + "," + says(looksOn) + "," + asks(findsToo) + "," + says(`{"text":"a"}`) + "," + hi)},
		{"a call without a signature, of an old model", old, contents(hi + "," + says(looksOn) + "," + asks(findsToo))},
		{"calls without ids", geminiPath, contents(hi + "," + says(strings.Replace(looks, `"id":"c1",`, "", 1)) + "," + asks(strings.Replace(finds, `"id":"c1",`, "", 1)))},
		{"thoughts without a signature", geminiPath, contents(hi + "," + says(`{"text":"hm","thought":true}`, `{"text":"a"}`) + "," + hi)},
		{"everything else", geminiPath, contents(asks(`{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.com/a.pdf"}}`, `{"text":"a"}`),
			`"systemInstruction":{"parts":[{"text":"a"}]}`, `"safetySettings":[]`, `"toolConfig":{}`, `"generationConfig":{"temperature":1,"thinkingConfig":{"thinkingLevel":"LOW"}}`,
			declares(`{"name":"a.b:c-d"}`, `{"name":"b","description":"c","parametersJsonSchema":{"type":"object","properties":{"d":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":["string","null"]}},"additionalProperties":false}}`))},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewGemini(t, nil)
			server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("fine")}})
			if status, body := postGemini(t, server, test.path, server.Key(), test.body); status != http.StatusOK || !strings.Contains(body, "fine") {
				t.Errorf("got %d %s, want 200", status, body)
			}
		})
	}
}

// A model before Gemini 3 accepts no files inside results.
func TestGeminiKnowsItsModels(t *testing.T) {
	t.Parallel()
	body := contents(hi + "," + says(looks) + "," + asks(`{"functionResponse":{"id":"c1","name":"look","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}`))
	server := providertest.NewGemini(t, nil)
	server.Script(providertest.Reply{})
	if status, said := postGemini(t, server, geminiPath, server.Key(), body); status != http.StatusOK {
		t.Errorf("a new model: got %d %s, want 200", status, said)
	}
	if status, said := postGemini(t, server, "/v1beta/models/gemini-2.5-pro:generateContent", server.Key(), body); status != http.StatusBadRequest {
		t.Errorf("an old model: got %d %s, want 400", status, said)
	}
}

func TestGeminiWantsAKeyAndAPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, path, key string
		status          int
		word, want      string
	}{
		{"a key is required", geminiPath, "", http.StatusForbidden, "PERMISSION_DENIED", "unregistered callers"},
		{"the key is the right one", geminiPath, "another", http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid"},
		{"a method is known", "/v1beta/models/m:sing", "the-right-one", http.StatusNotFound, "NOT_FOUND", "there is nothing"},
		{"a model is required", "/v1beta/models/:generateContent", "the-right-one", http.StatusNotFound, "NOT_FOUND", "there is nothing"},
		{"the version is known", "/v7/models/m:generateContent", "the-right-one", http.StatusNotFound, "NOT_FOUND", "there is nothing"},
		{"a stream is of events", "/v1beta/models/m:streamGenerateContent", "the-right-one", http.StatusBadRequest, "INVALID_ARGUMENT", "sse"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewGemini(t, &providertest.GeminiOptions{Key: "the-right-one"})
			status, body := postGemini(t, server, test.path, test.key, contents(hi))
			if _, word, message := geminiErrorOf(t, body); status != test.status || word != test.word || !strings.Contains(message, test.want) {
				t.Errorf("got %d %s, want %d %s with %q in it", status, body, test.status, test.word, test.want)
			}
		})
	}
}

func TestGeminiReports(t *testing.T) {
	t.Parallel()
	t.Run("a request that has no reply fails the test", func(t *testing.T) {
		t.Parallel()
		failures := probetest.Run(t, func(p testing.TB) {
			server := providertest.NewGemini(p, nil)
			postGemini(t, server, geminiPath, server.Key(), contents(hi))
		}).Failures()
		if len(failures) != 1 || !strings.Contains(failures[0], "no scripted reply") {
			t.Errorf("got %q, want a failure that says so", failures)
		}
	})
	t.Run("what it has no words for", func(t *testing.T) {
		t.Parallel()
		server := providertest.NewGemini(t, nil)
		for input, can := range map[string]bool{``: true, `{}`: true, `{"at":"left"}`: true, `{"at":`: false, `null`: false, `["left"]`: false, `{}}`: false} {
			if why := server.Cannot(providertest.Reply{Parts: []providertest.Part{providertest.Call("c1", "look", input)}}); (why == "") != can {
				t.Errorf("a call with %q: %q", input, why)
			}
		}
		if server.Cannot(providertest.Reply{Usage: belay.Usage{In: 1, CacheWrite: 1}}) == "" {
			t.Error("Cannot accepts tokens written to a cache")
		}
	})
	t.Run("a request that does not extend another is reported with the place", func(t *testing.T) {
		t.Parallel()
		server := providertest.NewGemini(t, nil)
		bodies := []string{
			contents(hi), contents(asks(`{"text":"hullo"}`)),
			contents(hi, `"systemInstruction":{"parts":[{"text":"a"}]}`), contents(hi, `"systemInstruction":{"parts":[{"text":"b"}]}`),
			contents(hi + "," + says(`{"text":"a"}`) + "," + hi),
			contents(asks(`{"text":"hello"}`, `{"text":"again"}`)),
		}
		for _, test := range []struct {
			earlier, later int
			want           string
		}{
			{0, 1, "part 0 of the conversation differs"},
			{0, 2, "systemInstruction was added"},
			{2, 3, "systemInstruction differs"},
			{2, 0, "systemInstruction differs"},
			{4, 0, "part 1 of the conversation is gone"},
			{0, 4, ""},
			{0, 5, ""},
		} {
			err := server.Extends(providertest.Request{Body: []byte(bodies[test.earlier])}, providertest.Request{Body: []byte(bodies[test.later])})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d and %d: got %v, want %q", test.earlier, test.later, err, test.want)
			}
		}
	})
}

func TestGeminiAnswersWithoutAStream(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	server.Script(providertest.Reply{
		Parts: []providertest.Part{providertest.Thinking("Hm", "m."), providertest.Text("Good ", "morning!"), providertest.Call("c1", "look", `{"at":`, `"left"}`)},
		Usage: belay.Usage{In: 1, Out: 6, CacheRead: 3},
	})
	_, body := postGemini(t, server, geminiPath, server.Key(), contents(hi))
	var answer struct {
		Candidates []struct {
			Content struct {
				Role  string            `json:"role"`
				Parts []json.RawMessage `json:"parts"`
			} `json:"content"`
			FinishReason string `json:"finishReason"` //nolint:tagliatelle // the service's name
		} `json:"candidates"`
		Usage map[string]int `json:"usageMetadata"` //nolint:tagliatelle // the service's name
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Candidates) != 1 {
		t.Fatalf("%s: %v", body, err)
	}
	c := answer.Candidates[0]
	if len(c.Content.Parts) != 3 || c.Content.Role != "model" || c.FinishReason != "STOP" {
		t.Fatalf("got %s, want thinking, text and call", body)
	}
	if answer.Usage["promptTokenCount"] != 4 || answer.Usage["cachedContentTokenCount"] != 3 || answer.Usage["candidatesTokenCount"]+answer.Usage["thoughtsTokenCount"] != 6 {
		t.Errorf("got %v, want the usage", answer.Usage)
	}
	// The server accepts its own parts if they are unchanged.
	var back []string
	for _, p := range c.Content.Parts {
		back = append(back, string(p))
	}
	server.Script(providertest.Reply{})
	if status, said := postGemini(t, server, geminiPath, server.Key(), contents(hi+","+says(back...)+","+asks(finds))); status != http.StatusOK {
		t.Errorf("its own answer is refused: %s", said)
	}
	for old, changed := range map[string]string{"Hmm.": "Oh.", `"left"`: `"right"`, `"name":"look"`: `"name":"wait"`} {
		changed := strings.Replace(says(back...), old, changed, 1)
		if status, said := postGemini(t, server, geminiPath, server.Key(), contents(hi+","+changed+","+asks(strings.Replace(finds, "look", "wait", strings.Count(changed, "wait"))))); status != http.StatusBadRequest || !strings.Contains(said, "Corrupted") {
			t.Errorf("%s in place of %s: got %d %s, want 400", changed, old, status, said)
		}
	}
}
