package gemini_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
)

func TestStopReasons(t *testing.T) {
	t.Parallel()
	call := []providertest.Part{providertest.Call("c1", "look", "{}")}
	for _, test := range []struct {
		word  string
		parts []providertest.Part
		want  belay.StopReason
	}{
		{"STOP", nil, belay.StopEnd},
		{"STOP", call, belay.StopToolUse},
		{"MAX_TOKENS", nil, belay.StopMaxTokens},
		{"MAX_TOKENS", call, belay.StopMaxTokens},
		{"CONTINUATION", nil, belay.StopMaxTokens},
		{"SAFETY", nil, belay.StopRefusal},
		{"RECITATION", nil, belay.StopRefusal},
		{"LANGUAGE", nil, belay.StopRefusal},
		{"BLOCKLIST", nil, belay.StopRefusal},
		{"PROHIBITED_CONTENT", nil, belay.StopRefusal},
		{"SPII", nil, belay.StopRefusal},
		{"IMAGE_SAFETY", nil, belay.StopRefusal},
		{"OTHER", nil, belay.StopEnd},
		{"A_WORD_OF_TOMORROW", nil, belay.StopEnd},
		{"A_WORD_OF_TOMORROW", call, belay.StopToolUse},
	} {
		t.Run(fmt.Sprintf("%s with %d calls is %s", test.word, len(test.parts), test.want), func(t *testing.T) {
			t.Parallel()
			server := providertest.NewGemini(t, nil)
			server.Script(providertest.Reply{Parts: test.parts, StopWord: test.word})
			r, err := answer(t, open(server, nil), hello())
			if err != nil || r.StopReason != test.want || r.Model != "model-of-a-test" {
				t.Errorf("got %+v, %v, want %s of model-of-a-test", r, err, test.want)
			}
		})
	}
}

// If the service could not parse a call, the attempt fails and a retry can help. The error
// contains the service's message.
func TestACallThatCannotBeReadIsTriedAgain(t *testing.T) {
	t.Parallel()
	finish := func(word string) string {
		return `{"candidates":[{"finishReason":"` + word + `","finishMessage":"Malformed function call: print(look(at=","index":0}]}`
	}
	for word, kind := range map[string]belay.ModelErrorKind{
		"MALFORMED_FUNCTION_CALL": belay.ModelServer, "UNEXPECTED_TOOL_CALL": belay.ModelServer, "TOO_MANY_TOOL_CALLS": belay.ModelServer,
		"MALFORMED_RESPONSE": belay.ModelServer, "MISSING_THOUGHT_SIGNATURE": belay.ModelInvalid,
	} {
		_, err := answer(t, stream(t, finish(word)), hello())
		wantFailure(t, err, kind, word+": Malformed function call: print(look(at=")
	}
}

func TestABlockedPromptIsARefusal(t *testing.T) {
	t.Parallel()
	r, err := answer(t, stream(t, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7},"modelVersion":"m"}`), hello())
	if err != nil || r.StopReason != belay.StopRefusal || len(r.Parts) != 0 || r.Usage.In != 7 {
		t.Errorf("got %+v, %v, want a refusal", r, err)
	}
}

// SPEC L-07
func TestTokensAreCounted(t *testing.T) {
	t.Parallel()
	model := stream(t,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"thoughtsTokenCount":5}}`,
		`{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"toolUsePromptTokenCount":3}}`)
	r, err := answer(t, model, hello())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(belay.Usage{In: 43, Out: 12, CacheRead: 60}, r.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	price := gemini.New(older, nil).Info().Price
	if got, want := price.Of(r.Usage), (43*0.3+12*2.5+60*0.03)/1e6; got-want > 1e-12 || want-got > 1e-12 {
		t.Errorf("the cost is %v, want %v", got, want)
	}
}

func TestCallsWithoutAnIDGetOne(t *testing.T) {
	t.Parallel()
	const call = `{"functionCall":{"name":"look","args":{"at":1}}}`
	for _, test := range []struct {
		rule   string
		events []string
		want   []string
	}{
		{"it is made of the response's", []string{parts(call, call), parts(call)}, []string{"mAitaLmkHPPlz7IP_1", "mAitaLmkHPPlz7IP_2", "mAitaLmkHPPlz7IP_3"}},
		{"or counted", []string{`{"candidates":[{"content":{"parts":[` + call + `,` + call + `]}}]}`}, []string{"call_1", "call_2"}},
		{"one that is there is kept", []string{parts(`{"functionCall":{"id":"mine","name":"look"}}`, call)}, []string{"mine", "mAitaLmkHPPlz7IP_2"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := stream(t, append(test.events, stopped("STOP"))...)
			for range 2 { // the ids must be the same each time
				var told, got []string
				for chunk, err := range model.Stream(t.Context(), hello()) {
					if err != nil {
						t.Fatal(err)
					}
					if chunk.Input != nil {
						told = append(told, chunk.Input.Call)
					}
					if chunk.Response != nil {
						for _, p := range chunk.Response.Parts {
							got = append(got, p.Call.ID)
						}
					}
				}
				if diff := cmp.Diff(test.want, got) + cmp.Diff(test.want, told); diff != "" {
					t.Errorf("ids (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestInputsAreTakenAsTheyCome(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, args, stop, input, malformed string }{
		{"numbers keep their digits and keys their order", `,"args":{"z":12345678901234567890,"a":1.50}`, "STOP", `{"z":12345678901234567890,"a":1.50}`, ""},
		{"none is an empty object", ``, "STOP", `{}`, ""},
		{"null is none", `,"args":null`, "STOP", `{}`, ""},
		{"what is no object is malformed", `,"args":[1]`, "STOP", `{}`, "[1]"},
		{"one that may have been cut off is malformed", ``, "MAX_TOKENS", `{}`, "{"},
		{"one that is whole is not cut off", `,"args":{}`, "MAX_TOKENS", `{}`, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			r, err := answer(t, stream(t, parts(`{"functionCall":{"name":"look"`+test.args+`}}`), stopped(test.stop)), hello())
			if err != nil || len(r.Parts) != 1 {
				t.Fatalf("got %+v, %v, want a call", r, err)
			}
			if c := r.Parts[0].Call; string(c.Input) != test.input || c.Malformed != test.malformed {
				t.Errorf("got %s, malformed %q, want %s, malformed %q", c.Input, c.Malformed, test.input, test.malformed)
			}
		})
	}
}

// errorBody returns an error in the form of the service.
func errorBody(code int, status, message string, details ...string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, strings.Join(details, ","))
}

// retryInfo returns the detail of an error that says how long to wait.
func retryInfo(delay string) string {
	return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}`
}

// SPEC L-04
func TestAnswersOutOfTheOrdinary(t *testing.T) {
	t.Parallel()
	const jsonType, streamType = "application/json", "text/event-stream"
	const onePiece = `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`
	const quota = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"a"}]}`
	text := event(parts(`{"text":"a"}`))
	stop := event(stopped("STOP"))
	for _, test := range []struct {
		rule        string
		status      int
		contentType string
		body        string
		kind        belay.ModelErrorKind
		want        string
	}{
		{"the page of a proxy is repeated in part", 502, "text/html", "<html>bad gateway" + strings.Repeat(" ", 5000) + "end</html>", belay.ModelServer, "bad gateway"},
		{"a body that is a list is read", 429, jsonType, "[" + errorBody(429, "RESOURCE_EXHAUSTED", "slow down") + "]", belay.ModelRateLimited, "RESOURCE_EXHAUSTED: slow down"},
		{"a body that is a word is classified by its status", 400, jsonType, `"no"`, belay.ModelInvalid, "no"},
		{"a body that is missing is classified by its status", 529, jsonType, "", belay.ModelOverloaded, "529"},
		{"a body without an error is classified by its status", 500, jsonType, `{"a":1}`, belay.ModelServer, `{"a":1}`},
		{"503 that says overloaded is overloaded", 503, jsonType, errorBody(503, "UNAVAILABLE", "The model is overloaded."), belay.ModelOverloaded, "overloaded"},
		{"503 that says high demand is overloaded", 503, jsonType, errorBody(503, "UNAVAILABLE", "This model is currently experiencing high demand."), belay.ModelOverloaded, "high demand"},
		{"503 that says no more is the server's", 503, jsonType, errorBody(503, "UNAVAILABLE", "The service is currently unavailable."), belay.ModelServer, "unavailable"},
		{"504 is the server's", 504, jsonType, errorBody(504, "DEADLINE_EXCEEDED", "late"), belay.ModelServer, "late"},
		{"499 is the server's", 499, jsonType, errorBody(499, "CANCELLED", "gone"), belay.ModelServer, "gone"},
		{"what is used up for today does not pass by waiting", 429, jsonType, errorBody(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"50"}]}`, retryInfo("30s")), belay.ModelInvalid, "current quota"},
		{"what is used up for a minute does", 429, jsonType, errorBody(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaValue":"5"}]}`), belay.ModelRateLimited, "current quota"},
		{"a model that is unavailable to the account is not retried", 429, jsonType, errorBody(429, "RESOURCE_EXHAUSTED", "* Quota exceeded for metric: free_tier_requests, limit: 0, model: gemini-3-pro\nPlease retry in 45s."), belay.ModelInvalid, "limit: 0"},
		{"an empty purse does not fill by waiting", 429, jsonType, errorBody(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), belay.ModelInvalid, "depleted"},
		{"a window that is exceeded is too long", 400, jsonType, errorBody(400, "INVALID_ARGUMENT", "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576)."), belay.ModelTooLong, "1048600"},
		{"a body that is too large is too long", 400, jsonType, errorBody(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."), belay.ModelTooLong, "20971520"},
		{"a key that is refused with 400 is one of authentication", 400, jsonType, errorBody(400, "INVALID_ARGUMENT", "no", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`), belay.ModelAuth, "no"},
		{"a key that is expired is one of authentication", 400, jsonType, errorBody(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key."), belay.ModelAuth, "expired"},
		{"a place that is not served is invalid", 400, jsonType, errorBody(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), belay.ModelInvalid, "location"},
		{"details that are not known are passed over", 400, jsonType, errorBody(400, "INVALID_ARGUMENT", "no", quota, `{"@type":7}`), belay.ModelInvalid, "no"},
		{"an answer that is no success is none", 302, jsonType, "", belay.ModelInvalid, "302 Found"},
		{"a page in place of a stream is no response", 200, "text/html", "<html>log in</html>", belay.ModelInvalid, "the server answered text/html"},
		{"nothing in place of a stream is no response", 200, streamType, "", belay.ModelNetwork, "before the finish reason arrived"},
		{"half an event is no event", 200, streamType, text + strings.TrimSuffix(stop, "\r\n\r\n"), belay.ModelNetwork, "before the finish reason arrived"},
		{"an event that lacks its end is no event", 200, streamType, text + strings.TrimSuffix(stop, "\r\n"), belay.ModelNetwork, "before the finish reason arrived"},
		{"an event that is not JSON is the server's fault", 200, streamType, event("{"), belay.ModelServer, "does not have the expected form"},
		{"an event of another shape is the server's fault", 200, streamType, event(`{"candidates":7}`), belay.ModelServer, "does not have the expected form"},
		{"an error in the stream is of its kind", 200, streamType, text + event(errorBody(429, "RESOURCE_EXHAUSTED", "slow")), belay.ModelRateLimited, "slow"},
		{"an error of authentication in the stream is one", 200, streamType, event(errorBody(403, "PERMISSION_DENIED", "who")), belay.ModelAuth, "who"},
		{"a request that is too long may show in the stream", 200, streamType, event(errorBody(400, "INVALID_ARGUMENT", "it exceeds the maximum number of tokens")), belay.ModelTooLong, "maximum"},
		{"an error without a code in the stream is the server's", 200, streamType, event(`{"error":{"message":"hm"}}`), belay.ModelServer, "hm"},
		{"an error that says nothing is one", 200, streamType, event(`{"error":{}}`), belay.ModelServer, "gave no reason"},
		{"an error that is no event is read", 200, streamType, text + "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"The model is overloaded\"\n  }\n}\n", belay.ModelOverloaded, "overloaded"},
		{"an error that is no event and has no end is read", 200, streamType, text + errorBody(500, "INTERNAL", "broke"), belay.ModelServer, "broke"},
		{"an error in a list that is no event is read", 200, streamType, text + "[" + errorBody(500, "INTERNAL", "broke") + "\n]\n\n" + stop, belay.ModelServer, "broke"},
		{"the key is taken out of an error in the stream", 200, streamType, event(errorBody(500, "INTERNAL", "key-of-a-test")), belay.ModelServer, "[key]"},
		{"an answer may come in one piece", 200, jsonType, onePiece, "", ""},
		{"or in a list of pieces", 200, jsonType + "; charset=UTF-8", "[{\"modelVersion\":\"m\"},\n" + onePiece + "\n]\n", "", ""},
		{"one piece that does not say why it ends is none", 200, jsonType, `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, belay.ModelNetwork, "before the finish reason arrived"},
		{"one piece is JSON", 200, jsonType, `[{"candidates"`, belay.ModelServer, "does not have the expected form"},
		{"an error in a list of pieces is read", 200, jsonType, "[" + errorBody(503, "UNAVAILABLE", "The model is overloaded.") + "]", belay.ModelOverloaded, "overloaded"},
		{"what is not known is passed over", 200, streamType, ": a comment\r\n\r\nevent: of tomorrow\nid: 7\n" + event(`{"of":"tomorrow"}`) + event(parts(`{"text":"a","of":"tomorrow"}`, `{"partOfTomorrow":{}}`)) + stop, "", ""},
		{"lines may end without a return", 200, streamType, strings.ReplaceAll(text+stop, "\r", ""), "", ""},
		{"an event may have several lines of data", 200, streamType, strings.ReplaceAll(text+stop, `{"candidates"`, "{\ndata: \"candidates\""), "", ""},
		{"no space is needed", 200, streamType, strings.ReplaceAll(text+stop, "data: ", "data:"), "", ""},
		{"what is said behind the end counts", 200, streamType, stop + text, "", ""},
		{"an error behind the end does not", 200, streamType, text + stop + event(errorBody(500, "INTERNAL", "late")), "", ""},
		{"an end that is not specified is none", 200, streamType, event(stopped("FINISH_REASON_UNSPECIFIED")) + text + stop, "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			r, err := answer(t, wild(t, test.status, test.contentType, test.body), hello())
			if test.kind != "" {
				wantFailure(t, err, test.kind, test.want)
				if len(err.Error()) > 1000 || strings.Contains(err.Error(), "%!") {
					t.Errorf("the error is too long or badly worded: %v", err)
				}
				return
			}
			if err != nil || len(r.Parts) != 1 || r.Parts[0].Text != "a" {
				t.Fatalf("got %+v, %v, want a response with one part", r, err)
			}
		})
	}
}

// A gateway may say in milliseconds how long to wait.
//
// SPEC L-04
func TestHowLongToWaitInMilliseconds(t *testing.T) {
	t.Parallel()
	body := errorBody(429, "RESOURCE_EXHAUSTED", "slow down")
	_, err := answer(t, wild(t, 429, "application/json", body, "Retry-After-Ms", "1250"), hello())
	if e := failureOf(t, err, belay.ModelRateLimited, "slow down"); e.RetryAfter != 1250*time.Millisecond {
		t.Errorf("wait %v, want 1.25 s", e.RetryAfter)
	}
}

// SPEC L-04
func TestHowLongToWait(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		details []string
		header  string
		want    time.Duration
	}{
		{"nothing is said", nil, "", 0},
		{"the details say it", []string{retryInfo("17.5s")}, "", 17500 * time.Millisecond},
		{"the header says it", nil, "7", 7 * time.Second},
		{"the longer counts", []string{retryInfo("3s")}, "7", 7 * time.Second},
		{"or the other", []string{retryInfo("30s")}, "7", 30 * time.Second},
		{"nonsense says nothing", []string{retryInfo("soon"), retryInfo("-4s")}, "never", 0},
		{"nobody waits for a year", []string{retryInfo("31536000s")}, "", 24 * time.Hour},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			body := errorBody(429, "RESOURCE_EXHAUSTED", "slow down", test.details...)
			_, err := answer(t, wild(t, 429, "application/json", body, "Retry-After", test.header), hello())
			if e := failureOf(t, err, belay.ModelRateLimited, "slow down"); e.RetryAfter != test.want {
				t.Errorf("wait %v, want %v", e.RetryAfter, test.want)
			}
			if test.header == "" {
				_, err := answer(t, stream(t, body), hello())
				if e := failureOf(t, err, belay.ModelRateLimited, "slow down"); e.RetryAfter != test.want {
					t.Errorf("in a stream: wait %v, want %v", e.RetryAfter, test.want)
				}
			}
		})
	}
}

func TestADroppedConnectionSaysWhy(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("a", "b")}, Break: &providertest.Break{After: 2}})
	_, err := answer(t, open(server, nil), hello())
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the error of the connection in it", err)
	}
}

// A response is complete when it has a finish reason. The model then waits a short time for
// the end of the stream: more data may follow, and the connection can be reused.
func TestTheEndOfAStream(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	var never atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, event(stopped("STOP")))
		_ = http.NewResponseController(w).Flush()
		end := time.After(10 * time.Millisecond)
		if never.Load() {
			end = nil
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	// The test needs its own transport: when other tests close their servers, httptest
	// closes the idle connections of the default transport.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	model := gemini.New("m", &gemini.Options{Key: "k", URL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	for range 3 {
		if _, err := answer(t, model, hello()); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("3 requests took %d connections, want 1", n)
	}
	never.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var response *belay.Response // the chunks before the response are empty
	for chunk, err := range model.Stream(ctx, hello()) {
		if err != nil {
			t.Fatal(err)
		}
		response = chunk.Response
	}
	if response == nil || ctx.Err() != nil {
		t.Errorf("a response whose stream does not end: %+v, %v", response, ctx.Err())
	}
}
