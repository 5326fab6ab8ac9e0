package providertest

import (
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
)

// contentRules check the content of responses.
var contentRules = []rule{
	{"only the last chunk contains the response", func(s *scene) {
		s.user("hello")
		_, o := s.answer(Reply{Parts: []Part{Text("Good morning!")}})
		for i, c := range o.chunks {
			if (c.Response != nil) != (i == len(o.chunks)-1) {
				s.Errorf("chunk %d of %d: has a response: %t", i+1, len(o.chunks), c.Response != nil)
			}
		}
	}},
	{"thinking, text and calls keep their order", func(s *scene) {
		s.user("look around")
		response, o := s.answer(Reply{Parts: []Part{Thinking("Left", " or right?"), Text("Left ", "first."), Call("c1", "look", `{"at":"left"}`), Call("c2", "look", `{"at":"right"}`)}})
		s.wantParts(response.Parts, thought("Left or right?"), belay.Text("Left first."), called("c1", "look", `{"at":"left"}`), called("c2", "look", `{"at":"right"}`))
		s.wantEqual("the pieces of thinking", o.text(func(c belay.Chunk) string { return c.Thinking }), "Left or right?")
		s.wantEqual("the pieces of text", o.text(func(c belay.Chunk) string { return c.Text }), "Left first.")
		s.wantEqual("the stop reason", response.StopReason, belay.StopToolUse)
	}},
	{"text between calls keeps its place", func(s *scene) {
		s.user("look around")
		response, o := s.answer(Reply{Parts: []Part{Text("Left first."), Call("c1", "look", `{"at":"left"}`), Text("Then right."), Call("c2", "look", `{"at":"right"}`)}})
		s.wantParts(response.Parts, belay.Text("Left first."), called("c1", "look", `{"at":"left"}`), belay.Text("Then right."), called("c2", "look", `{"at":"right"}`))
		s.wantEqual("the pieces of text", o.text(func(c belay.Chunk) string { return c.Text }), "Left first.Then right.")
	}},
	{"the input of parallel calls arrives in pieces that name their call", func(s *scene) {
		s.user("look around")
		response, o := s.answer(Reply{Parts: []Part{Call("c1", "look", `{"a`, `t":"left"}`), Call("c2", "wait", `{}`), Call("c3", "look", `{"at"`, `:`, `"right"}`)}})
		s.wantParts(response.Parts, called("c1", "look", `{"at":"left"}`), called("c2", "wait", `{}`), called("c3", "look", `{"at":"right"}`))
		for _, call := range response.Parts {
			s.wantEqual("the pieces of the input of "+call.Call.ID, o.text(func(c belay.Chunk) string {
				if c.Input == nil || c.Input.Call != call.Call.ID || c.Input.Tool != call.Call.Tool {
					return ""
				}
				return c.Input.Text
			}), string(call.Call.Input))
		}
	}},
	{"a call without input has an empty object", func(s *scene) {
		s.user("wait")
		response, _ := s.answer(Reply{Parts: []Part{Call("c1", "wait")}})
		s.wantParts(response.Parts, called("c1", "wait", `{}`))
	}},
	{"empty text is dropped and not sent back", func(s *scene) {
		s.user("wait")
		response, _ := s.answer(Reply{Parts: []Part{Text(), Text(""), Call("c1", "wait", `{}`)}})
		s.wantParts(response.Parts, called("c1", "wait", `{}`))
		s.say(belay.RoleUser, result("c1", "wait", belay.Result{}), belay.Text(""), belay.Text("\n"))
		s.say(belay.RoleAssistant, belay.Text(" "))
		s.user("and?")
		s.answer(Reply{Parts: []Part{Text("Done.")}})
		r := s.last()
		s.wantEqual("what the user said", heard(&r, belay.RoleUser, belay.PartText), []belay.Part{belay.Text("wait"), belay.Text("and?")})
	}},
	{"an input of a megabyte arrives and is sent back", func(s *scene) {
		input := `{"at":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`
		var pieces []string
		for rest := input; rest != ""; {
			n := min(len(rest), 10_000)
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		s.user("look")
		response, _ := s.answer(Reply{Parts: []Part{Call("c1", "look", pieces...), Call("c2", "look", input)}})
		s.wantParts(response.Parts, called("c1", "look", input), called("c2", "look", input))
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "seen"}), result("c2", "look", belay.Result{Text: "seen"}))
		s.answer(Reply{Parts: []Part{Text("Done.")}})
		r := s.last()
		for _, p := range heard(&r, belay.RoleAssistant, belay.PartCall) {
			s.wantEqual("the input that was sent back", string(p.Call.Input), input)
		}
	}},
	{"a call that is cut off by the token limit is malformed", func(s *scene) {
		for _, pieces := range [][]string{{`{"at":"so`, `mewh`}, {`{"at":`}, {}} {
			s.talk.Messages = nil
			s.user("look")
			response, _ := s.answer(Reply{Parts: []Part{Text("Looking."), Call("c1", "look", pieces...)}, StopReason: belay.StopMaxTokens})
			s.wantEqual("the stop reason", response.StopReason, belay.StopMaxTokens)
			if n := len(response.Parts); n != 2 || response.Parts[1].Call == nil {
				s.Fatalf("want a text and a call, got %s", shown(response.Parts))
			}
			call := response.Parts[1].Call
			s.wantEqual("the input", string(call.Input), `{}`)
			if came := strings.Join(pieces, ""); call.Malformed == "" || came != "" && call.Malformed != came {
				s.Errorf("malformed: got %q, want %q", call.Malformed, came)
			}
			s.say(belay.RoleUser, result("c1", "look", belay.Failed("malformed", "not a JSON object")))
			s.answer(Reply{Parts: []Part{Text("Sorry.")}})
			s.last()
		}
	}},
	{"an input that is JSON but not an object is malformed", func(s *scene) {
		for _, input := range []string{`["left"]`, `"left"`, `null`, `{"at":"left"}}`} {
			s.talk.Messages = nil
			s.user("look")
			response, _ := s.answer(Reply{Parts: []Part{Call("c1", "look", input)}})
			want := called("c1", "look", `{}`)
			want.Call.Malformed = input
			s.wantParts(response.Parts, want)
		}
	}},
	{"a refusal is a response", func(s *scene) {
		s.user("something bad")
		response, _ := s.answer(Reply{Parts: []Part{Text("I would rather")}, StopReason: belay.StopRefusal})
		s.wantParts(response.Parts, belay.Text("I would rather"))
		s.wantEqual("the stop reason", response.StopReason, belay.StopRefusal)
	}},
	{"a response that is cut off by the token limit has that stop reason", func(s *scene) {
		s.user("tell me everything")
		response, _ := s.answer(Reply{Parts: []Part{Text("In the beginning")}, StopReason: belay.StopMaxTokens})
		s.wantEqual("the stop reason", response.StopReason, belay.StopMaxTokens)
	}},
	{"tokens are counted, and tokens read from a cache separately", func(s *scene) {
		s.user("hello")
		s.wantCounted(belay.Usage{In: 11, Out: 222, CacheRead: 3333})
	}},
	{"tokens written to a cache are counted separately", func(s *scene) {
		s.user("hello")
		s.wantCounted(belay.Usage{In: 11, Out: 222, CacheRead: 3333, CacheWrite: 444})
	}},
	{"an empty response is not a failure", func(s *scene) {
		s.user("hello")
		response, _ := s.answer(Reply{})
		if len(response.Parts) != 0 {
			s.Errorf("want no parts, got %s", shown(response.Parts))
		}
	}},
}

// wantCounted scripts a usage and checks that the response has it.
func (s *scene) wantCounted(want belay.Usage) {
	s.Helper()
	response, _ := s.answer(Reply{Parts: []Part{Text("Good morning!")}, Usage: want})
	got := response.Usage
	got.Cost = 0
	s.wantEqual("the usage", got, want)
}

// jsonOf returns a value as JSON.
func jsonOf(s *scene, v any) string {
	s.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		s.Fatalf("cannot be encoded: %v", err)
	}
	return string(data)
}
