package gemini_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
)

// sentBack gets a response, and returns its parts as Belay sends them back to the model.
func sentBack(t *testing.T, model string, events ...string) (string, *belay.Response) {
	t.Helper()
	r, err := answer(t, stream(t, append(events, stopped("STOP"))...), hello())
	if err != nil {
		t.Fatal(err)
	}
	// Encode and decode the message, as a store does.
	data, err := json.Marshal(message(belay.RoleAssistant, r.Parts...))
	if err != nil {
		t.Fatal(err)
	}
	var stored belay.Message
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	return encoded(t, model, &stored), r
}

// encoded returns the parts of a message as Belay sends them to a model. The test server
// accepts anything.
func encoded(t *testing.T, model string, m *belay.Message) string {
	t.Helper()
	var sent []byte
	server := echo(t, &sent)
	if _, err := answer(t, gemini.New(model, &gemini.Options{Key: "k", URL: server}), &belay.Request{Messages: []*belay.Message{m}}); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(strings.TrimPrefix(string(sent), `{"contents":[`), `]}`)
	return strings.TrimSuffix(strings.TrimPrefix(text, `{"role":"model","parts":[`), `]}`)
}

// Signatures must be sent back unchanged, with the parts that they came with.
func TestSignaturesAreCarriedBack(t *testing.T) {
	t.Parallel()
	const callA, callB = `{"functionCall":{"id":"a","name":"look","args":{"at":1}}`, `{"functionCall":{"id":"b","name":"look","args":{}}`
	for _, test := range []struct {
		rule   string
		events []string
		sent   []string
		text   string // the text of the response
		kinds  []belay.PartType
	}{
		{
			"a call keeps its signature",
			[]string{parts(callA + `,"thoughtSignature":"c2ln+/=="}`)},
			[]string{callA + `,"thoughtSignature":"c2ln+/=="}`},
			"",
			[]belay.PartType{belay.PartCall},
		},
		{
			"of parallel calls those that are signed are",
			[]string{parts(callA+`,"thoughtSignature":"s1"}`, callB+`}`)},
			[]string{callA + `,"thoughtSignature":"s1"}`, callB + `}`},
			"",
			[]belay.PartType{belay.PartCall, belay.PartCall},
		},
		{
			"a call that came without one has the one for strangers",
			[]string{parts(callA+`}`, callB+`,"thoughtSignature":"s2"}`)},
			[]string{callA + `,"thoughtSignature":"skip_thought_signature_validator"}`, callB + `,"thoughtSignature":"s2"}`},
			"",
			[]belay.PartType{belay.PartCall, belay.PartCall},
		},
		{
			"thinking that is not signed is joined",
			[]string{parts(`{"text":"where ","thought":true}`), parts(`{"text":"to?","thought":true}`), parts(`{"text":"left"}`)},
			[]string{`{"text":"where to?","thought":true}`, `{"text":"left"}`},
			"left",
			[]belay.PartType{belay.PartThinking, belay.PartText},
		},
		{
			"thinking keeps its signature",
			[]string{parts(`{"text":"where ","thought":true}`), parts(`{"text":"to?","thought":true,"thoughtSignature":"s1"}`), parts(`{"text":"left"}`)},
			[]string{`{"text":"where ","thought":true}`, `{"text":"to?","thought":true,"thoughtSignature":"s1"}`, `{"text":"left"}`},
			"left",
			[]belay.PartType{belay.PartThinking, belay.PartText},
		},
		{
			"a signature behind a text stays behind it",
			[]string{parts(`{"text":"go "}`), parts(`{"text":"left"}`), parts(`{"text":"","thoughtSignature":"s1"}`)},
			[]string{`{"text":"go left"}`, `{"text":"","thoughtSignature":"s1"}`},
			"go left",
			[]belay.PartType{belay.PartText},
		},
		{
			"the signed end of a text is not joined to its beginning",
			[]string{parts(`{"text":"gö "}`), parts(`{"text":"left","thoughtSignature":"s1"}`), parts(`{"text":"!"}`)},
			[]string{`{"text":"gö "}`, `{"text":"left","thoughtSignature":"s1"}`, `{"text":"!"}`},
			"gö left!",
			[]belay.PartType{belay.PartText},
		},
		{
			"a signature with nothing to read stands alone",
			[]string{parts(`{"text":"","thoughtSignature":"s1"}`), parts(`{"text":"left"}`)},
			[]string{`{"text":"","thoughtSignature":"s1"}`, `{"text":"left"}`},
			"left",
			[]belay.PartType{belay.PartThinking, belay.PartText},
		},
		{
			"a signature with white space stands alone",
			[]string{parts(`{"text":"\n","thoughtSignature":"s1"}`), parts(callA + `,"thoughtSignature":"s2"}`)},
			[]string{`{"text":"\n","thoughtSignature":"s1"}`, callA + `,"thoughtSignature":"s2"}`},
			"",
			[]belay.PartType{belay.PartThinking, belay.PartCall},
		},
		{
			"several signatures with nothing to read are several",
			[]string{parts(`{"text":"","thoughtSignature":"s1"}`, `{"text":"","thoughtSignature":"s2"}`)},
			[]string{`{"text":"","thoughtSignature":"s1"}`, `{"text":"","thoughtSignature":"s2"}`},
			"",
			[]belay.PartType{belay.PartThinking, belay.PartThinking},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			sent, r := sentBack(t, newer, test.events...)
			if diff := cmp.Diff(strings.Join(test.sent, ","), sent); diff != "" {
				t.Errorf("what is sent back (-want +got):\n%s", diff)
			}
			if text := message(belay.RoleAssistant, r.Parts...).Text(); text != test.text {
				t.Errorf("the response says %q, want %q", text, test.text)
			}
			var kinds []belay.PartType
			for _, p := range r.Parts {
				kinds = append(kinds, p.Type)
			}
			if diff := cmp.Diff(test.kinds, kinds); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// Signed thinking is sent only to the model that made it.
func TestOtherModelsAreToldNothingOfSignatures(t *testing.T) {
	t.Parallel()
	events := []string{
		parts(`{"text":"where to?","thought":true,"thoughtSignature":"secret1"}`, `{"text":"","thoughtSignature":"secret2"}`, `{"text":"go ","thoughtSignature":"secret3"}`, `{"text":"left"}`),
		parts(`{"functionCall":{"id":"a","name":"look","args":{}},"thoughtSignature":"secret4"}`),
	}
	for _, test := range []struct{ rule, model, want string }{
		{"another new model gets the signature for strangers", "gemini-3.1-pro-preview", `{"text":"go left"},{"functionCall":{"id":"a","name":"look","args":{}},"thoughtSignature":"skip_thought_signature_validator"}`},
		{"a name that says nothing is of a new model", "gemini-flash-latest", `{"text":"go left"},{"functionCall":{"id":"a","name":"look","args":{}},"thoughtSignature":"skip_thought_signature_validator"}`},
		{"an old model gets none", older, `{"text":"go left"},{"functionCall":{"id":"a","name":"look","args":{}}}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			sent, _ := sentBack(t, test.model, events...)
			if diff := cmp.Diff(test.want, sent); diff != "" {
				t.Errorf("what is sent (-want +got):\n%s", diff)
			}
		})
	}
}

// If two models get the same message one after the other, each must get its own encoding.
func TestModelsThatTakeTurnsKeepApart(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	one, other := open(server, nil), opened("gemini-3.1-pro-preview", server, nil)
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Thinking("hm"), providertest.Call("c1", "look", `{"at":"left"}`)}})
	req := hello()
	r, err := answer(t, one, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, message(belay.RoleAssistant, r.Parts...), message(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door"})))
	first := ask(t, server, one, req)
	if between := ask(t, server, other, req); strings.Contains(string(between.Body), "hm") {
		t.Errorf("another model gets the thinking of this one: %s", between.Body)
	}
	if again := ask(t, server, one, req); !bytes.Equal(again.Body, first.Body) {
		t.Errorf("the model gets something else than before: %s, and then %s", first.Body, again.Body)
	}
}

// Invalid data in Part.Opaque must not make the request invalid.
func TestDamagedSignaturesAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, opaque := range []string{``, `null`, `7`, `{}`, `{"model":"` + newer + `","pieces":[{"bytes":99,"signature":"s"}]}`, `{"model":"` + newer + `","pieces":[{"bytes":-4,"signature":"s"},{"bytes":8}]}`} {
		p := belay.Part{Type: belay.PartText, Text: "left", Provider: "gemini", Opaque: json.RawMessage(opaque)}
		if sent := encoded(t, newer, message(belay.RoleAssistant, p)); sent != `{"text":"left"}` {
			t.Errorf("with %s: got %s", opaque, sent)
		}
	}
}
