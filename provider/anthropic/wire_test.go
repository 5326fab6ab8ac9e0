package anthropic_test

import (
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
	"github.com/belay-run/belay/provider/anthropic"
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
		{"end_turn", nil, belay.StopEnd},
		{"stop_sequence", nil, belay.StopEnd},
		{"pause_turn", nil, belay.StopEnd},
		{"tool_use", call, belay.StopToolUse},
		{"max_tokens", nil, belay.StopMaxTokens},
		{"model_context_window_exceeded", nil, belay.StopMaxTokens},
		{"refusal", nil, belay.StopRefusal},
		{"a_word_of_tomorrow", nil, belay.StopEnd},
		{"a_word_of_tomorrow", call, belay.StopToolUse},
	} {
		t.Run(fmt.Sprintf("%s with %d calls is %s", test.word, len(test.parts), test.want), func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			server.Script(providertest.Reply{Parts: test.parts, StopWord: test.word})
			r, err := answer(t, open(server, nil), &belay.Request{Messages: []*belay.Message{user("a")}})
			if err != nil || r.StopReason != test.want || r.Model != "model-of-a-test" {
				t.Errorf("got %+v, %v, want %s of model-of-a-test", r, err, test.want)
			}
		})
	}
}

func TestFilesAreSentAsTheyCanBeShown(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	media := []belay.Media{
		{MIME: "image/webp", Data: []byte("webp")},
		{MIME: "image/png", URL: "https://example.com/a.png"},
		{MIME: "application/pdf", Name: "a.pdf", Data: []byte("pdf")},
		{MIME: "application/pdf", URL: "https://example.com/a.pdf"},
		{MIME: "text/markdown", Name: "a.md", Data: []byte("# A")},
	}
	m := message(belay.RoleUser)
	for i := range media {
		m.Parts = append(m.Parts, belay.Part{Type: belay.PartMedia, Media: &media[i]})
	}
	m.Parts = append(m.Parts, belay.File("a.zip", "application/zip", []byte("zip")), belay.Image("image/bmp", []byte("bmp")), belay.File("empty.txt", "text/plain", nil))
	r := ask(t, server, open(server, nil), &belay.Request{Messages: []*belay.Message{m}})
	want := []belay.Part{
		{Type: belay.PartMedia, Media: &belay.Media{MIME: "image/webp", Data: []byte("webp")}},
		{Type: belay.PartMedia, Media: &belay.Media{URL: "https://example.com/a.png", Data: []byte{}}},
		{Type: belay.PartMedia, Media: &belay.Media{MIME: "application/pdf", Name: "a.pdf", Data: []byte("pdf")}},
		{Type: belay.PartMedia, Media: &belay.Media{URL: "https://example.com/a.pdf", Data: []byte{}}},
		{Type: belay.PartMedia, Media: &belay.Media{MIME: "text/plain", Name: "a.md", Data: []byte("# A")}},
		belay.Text(`[A file that cannot be shown: name "a.zip", type "application/zip", 3 bytes, address ""]`),
		belay.Text(`[A file that cannot be shown: name "", type "image/bmp", 3 bytes, address ""]`),
		belay.Text(`[A file that cannot be shown: name "empty.txt", type "text/plain", 0 bytes, address ""]`),
	}
	if diff := cmp.Diff(want, r.Messages[0].Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// event returns a server-sent event.
func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func TestAnswersOutOfTheOrdinary(t *testing.T) {
	t.Parallel()
	const stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	const text = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`
	const jsonType, streamType = "application/json", "text/event-stream"
	for _, test := range []struct {
		rule        string
		status      int
		contentType string
		body        string
		kind        belay.ModelErrorKind
		want        string
	}{
		{"the page of a proxy is repeated in part", 502, "text/html", "<html>bad gateway" + strings.Repeat(" ", 5000) + "end</html>", belay.ModelServer, "bad gateway"},
		{"a body that is a list is classified by its status", 429, jsonType, `["slow down"]`, belay.ModelRateLimited, "slow down"},
		{"a body that is a word is classified by its status", 400, jsonType, `"no"`, belay.ModelInvalid, "no"},
		{"a body that is missing is classified by its status", 529, jsonType, "", belay.ModelOverloaded, "529"},
		{"503 with the word overloaded is overloaded", 503, jsonType, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, belay.ModelOverloaded, "busy"},
		{"input and bound together may be too long", 400, jsonType, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 190000 + 32000 > 200000"}}`, belay.ModelTooLong, "190000"},
		{"a page in place of a stream is no response", 200, "text/html", "<html>log in</html>", belay.ModelInvalid, "the server answered text/html"},
		{"an answer that leads elsewhere is no response", 302, "", "", belay.ModelInvalid, "the server answered 302 Found"},
		{"a stream that calls itself plain text is heard", 200, "text/plain; charset=utf-8", event("content_block_start", text) + stop, "", ""},
		{"nothing in place of a stream is no response", 200, streamType, "", belay.ModelNetwork, "message_stop"},
		{"half an event is no event", 200, streamType, "event: message_stop\ndata: {}\n", belay.ModelNetwork, "message_stop"},
		{"an event that is not JSON is the server's fault", 200, streamType, event("content_block_start", "{"), belay.ModelServer, "content_block_start"},
		{"more of a block that did not begin is the server's fault", 200, streamType, event("content_block_delta", `{"index":3,"delta":{"text":"a"}}`), belay.ModelServer, "block 3"},
		{"a block that skips a number is the server's fault", 200, streamType, event("content_block_start", strings.Replace(text, "0", "1", 1)), belay.ModelServer, "started block 1"},
		{"an error of a kind in the stream is of that kind", 200, streamType, event("error", `{"error":{"type":"rate_limit_error","message":"slow"}}`), belay.ModelRateLimited, "slow"},
		{"an error of authentication in the stream is one", 200, streamType, event("error", `{"error":{"type":"authentication_error","message":"who"}}`), belay.ModelAuth, "who"},
		{"a request that is too long may show in the stream", 200, streamType, event("error", `{"error":{"type":"invalid_request_error","message":"prompt is too long"}}`), belay.ModelTooLong, "too long"},
		{"an error of an unknown kind in the stream is the server's", 200, streamType, event("error", `{"error":{"type":"error_of_tomorrow","message":"hm"}}`), belay.ModelServer, "hm"},
		{"the key is taken out of an error in the stream", 200, streamType, event("error", `{"error":{"type":"api_error","message":"key-of-a-test"}}`), belay.ModelServer, "[key]"},
		{"what is not known is passed over", 200, streamType, ": a comment\n\n" + event("event_of_tomorrow", "{") + event("content_block_start", text) +
			event("content_block_delta", `{"index":0,"delta":{"type":"delta_of_tomorrow","value":1}}`) + event("content_block_start", `{"index":1,"content_block":{"type":"block_of_tomorrow"}}`) + stop, "", ""},
		{"a request that took too long is tried again", 408, jsonType, `{"type":"error","error":{"type":"timeout_error","message":"slow"}}`, belay.ModelServer, "slow"},
		{"an answer in one piece is a message", 200, jsonType, `{"data":[]}`, belay.ModelServer, `type ""`},
		{"an answer in one piece is JSON", 200, jsonType, `{"type":"message"`, belay.ModelServer, "does not have the expected form"},
		{"an error in one piece with the status of success is one", 200, jsonType, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, belay.ModelOverloaded, "busy"},
		{"an answer may come in one piece", 200, jsonType + "; charset=utf-8", `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{}}`, "", ""},
		{"a gateway may say that the input is too long", 400, jsonType, `{"type":"error","error":{"type":"invalid_request_error","message":"Input is too long for requested model."}}`, belay.ModelTooLong, "too long"},
		{"types may be in the data alone", 200, streamType, "data: " + text + "\n\ndata: {\"type\":\"message_stop\"}\n\n", "", ""},
		{"an error may be in the data alone", 200, streamType, "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", belay.ModelOverloaded, "busy"},
		{"an input may come with the beginning of its call", 200, streamType, event("content_block_start", `{"index":0,"content_block":{"type":"tool_use","id":"c1","name":"look","input":{"at":"left"}}}`) + stop, "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			r, err := answer(t, wild(t, test.status, test.contentType, test.body), &belay.Request{Messages: []*belay.Message{user("a")}})
			if test.kind != "" {
				wantFailure(t, err, test.kind, test.want)
				if len(err.Error()) > 1000 || strings.Contains(err.Error(), "%!") {
					t.Errorf("the error is too long or badly worded: %v", err)
				}
				return
			}
			if err != nil || len(r.Parts) != 1 {
				t.Fatalf("got %+v, %v, want a response with one part", r, err)
			}
			if call := r.Parts[0].Call; call != nil && string(call.Input) != `{"at":"left"}` {
				t.Errorf("the input is %s", call.Input)
			}
		})
	}
}

// SPEC L-04
func TestAGatewayMayTellMilliseconds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After-Ms", "1250")
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	_, err := answer(t, anthropic.New("m", &anthropic.Options{Key: "k", URL: server.URL}), &belay.Request{Messages: []*belay.Message{user("a")}})
	if e, ok := errors.AsType[*belay.ModelError](err); !ok || e.Kind != belay.ModelRateLimited || e.RetryAfter != 1250*time.Millisecond {
		t.Errorf("got %v, want to wait for 1.25s", err)
	}
}

// A gateway may send the token counts in a separate event after the stop reason.
func TestTheReasonStandsIfCountsFollow(t *testing.T) {
	t.Parallel()
	r, err := answer(t, wild(t, 200, "text/event-stream", event("content_block_start", `{"index":0,"content_block":{"type":"text","text":"a"}}`)+
		event("message_delta", `{"delta":{"stop_reason":"max_tokens"},"usage":{}}`)+event("message_delta", `{"delta":{"stop_reason":null},"usage":{"output_tokens":7}}`)+
		event("message_stop", `{}`)), &belay.Request{Messages: []*belay.Message{user("a")}})
	if err != nil || r.StopReason != belay.StopMaxTokens || r.Usage.Out != 7 {
		t.Errorf("got %+v, %v, want 7 tokens that reached a bound", r, err)
	}
}

// A call that was cut off at the end of the window must not look like a call without input.
func TestACallThatTheWindowCutsOffIsMalformed(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		server := providertest.NewAnthropic(t, &providertest.AnthropicOptions{Whole: whole})
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Call("c1", "look")}, StopWord: "model_context_window_exceeded"})
		r, err := answer(t, open(server, nil), &belay.Request{Messages: []*belay.Message{user("a")}})
		if err != nil || r.StopReason != belay.StopMaxTokens || r.Parts[0].Call.Malformed == "" {
			t.Errorf("got %+v, %v, want a call that is malformed", r, err)
		}
	}
}

func TestADroppedConnectionSaysWhy(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("a")}, Break: &providertest.Break{After: 2}})
	_, err := answer(t, open(server, nil), &belay.Request{Messages: []*belay.Message{user("a")}})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the error of the connection in it", err)
	}
}

func TestASignatureMayComeInPieces(t *testing.T) {
	t.Parallel()
	r, err := answer(t, wild(t, http.StatusOK, "text/event-stream",
		event("content_block_start", `{"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`)+
			event("content_block_delta", `{"index":0,"delta":{"signature":"one"}}`)+
			event("content_block_delta", `{"index":0,"delta":{"signature":"two"}}`)+
			event("message_stop", `{}`)), &belay.Request{Messages: []*belay.Message{user("a")}})
	if err != nil || len(r.Parts) != 1 || !strings.Contains(string(r.Parts[0].Opaque), `"onetwo"`) {
		t.Errorf("got %+v, %v, want a part with the whole signature", r, err)
	}
}

// A response is complete at its last event. The model then waits a short time for the end of
// the stream, so that the connection can be reused.
func TestTheEndOfAStream(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	var never atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, event("message_stop", "{}"))
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
	model := anthropic.New("m", &anthropic.Options{Key: "k", URL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	req := &belay.Request{Messages: []*belay.Message{user("a")}}
	for range 3 {
		if _, err := answer(t, model, req); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("3 requests took %d connections, want 1", n)
	}
	never.Store(true)
	if _, err := answer(t, model, req); err != nil {
		t.Errorf("a response whose stream does not end: %v", err)
	}
}
