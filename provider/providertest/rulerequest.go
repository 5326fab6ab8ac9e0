package providertest

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

// picture is the data of an image. It is not a real image, because no server decodes it.
var picture = []byte{0x89, 'P', 'N', 'G', 0, 0xff, 0xfe}

// pixel is the beginning of an image with one pixel. No server decodes more.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55")

// requestRules check the content of requests.
var requestRules = []rule{
	{"system prompt, tools and token limit are sent as declared", func(s *scene) {
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
			s.wantEqual("the schema of a tool", withProperties(decoded(s, tool.InputSchema)), withProperties(decoded(s, s.talk.Tools[i].InputSchema)))
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
	{"a tool without a schema is declared too", func(s *scene) {
		s.talk.Tools = []belay.ToolDeclaration{{Name: "wait"}}
		s.user("hello")
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		r := s.last()
		s.wantEqual("the number of tools", len(r.Tools), 1)
	}},
	{"consecutive messages of one role are joined", func(s *scene) {
		s.user("first")
		s.say(belay.RoleUser, belay.Part{Type: belay.PartText, Text: "<system-reminder>second</system-reminder>", IsReminder: true})
		s.user("third")
		s.say(belay.RoleAssistant, belay.Text("one"))
		s.say(belay.RoleAssistant, belay.Text("two"))
		s.user("fourth")
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		var said []string // a protocol may join consecutive texts of a role
		for _, m := range s.last().Messages {
			words := []string{string(m.Role) + ":"}
			for _, p := range m.Parts {
				words = append(words, strings.Fields(p.Text)...)
			}
			said = append(said, strings.Join(words, " "))
		}
		s.wantEqual("the conversation", said, []string{"user: first <system-reminder>second</system-reminder> third", "assistant: one two", "user: fourth"})
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
		results := heard(&r, belay.RoleUser, belay.PartResult)
		if len(results) != 3 {
			s.Fatalf("want three results, got %s", shown(results))
		}
		s.wantEqual("the first result", results[0], result("c1", "look", belay.Result{Text: "a door"}))
		s.wantEqual("the call that failed", results[1].Result.Call, "c2")
		if failed := results[1].Result; !tellsFailure(failed) || !strings.Contains(failed.Text, "it is dark") {
			s.Errorf("want a failure that says why, got %s", shown(failed))
		}
		s.wantEqual("the call that says nothing", results[2].Result.Call, "c3")
		for _, i := range []int{0, 2} {
			if tellsFailure(results[i].Result) {
				s.Errorf("a success is sent as a failure: %s", shown(results[i]))
			}
		}
	}},
	{"an error without a text is still an error", func(s *scene) {
		s.user("wait")
		s.answer(Reply{Parts: []Part{Call("c1", "wait", `{}`)}})
		s.say(belay.RoleUser, result("c1", "wait", belay.Result{IsError: true}))
		s.answer(Reply{Parts: []Part{Text("Oh.")}})
		r := s.last()
		if results := heard(&r, belay.RoleUser, belay.PartResult); len(results) != 1 || !tellsFailure(results[0].Result) {
			s.Errorf("want one error, got %s", shown(results))
		}
	}},
	{"images of the user and of tools reach the model", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("what is this?"), belay.Image("image/png", picture))
		s.answer(Reply{Parts: []Part{Call("c1", "look", `{}`)}})
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "see", Media: []belay.Media{{MIME: "image/jpeg", Data: picture}}}))
		s.answer(Reply{Parts: []Part{Text("A picture.")}})
		r := s.last()
		results := heard(&r, belay.RoleUser, belay.PartResult)
		if len(results) != 1 {
			s.Fatalf("want one result, got %s", shown(results))
		}
		if !strings.Contains(results[0].Result.Text, "see") {
			s.Errorf("want the text beside the image, got %s", shown(results))
		}
		// If a result cannot contain images, they follow the results as content of the user.
		var images []belay.Media
		for _, p := range heard(&r, belay.RoleUser, belay.PartMedia) {
			images = append(images, *p.Media)
		}
		images = append(images, results[0].Result.Media...)
		s.wantEqual("the images of the user and of the tool", images, []belay.Media{{MIME: "image/png", Data: picture}, {MIME: "image/jpeg", Data: picture}})
	}},
	{"an image gets its real type, whatever type the tool declares", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("what is this?"), belay.Image("image/jpeg", pixel), belay.Image("image/jpg", picture))
		s.answer(Reply{Parts: []Part{Text("A picture.")}})
		r := s.last()
		var images []belay.Media
		for _, p := range heard(&r, belay.RoleUser, belay.PartMedia) {
			images = append(images, *p.Media)
		}
		s.wantEqual("the images", images, []belay.Media{{MIME: "image/png", Data: pixel}, {MIME: "image/jpeg", Data: picture}})
	}},
	{"an error with an image is still an error", func(s *scene) {
		s.user("look")
		s.answer(Reply{Parts: []Part{Call("c1", "look", `{}`), Call("c2", "look", `{}`)}})
		dark := belay.Failed("tool_error", "it is dark")
		dark.Media = []belay.Media{{MIME: "image/png", Data: picture}}
		s.say(belay.RoleUser, result("c1", "look", dark), result("c2", "look", belay.Result{IsError: true, Media: dark.Media}))
		s.answer(Reply{Parts: []Part{Text("Oh.")}})
		r := s.last()
		results := heard(&r, belay.RoleUser, belay.PartResult)
		shown := len(heard(&r, belay.RoleUser, belay.PartMedia))
		for _, p := range results {
			shown += len(p.Result.Media)
			if !tellsFailure(p.Result) {
				s.Errorf("a failure is sent as a success: %+v", p.Result)
			}
		}
		s.wantEqual("the number of results", len(results), 2)
		s.wantEqual("the number of images", shown, 2)
	}},
	{"half a character in an input is not sent back", func(s *scene) {
		for _, input := range []string{`{"at":"\ud83d"}`, `{"at":"\ude00 \ud83d\ud83d\ude00 \\ud83d"}`} {
			s.talk.Messages = nil
			s.user("look")
			s.say(belay.RoleAssistant, called("c1", "look", input)) // any model may have written the input
			s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door"}))
			s.answer(Reply{Parts: []Part{Text("A door.")}})
			r := s.last()
			s.wantEqual("the number of calls", len(heard(&r, belay.RoleAssistant, belay.PartCall)), 1)
			for _, p := range heard(&r, belay.RoleAssistant, belay.PartCall) {
				if at := halfCharacter(p.Call.Input); at >= 0 {
					s.Errorf("half a character is sent back: %s", p.Call.Input)
				}
				s.wantEqual("what is sent back", decoded(s, p.Call.Input), decoded(s, json.RawMessage(input)))
			}
		}
	}},
	{"a file that the service does not accept is not a failure", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("what is this?"), belay.File("a.bin", "application/x-unheard-of", picture))
		s.answer(Reply{Parts: []Part{Text("A file.")}})
		s.last()
	}},
	{"rendered text, final inputs and typed text are not sent", func(s *scene) {
		s.user("look")
		s.talk.Messages[0].PreModifiedText = new(string)
		*s.talk.Messages[0].PreModifiedText = "hidden"
		s.answer(Reply{Parts: []Part{Call("c1", "look", `{"at":"left"}`)}})
		s.talk.Messages[1].Parts[0].Call.Final = json.RawMessage(`{"at":"hidden"}`)
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door", Render: json.RawMessage(`"hidden"`), Spilled: "hidden"}))
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		if r := s.last(); containsWord(r.Body, "hidden") {
			s.Errorf("the request contains data that is not for the model: %.2000s", r.Body)
		}
	}},
	{"the provider does not change the request", func(s *scene) {
		s.say(belay.RoleUser, belay.Text("hello"), belay.Image("image/png", picture))
		before := jsonOf(s, s.talk)
		s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		s.talk.Messages = s.talk.Messages[:1]
		s.wantEqual("the request", jsonOf(s, s.talk), before)
	}},
	{"concurrent requests can share messages", func(s *scene) {
		const many = 8
		s.user("hello")
		s.say(belay.RoleAssistant, belay.Text("Good morning!"))
		s.user("and now?")
		for range many {
			s.script(Reply{Parts: []Part{Text("Good ", "evening!")}})
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

// tellsFailure reports whether a result says that its tool failed. If the protocol has no
// field for this, the text must say it.
func tellsFailure(r *belay.ResultPart) bool {
	text := strings.ToLower(r.Text)
	return r.IsError || strings.Contains(text, "error") || strings.Contains(text, "fail")
}

// withProperties adds empty properties to the schema of an object without properties,
// because some services require them.
func withProperties(schema any) any {
	if object, ok := schema.(map[string]any); ok && object["properties"] == nil {
		object["properties"] = map[string]any{}
	}
	return schema
}

// decoded decodes JSON, so that the format does not matter.
func decoded(s *scene, raw json.RawMessage) any {
	s.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		s.Fatalf("%s: %v", raw, err)
	}
	return v
}
