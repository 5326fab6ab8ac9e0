package providertest

import (
	"bytes"
	"encoding/json"

	"github.com/belay-run/belay"
)

// carryRules check what a request repeats from earlier responses and requests.
var carryRules = []rule{
	{"thinking is sent back unchanged", func(s *scene) {
		s.user("look")
		s.answer(Reply{Parts: []Part{Thinking("Where", " to?"), Text("Left."), Call("c1", "look", `{"at":"left"}`)}})
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door"}))
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		r := s.last()
		carried := heard(&r, belay.RoleAssistant, belay.PartThinking)
		if len(carried) != 1 || carried[0].Text != "Where to?" {
			s.Errorf("want the thinking, got %s", shown(carried))
		}
	}},
	{"encrypted thinking is sent back", func(s *scene) {
		s.user("look")
		response, _ := s.answer(Reply{Parts: []Part{Thinking("Where", " to?"), Redacted("a secret"), Text("Left."), Call("c1", "look", `{"at":"left"}`)}})
		thinking := 0
		for _, p := range response.Parts {
			if p.Type == belay.PartThinking {
				thinking++
			}
		}
		s.wantEqual("the number of parts of thinking", thinking, 2)
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door"}))
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		r := s.last()
		carried := heard(&r, belay.RoleAssistant, belay.PartThinking)
		if len(carried) != 2 || carried[0].Text != "Where to?" {
			s.Errorf("want the thinking and what is redacted, got %s", shown(carried))
		}
	}},
	{"thinking of another provider is left out", func(s *scene) {
		s.user("look")
		s.say(belay.RoleAssistant, belay.Part{Type: belay.PartThinking, Text: "a foreign thought", Provider: "elsewhere", Opaque: json.RawMessage(`{"signature":"foreign"}`)}, belay.Text("Left."))
		s.user("and?")
		s.say(belay.RoleAssistant, belay.Part{Type: belay.PartThinking, Text: "a foreign thought", Provider: "elsewhere", Opaque: json.RawMessage(`"foreign"`)})
		s.user("so?")
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		if r := s.last(); containsWord(r.Body, "foreign") {
			s.Errorf("the request contains thinking of another provider: %.2000s", r.Body)
		}
	}},
	{"thinking that was cut off is left out", func(s *scene) {
		s.user("look")
		s.say(belay.RoleAssistant, thought("an unfinished"), belay.Text("Left."))
		s.user("and?")
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		s.last()
	}},
	{"the conversation can continue after a response that is only thinking", func(s *scene) {
		s.user("look")
		s.answer(Reply{Parts: []Part{Thinking("Where to?")}, StopReason: belay.StopMaxTokens})
		s.user("and?")
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		r := s.last()
		s.wantEqual("what the user said", len(heard(&r, belay.RoleUser, belay.PartText)) > 0, true)
	}},
	{"consecutive requests extend each other byte for byte", func(s *scene) {
		converse(s)
		requests := s.server.Requests()
		for i := 1; i < len(requests); i++ {
			if err := s.server.Extends(requests[i-1], requests[i]); err != nil {
				s.Errorf("request %d does not begin with request %d: %v", i+1, i, err)
			}
		}
	}},
	{"a strict server accepts a whole conversation", func(s *scene) {
		calls := converse(s)
		for i, r := range s.server.Requests() {
			if r.Refused != "" {
				s.Errorf("request %d was refused: %s", i+1, r.Refused)
			}
		}
		r := s.last()
		s.wantEqual("the calls that were sent back", len(heard(&r, belay.RoleAssistant, belay.PartCall)), calls)
		s.wantEqual("the results that were sent", len(heard(&r, belay.RoleUser, belay.PartResult)), calls)
	}},
	{"a retry sends the same bytes", func(s *scene) {
		s.user("hello")
		s.fails(Reply{Refusal: &Refusal{Kind: belay.ModelOverloaded}}, belay.ModelOverloaded)
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		requests := s.server.Requests()
		s.wantEqual("the body", string(requests[1].Body), string(requests[0].Body))
	}},
	{"a transcript that was stored and loaded is sent with the same bytes", func(s *scene) {
		converse(s)
		s.script(Reply{}, Reply{})
		s.user("again, as it was <&>")
		s.ask(s.Context())
		loaded := make([]*belay.Message, 0, len(s.talk.Messages))
		for _, m := range s.talk.Messages {
			var copied belay.Message
			if err := json.Unmarshal([]byte(jsonOf(s, m)), &copied); err != nil {
				s.Fatalf("a message cannot be loaded: %v", err)
			}
			loaded = append(loaded, &copied)
		}
		s.talk.Messages = loaded
		s.ask(s.Context())
		requests := s.server.Requests()
		n := len(requests)
		s.wantEqual("the body", string(requests[n-1].Body), string(requests[n-2].Body))
	}},
}

// converse has a long conversation with every kind of content that the protocol can express.
// It returns the number of calls.
func converse(s *scene) (calls int) {
	s.Helper()
	s.say(belay.RoleUser, belay.Text("find the <door> & open it"), belay.Image("image/png", picture))
	s.answer(Reply{Parts: []Part{Thinking("Left", " or right?"), Text("Both."), Call("c1", "look", `{"at": "left"}`), Call("c2", "look", `{"at": "<right>"}`)}})
	s.say(belay.RoleUser,
		result("c1", "look", belay.Failed("tool_error", "it is dark")),
		result("c2", "look", belay.Result{Text: "a door", Media: []belay.Media{{MIME: "image/png", Data: picture}}}))
	s.say(belay.RoleUser, belay.Part{Type: belay.PartText, Text: "<system-reminder>mind the step</system-reminder>", IsReminder: true})
	s.answer(Reply{Parts: s.sayable(Redacted("a secret"), Text(""), Call("c3", "wait"))})
	s.say(belay.RoleUser, result("c3", "wait", belay.Result{}))
	s.answer(Reply{Parts: []Part{Text("It is open.")}})
	s.user("and behind it?")
	calls = 4
	if cut := (Reply{Parts: []Part{Thinking("Let me see."), Call("c4", "look", `{"at":"beh`)}, StopReason: belay.StopMaxTokens}); s.cannot(cut) == "" {
		calls++
		s.answer(cut)
		s.say(belay.RoleUser, result("c4", "look", belay.Failed("malformed", "not a JSON object")))
	}
	s.answer(Reply{Parts: []Part{Call("c5", "look", `{"at":"behind","deep":{"er":[1,2.50,1e3]}}`)}})
	s.say(belay.RoleUser, result("c5", "look", belay.Result{Text: "a garden"}))
	s.answer(Reply{})
	s.user("well?")
	s.answer(Reply{Parts: []Part{Text("A garden.")}, StopReason: belay.StopRefusal})
	s.user("thank you")
	s.answer(Reply{Parts: []Part{Text("You are welcome.")}})
	return calls
}

func containsWord(body []byte, word string) bool { return bytes.Contains(body, []byte(word)) }
