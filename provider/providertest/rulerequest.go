package providertest

import (
	"encoding/json"
	"sync"

	"github.com/belay-run/belay"
)

// picture is not a picture, but nobody looks.
var picture = []byte{0x89, 'P', 'N', 'G', 0, 0xff, 0xfe}

// requestRules are about what a request says.
var requestRules = []rule{
	{"system prompt, tools and bound are sent as declared", func(s *scene) {
		s.user("hello")
		s.talk.MaxTokens = 1234
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		r := s.last()
		s.wantEqual("the system prompt", r.System, s.talk.System)
		s.wantEqual("the bound", r.MaxTokens, 1234)
		s.wantEqual("the number of tools", len(r.Tools), len(s.talk.Tools))
		for i, tool := range r.Tools {
			s.wantEqual("the name of a tool", tool.Name, s.talk.Tools[i].Name)
			s.wantEqual("the description of a tool", tool.Description, s.talk.Tools[i].Description)
			s.wantEqual("the schema of a tool", decoded(s, tool.InputSchema), decoded(s, s.talk.Tools[i].InputSchema))
		}
	}},
	{"a request may have no system prompt and no tools", func(s *scene) {
		s.talk.System, s.talk.Tools = "", nil
		s.user("hello")
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		r := s.last()
		s.wantEqual("the system prompt", r.System, "")
		s.wantEqual("the number of tools", len(r.Tools), 0)
	}},
	{"a tool without a schema is declared all the same", func(s *scene) {
		s.talk.Tools = []belay.ToolDeclaration{{Name: "wait"}}
		s.user("hello")
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		r := s.last()
		s.wantEqual("the number of tools", len(r.Tools), 1)
	}},
	{"neighbours on one side are taken as one", func(s *scene) {
		s.user("first")
		s.say(belay.RoleUser, belay.Part{Type: belay.PartText, Text: "<system-reminder>second</system-reminder>", IsReminder: true})
		s.user("third")
		s.say(belay.RoleAssistant, belay.Text("one"))
		s.say(belay.RoleAssistant, belay.Text("two"))
		s.user("fourth")
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		r := s.last()
		s.wantEqual("the conversation", r.Messages, []Heard{
			{belay.RoleUser, []belay.Part{belay.Text("first"), belay.Text("<system-reminder>second</system-reminder>"), belay.Text("third")}},
			{belay.RoleAssistant, []belay.Part{belay.Text("one"), belay.Text("two")}},
			{belay.RoleUser, []belay.Part{belay.Text("fourth")}},
		})
	}},
	{"results and errors of parallel calls reach the model", func(s *scene) {
		s.user("look around")
		s.answer(Reply{Parts: []Part{Call("c1", "look", `{"at":"left"}`), Call("c2", "look", `{"at":"right"}`), Call("c3", "wait", `{}`)}})
		s.say(belay.RoleUser,
			result("c1", "look", belay.Result{Text: "a door"}),
			result("c2", "look", belay.Failed("tool_error", "it is dark")),
			result("c3", "wait", belay.Result{}))
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		r := s.last()
		s.wantEqual("the results", heard(&r, belay.RoleUser, belay.PartResult), []belay.Part{
			result("c1", "look", belay.Result{Text: "a door"}),
			result("c2", "look", belay.Result{Text: "it is dark", IsError: true}),
			result("c3", "wait", belay.Result{}),
		})
	}},
	{"an error that says nothing is an error all the same", func(s *scene) {
		s.user("wait")
		s.answer(Reply{Parts: []Part{Call("c1", "wait", `{}`)}})
		s.say(belay.RoleUser, result("c1", "wait", belay.Result{IsError: true}))
		s.answer(Reply{Parts: []Part{Text("Oh.")}})
		r := s.last()
		if results := heard(&r, belay.RoleUser, belay.PartResult); len(results) != 1 || !results[0].Result.IsError {
			s.Errorf("want one error, got %s", shown(results))
		}
	}},
	{"images of the user and of tools reach the model", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("what is this?"), belay.Image("image/png", picture))
		s.answer(Reply{Parts: []Part{Call("c1", "look", `{}`)}})
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "see", Media: []belay.Media{{MIME: "image/jpeg", Data: picture}}}))
		s.answer(Reply{Parts: []Part{Text("A picture.")}})
		r := s.last()
		s.wantEqual("the image of the user", heard(&r, belay.RoleUser, belay.PartMedia), []belay.Part{belay.Image("image/png", picture)})
		results := heard(&r, belay.RoleUser, belay.PartResult)
		if len(results) != 1 {
			s.Fatalf("want one result, got %s", shown(results))
		}
		s.wantEqual("the text beside the image", results[0].Result.Text, "see")
		s.wantEqual("the image of the tool", results[0].Result.Media, []belay.Media{{MIME: "image/jpeg", Data: picture}})
	}},
	{"a file that the service does not take is no failure", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("what is this?"), belay.File("a.bin", "application/x-unheard-of", picture))
		s.answer(Reply{Parts: []Part{Text("A file.")}})
		s.last()
	}},
	{"render, final inputs and what was typed stay here", func(s *scene) {
		s.user("look")
		s.talk.Messages[0].PreModifiedText = new(string)
		*s.talk.Messages[0].PreModifiedText = "hidden"
		s.answer(Reply{Parts: []Part{Call("c1", "look", `{"at":"left"}`)}})
		s.talk.Messages[1].Parts[0].Call.Final = json.RawMessage(`{"at":"hidden"}`)
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door", Render: json.RawMessage(`"hidden"`), Spilled: "hidden"}))
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		if r := s.last(); containsWord(r.Body, "hidden") {
			s.Errorf("the request says what is not for the model: %.2000s", r.Body)
		}
	}},
	{"the request is left as it was", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("hello"), belay.Image("image/png", picture))
		before := jsonOf(s, s.talk)
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		s.talk.Messages = s.talk.Messages[:1]
		s.wantEqual("the request", jsonOf(s, s.talk), before)
	}},
	{"many may ask at once with the same messages", func(s *scene) {
		const many = 8
		s.user("hello")
		s.say(belay.RoleAssistant, belay.Text("Good morning!"))
		s.user("and now?")
		for range many {
			s.server.Script(Reply{Parts: []Part{Text("Good ", "evening!")}})
		}
		var group sync.WaitGroup
		for range many {
			group.Go(func() { // ends with the response
				if o := s.ask(s.Context()); o.err != nil || o.response == nil {
					s.Errorf("the request failed: %v", o.err)
				}
			})
		}
		group.Wait()
		requests := s.server.Requests()
		for _, r := range requests {
			s.wantEqual("the body", string(r.Body), string(requests[0].Body))
		}
	}},
}

// decoded decodes JSON, so that its spelling does not count.
func decoded(s *scene, raw json.RawMessage) any {
	s.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		s.Fatalf("%s: %v", raw, err)
	}
	return v
}
