package gemini_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
)

// The test fixes the exact bytes of a request. If they change, every open session misses its
// prompt cache once.
func TestBody(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	unsigned := belay.Part{Type: belay.PartThinking, Text: "cut o", Provider: "elsewhere", Opaque: json.RawMessage(`{}`)}
	req := &belay.Request{System: "system", MaxTokens: 100, Tools: []belay.ToolDeclaration{{Name: "look", Description: "looks", InputSchema: json.RawMessage(`{ "type": "object" }`)}, {Name: "7up"}}, Messages: []*belay.Message{
		user("a"), user("b", ""),
		message(belay.RoleAssistant, unsigned, call("c1", "look", `{"at": 12345678901234567890, "on": 1.50}`), call("c2", "7up", ``)),
		message(belay.RoleUser, result("c1", "look", belay.Failed("", "dark")), result("c2", "7up", belay.Result{Text: "<seen>"})),
		message(belay.RoleUser, belay.Part{Type: belay.PartText, Text: "r", IsReminder: true}),
	}}
	const want = `{"systemInstruction":{"parts":[{"text":"system"}]},` +
		`"tools":[{"functionDeclarations":[{"name":"look","description":"looks","parametersJsonSchema":{"type":"object"}},{"name":"_7up_be39b1e745"}]}],` +
		`"generationConfig":{"maxOutputTokens":100},"contents":[` +
		`{"role":"user","parts":[{"text":"a"},{"text":"b"}]},` +
		`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":{"at":12345678901234567890,"on":1.50}},"thoughtSignature":"skip_thought_signature_validator"},` +
		`{"functionCall":{"id":"c2","name":"_7up_be39b1e745","args":{}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look","response":{"error":"dark"}}},` +
		`{"functionResponse":{"id":"c2","name":"_7up_be39b1e745","response":{"output":"\u003cseen\u003e"}}},{"text":"r"}]}]}`
	if diff := cmp.Diff(want, string(ask(t, server, open(server, nil), req).Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// The contents are last in a request, so that a request begins with all bytes of the
// previous request.
//
// SPEC L-07
func TestRequestsExtendEachOtherAsAWhole(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	model := open(server, &gemini.Options{Thinking: 2000})
	req := &belay.Request{System: "system", Tools: []belay.ToolDeclaration{{Name: "look", Description: "looks <here> & there"}}}
	reply := providertest.Reply{Parts: []providertest.Part{providertest.Thinking("where", " to?"), providertest.Call("c", "look", `{"at":1}`)}}
	for i := range 8 {
		req.Messages = append(req.Messages, user(fmt.Sprint("question <", i, ">")))
		server.Script(reply)
		r, err := answer(t, model, req)
		if err != nil {
			t.Fatal(err)
		}
		r.Parts[1].Call.ID += fmt.Sprint(i)
		req.Messages = append(req.Messages, message(belay.RoleAssistant, r.Parts...), message(belay.RoleUser, result(r.Parts[1].Call.ID, "look", belay.Result{Text: "a door"})))
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("A door", ".")}})
		if r, err = answer(t, model, req); err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, message(belay.RoleAssistant, r.Parts...))
	}
	requests := server.Requests()
	for i := 1; i < len(requests); i++ {
		earlier, ok := bytes.CutSuffix(requests[i-1].Body, []byte(`]}]}`))
		if !ok || !bytes.HasPrefix(requests[i].Body, earlier) {
			t.Fatalf("request %d does not begin with request %d:\n%s\n%s", i+1, i, requests[i].Body, requests[i-1].Body)
		}
	}
}

func TestFilesAreSentAsTheyCanBeShown(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	media := []belay.Media{
		{MIME: "image/webp", Data: []byte("webp")},
		{MIME: "image/png", URL: "https://example.com/a.png"},
		{MIME: "application/pdf", Name: "a.pdf", Data: []byte("pdf")},
		{MIME: "video/mp4", Data: []byte("mp4")},
		{MIME: "text/markdown", Data: []byte("# A\xff")},
	}
	m := message(belay.RoleUser)
	for i := range media {
		m.Parts = append(m.Parts, belay.Part{Type: belay.PartMedia, Media: &media[i]})
	}
	m.Parts = append(m.Parts, belay.File("a.zip", "application/zip", []byte("zip")), belay.Image("image/gif", []byte("gif")), belay.File("empty.txt", "text/plain", nil))
	r := ask(t, server, open(server, nil), &belay.Request{Messages: []*belay.Message{m}})
	want := []belay.Part{
		{Type: belay.PartMedia, Media: &media[0]},
		{Type: belay.PartMedia, Media: &media[1]},
		belay.Text(`[The file "a.pdf":]`),
		{Type: belay.PartMedia, Media: &belay.Media{MIME: "application/pdf", Data: []byte("pdf")}},
		{Type: belay.PartMedia, Media: &media[3]},
		{Type: belay.PartMedia, Media: &belay.Media{MIME: "text/plain", Data: []byte("# A\uFFFD")}},
		belay.Text(`[A file that cannot be shown: name "a.zip", type "application/zip", 3 bytes, address ""]`),
		belay.Text(`[A file that cannot be shown: name "", type "image/gif", 3 bytes, address ""]`),
		belay.Text(`[A file that cannot be shown: name "empty.txt", type "text/plain", 0 bytes, address ""]`),
	}
	if diff := cmp.Diff(want, r.Messages[0].Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

func TestFilesOfResults(t *testing.T) {
	t.Parallel()
	picture := belay.Media{MIME: "image/png", Data: []byte("png")}
	sound := belay.Media{MIME: "audio/wav", Data: []byte("wav")}
	far := belay.Media{MIME: "image/png", URL: "https://example.com/a.png"}
	show := func(m belay.Media) belay.Part { return belay.Part{Type: belay.PartMedia, Media: &m} }
	for _, test := range []struct {
		rule, model string
		want        []belay.Part
	}{
		{"a newer model takes images within, and the rest behind", newer, []belay.Part{
			result("c1", "look", belay.Result{Text: "see", Media: []belay.Media{picture}}), show(sound), show(far), result("c2", "look", belay.Result{}),
		}},
		{"an older model takes all of it behind", older, []belay.Part{
			result("c1", "look", belay.Result{Text: "see"}), show(picture), show(sound), show(far), result("c2", "look", belay.Result{}),
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewGemini(t, nil)
			r := ask(t, server, opened(test.model, server, nil), &belay.Request{Messages: []*belay.Message{
				user("look"), message(belay.RoleAssistant, call("c1", "look", `{}`), call("c2", "look", `{}`)),
				message(belay.RoleUser, result("c1", "look", belay.Result{Text: "see", Media: []belay.Media{picture, sound, far}}), result("c2", "look", belay.Result{})),
			}})
			if diff := cmp.Diff(test.want, r.Messages[2].Parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}
