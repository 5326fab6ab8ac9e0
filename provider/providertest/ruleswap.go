package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

// swapRules check conversations that began with another provider, and tools that were
// written for another provider.
var swapRules = []rule{
	{"calls of another provider are sent with their results", func(s *scene) {
		long := strings.Repeat("0123456789abcdef", 8)
		ids := []string{
			"call_one", "toolu_01A09q90qw90lq917835lq9", "functions.look:0", "call_abc|fc_0f0e50a1476a6c35", "look/left right", "größe", "c",
			long, long + "a", long + "b", strings.Repeat(".", 20), strings.Repeat(".", 21),
		}
		var calls, results []belay.Part
		for i, id := range ids {
			calls = append(calls, called(id, "look", fmt.Sprintf(`{"at":"%d"}`, i)))
			results = append(results, result(id, "look", belay.Result{Text: fmt.Sprint("seen ", i)}))
		}
		s.user("look around")
		s.say(belay.RoleAssistant, calls...)
		s.say(belay.RoleUser, results...)
		s.answer(Reply{Parts: []Part{Text("Done.")}})
		r := s.last()
		sent, seen := heard(&r, belay.RoleAssistant, belay.PartCall), heard(&r, belay.RoleUser, belay.PartResult)
		s.wantEqual("the number of calls", len(sent), len(ids))
		s.wantEqual("the number of results", len(seen), len(ids))
		for i := range min(len(sent), len(seen)) {
			s.wantEqual("the call of a result", seen[i].Result.Call, sent[i].Call.ID)
			s.wantEqual("the input of a call", decoded(s, sent[i].Call.Input), map[string]any{"at": fmt.Sprint(i)})
			s.wantEqual("the text of a result", seen[i].Result.Text, fmt.Sprint("seen ", i))
		}
	}},
	{"opaque data of another provider is not sent", func(s *scene) {
		foreign := func(p belay.Part) belay.Part {
			p.Provider, p.Opaque = "elsewhere", json.RawMessage(`{"signature":"foreign","id":"foreign","encrypted":"foreign","phase":"foreign"}`)
			return p
		}
		s.user("look")
		s.say(belay.RoleAssistant, foreign(thought("a foreign thought")), foreign(belay.Text("Left.")), foreign(called("c1", "look", `{"at":"left"}`)))
		s.say(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door"}))
		s.answer(Reply{Parts: []Part{Text("A door.")}})
		r := s.last()
		if containsWord(r.Body, "foreign") {
			s.Errorf("the request contains data for another provider: %.2000s", r.Body)
		}
		s.wantEqual("the text", heard(&r, belay.RoleAssistant, belay.PartText), []belay.Part{belay.Text("Left.")})
		s.wantEqual("the number of calls", len(heard(&r, belay.RoleAssistant, belay.PartCall)), 1)
	}},
	{"names of tools are translated in both directions, or rejected", func(s *scene) {
		long := strings.Repeat("a_long_name_", 10)
		names := []string{"look", "files.read", "files/read", "files read", "größe", long + "one", long + "two", "7up", strings.Repeat("x", 64), strings.Repeat("x", 65), "-"}
		for _, name := range names {
			s.talk.Messages, s.talk.Tools = nil, []belay.ToolDeclaration{
				{Name: name, Description: "looks", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)},
				{Name: "wait", Description: "waits", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)},
			}
			s.user("look")
			if s.refusedAtHome(name) {
				continue
			}
			there := s.last().Tools[0].Name
			response, o := s.answer(Reply{Parts: []Part{Call("c1", there, `{"at":`, `"left"}`), Call("c2", "wait", `{}`)}})
			s.wantParts(response.Parts, called("c1", name, `{"at":"left"}`), called("c2", "wait", `{}`))
			for _, c := range o.chunks {
				if c.Input != nil && c.Input.Call == "c1" {
					s.wantEqual("the name in a piece of input", c.Input.Tool, name)
				}
			}
			s.say(belay.RoleUser, result("c1", name, belay.Result{Text: "a door"}), result("c2", "wait", belay.Result{}))
			s.answer(Reply{Parts: []Part{Text("A door.")}})
			r := s.last()
			s.wantEqual("the name that is sent back", heard(&r, belay.RoleAssistant, belay.PartCall)[0].Call.Tool, there)
		}
	}},
	{"translated names of tools stay different", func(s *scene) {
		long := strings.Repeat("a_long_name_", 12)
		s.talk.Tools = nil
		for _, name := range []string{"a.b", "a/b", "a_b", "a b", long + "one", long + "two"} {
			s.talk.Tools = append(s.talk.Tools, belay.ToolDeclaration{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		}
		s.user("look")
		if s.refusedAtHome("a.b") {
			return
		}
		seen := map[string]bool{}
		for _, tool := range s.last().Tools {
			seen[tool.Name] = true
		}
		s.wantEqual("the number of names", len(seen), len(s.talk.Tools))
	}},
	{"schemas are translated, or rejected", func(s *scene) {
		for _, schema := range []string{
			`{}`, `true`, `{"type":"object"}`, `{"properties":{"at":{"type":"string"}}}`,
			`{"type":["object","null"],"properties":{"at":{"type":"string"}}}`,
			`{"type":"object","properties":{"at":{"type":"string"},"on":{"type":"string"}},"anyOf":[{"required":["at"]},{"required":["on"]}]}`,
			`{"anyOf":[{"type":"object","properties":{"at":{"type":"string"}}},{"type":"object","properties":{"on":{"type":"string"}}}]}`,
			`{"type":"object","oneOf":[{"properties":{"at":{"type":"string"}}}],"not":{"required":["off"]}}`,
			`{"allOf":[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]},{"$ref":"#/$defs/on"}],"$defs":{"on":{"type":"object","properties":{"on":{"type":"string"}}}}}`,
			`{"$ref":"#/$defs/look","$defs":{"look":{"type":"object","properties":{"at":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"list":{"type":"array"},"deep":{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"number"}]}}},"any":{"anyOf":[{"type":"array"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"odd":{"type":"string","pattern":"(?=a)","format":"uri","x-mine":1,"const":"a"}},"patternProperties":{"^x":{}},"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/look"}`,
			`{"type":"string"}`, `{"enum":[1,2]}`,
		} {
			s.talk.Messages, s.talk.Tools = nil, []belay.ToolDeclaration{{Name: "look", Description: "looks", InputSchema: json.RawMessage(schema)}}
			s.user("look")
			if !s.refusedAtHome("look") {
				s.last()
			}
		}
	}},
}

// refusedAtHome sends the conversation. It reports whether the provider refused the tool
// with a reason and sent nothing. Otherwise the server must accept the request.
func (s *scene) refusedAtHome(tool string) bool {
	s.Helper()
	before := len(s.server.Requests())
	s.script(Reply{Parts: []Part{Text("Yes.")}})
	o := s.ask(s.Context())
	var failure *belay.ModelError
	switch sent := len(s.server.Requests()) - before; {
	case o.err == nil && sent == 1:
		s.say(belay.RoleAssistant, o.response.Parts...)
		s.user("go on")
		return false
	case errors.As(o.err, &failure) && failure.Kind == belay.ModelInvalid && sent == 0 && strings.Contains(failure.Error(), tool):
		// Nothing has used the scripted reply. Use it up with a request without tools.
		tools := s.talk.Tools
		s.talk.Tools = nil
		s.ask(s.Context())
		s.talk.Tools = tools
		return true
	default:
		s.Fatalf("tool %q, %s: it is neither accepted nor refused with its name and a reason: %v", tool, s.talk.Tools[0].InputSchema, o.err)
		return false
	}
}
