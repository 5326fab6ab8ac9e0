package anthropic_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// Models from Claude 5.1 on reject a thinking block if the messages before it have changed,
// for example after a compaction. The request asks them to drop the block instead.
func TestThinkingThatIsBoundToSomethingElseIsForgotten(t *testing.T) {
	t.Parallel()
	const drop = `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`
	for _, test := range []struct {
		model    string
		thinking int
		want     string
	}{
		{"claude-fable-5-1", 0, `{` + drop + `,"type":"adaptive"}`},
		{"claude-opus-5-5-20261001", anthropic.Adaptive, `{` + drop + `,"display":"summarized","type":"adaptive"}`},
		{"anthropic/claude-sonnet-5.5", 2000, `{` + drop + `,"budget_tokens":2000,"type":"enabled"}`},
		{"claude-haiku-6", 0, `{` + drop + `,"type":"adaptive"}`},
		{"claude-opus-5", 0, ""},
		{"claude-opus-5-20260901", 0, ""},
		{"claude-3-5-haiku-20241022", 0, ""},
		{"claude-opus-4-8", anthropic.Adaptive, `{"display":"summarized","type":"adaptive"}`},
		{"claude-of-tomorrow", 0, ""},
		{"kimi-k7-5", 0, ""},
	} {
		t.Run(test.model, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			model := anthropic.New(test.model, &anthropic.Options{URL: server.URL(), Key: server.Key(), Thinking: test.thinking, MaxTokens: 4000})
			r := ask(t, server, model, &belay.Request{Messages: []*belay.Message{user("a")}})
			var body struct {
				Thinking map[string]any `json:"thinking"`
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			var sent []byte
			if body.Thinking != nil {
				sent, _ = json.Marshal(body.Thinking)
			}
			if !equalJSON(string(sent), test.want) {
				t.Errorf("got %s, want %s", sent, test.want)
			}
		})
	}
}

// equalJSON compares two JSON values. It ignores the order of fields.
func equalJSON(a, b string) bool {
	var x, y any
	if a == "" || b == "" {
		return a == b
	}
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	one, _ := json.Marshal(x) //nolint:errchkjson // it was JSON
	two, _ := json.Marshal(y) //nolint:errchkjson // likewise
	return bytes.Equal(one, two)
}

// Anthropic rejects thinking that another service signed, and the other service rejects
// Anthropic's.
func TestThinkingStaysWithTheServiceThatSignedIt(t *testing.T) {
	t.Parallel()
	there, here := providertest.NewAnthropic(t, nil), providertest.NewAnthropic(t, nil)
	there.Script(providertest.Reply{Parts: []providertest.Part{providertest.Thinking("Left."), providertest.Redacted("a secret"), providertest.Text("It is left.")}})
	req := &belay.Request{Messages: []*belay.Message{user("where?")}}
	said, err := answer(t, open(there, nil), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, message(belay.RoleAssistant, said.Parts...), user("and now?"))
	for _, test := range []struct {
		rule   string
		server providertest.Server
		opts   *anthropic.Options
		want   int // how many blocks of the answer are sent back
	}{
		{"it goes back to who signed it", there, nil, 3},
		{"and to nobody else", here, nil, 1},
		{"the encoding of one is not sent to the other", there, nil, 3},
		{"a name tells that two addresses are one service", here, &anthropic.Options{Provider: said.Parts[0].Provider}, 3},
	} {
		if got := len(ask(t, test.server, open(test.server, test.opts), req).Messages[1].Parts); got != test.want {
			t.Errorf("%s: %d blocks are sent back, want %d", test.rule, got, test.want)
		}
	}
	if p := said.Parts[0].Provider; !strings.HasPrefix(there.URL(), "http://"+p) {
		t.Errorf("the thinking is marked as of %q, want the host of %s", p, there.URL())
	}
}

// Some services with this protocol do not sign thinking. They may still reject a
// conversation without their thinking.
func TestThinkingThatNobodySignsIsCarriedBack(t *testing.T) {
	t.Parallel()
	stream := event("content_block_start", `{"index":0,"content_block":{"type":"thinking","thinking":"Left."}}`) +
		event("content_block_start", `{"index":1,"content_block":{"type":"text","text":"It is left."}}`) + event("message_stop", `{}`)
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body) // an error means that the client has left
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		provider string
		want     bool
	}{{"", true}, {"anthropic", false}} { // Anthropic signs complete thinking
		model := anthropic.New("m", &anthropic.Options{URL: server.URL, Key: "k", Provider: test.provider})
		req := &belay.Request{Messages: []*belay.Message{user("where?")}}
		r, err := answer(t, model, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, message(belay.RoleAssistant, r.Parts...), user("and now?"), message(belay.RoleAssistant, r.Parts[:1]...), user("so?"))
		if _, err := answer(t, model, req); err != nil {
			t.Fatal(err)
		}
		want := 0
		if test.want {
			want = 1 // the second message ends with thinking, which is left out
		}
		if n := bytes.Count(sent, []byte(`"thinking":"Left."`)); n != want {
			t.Errorf("%q: the thinking is sent %d times, want %d: %s", test.provider, n, want, sent)
		}
	}
}

// The service refuses a request with an image that is too large. Every later request of
// the session would contain the image, too.
func TestImagesThatAreTooLargeAreNamed(t *testing.T) {
	t.Parallel()
	var wide bytes.Buffer
	if err := png.Encode(&wide, image.NewGray(image.Rect(0, 0, 8001, 1))); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 5<<20)
	copy(large, "\xff\xd8\xff") // the first bytes of a JPEG
	server := providertest.NewAnthropic(t, nil)
	r := ask(t, server, open(server, nil), &belay.Request{Messages: []*belay.Message{
		message(belay.RoleUser, belay.Image("image/png", wide.Bytes()), belay.Image("image/jpeg", large), belay.Image("image/jpeg", large[:3<<20])),
	}})
	if r.Refused != "" {
		t.Fatalf("the server refused: %s", r.Refused)
	}
	parts := r.Messages[0].Parts
	if len(parts) != 3 || !strings.Contains(parts[0].Text, "8001 x 1 pixels") || !strings.Contains(parts[1].Text, "too large") || parts[2].Media == nil {
		t.Errorf("got %.300v, want two texts and an image", parts)
	}
}
