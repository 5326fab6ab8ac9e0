package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

func TestSchemasAreMadeToFit(t *testing.T) {
	t.Parallel()
	const must = `"description":"The input must also fit this JSON Schema: `
	for _, test := range []struct{ rule, schema, want string }{
		{"what fits is left as it is, in its order", `{"title":"x","type":"object","properties":{"z":{"type":"string"},"a":{}},"required":["z"],"additionalProperties":false}`, ""},
		{"no schema is an object", ``, `{"type":"object","properties":{}}`},
		{"true is an object", ` true `, `{"type":"object","properties":{}}`},
		{"nothing is an object", `{}`, `{"type":"object","properties":{}}`},
		{"a type is added", `{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{"an object that may be missing is an object", `{"type":["null","object"],"properties":{}}`, `{"type":"object","properties":{}}`},
		{"a reference is followed", `{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$ref":"#/$defs/c"},"c":{"properties":{"x":{"type":"string"}}}}}`, `{"type":"object","$defs":{"a/b":{"$ref":"#/$defs/c"},"c":{"properties":{"x":{"type":"string"}}}},"properties":{"x":{"type":"string"}}}`},
		{"a reference in a circle ends", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"type":"object","$defs":{"a":{"$ref":"#/$defs/a"}},"properties":{}}`},
		{"alternatives move into the description", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","properties":{"a":{},"b":{}},` + must + `{\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}"}`},
		{"properties of alternatives are the tool's", `{"oneOf":[{"properties":{"a":{}}},{"properties":{"a":{"type":"string"},"b":{}}}]}`, `{"type":"object","properties":{"a":{},"b":{}},` + must + `{\"oneOf\":[{\"properties\":{\"a\":{}}},{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{}}}]}"}`},
		{"what all require is required", `{"required":["x"],"allOf":[{"$ref":"#/$defs/a"},{"required":["b","x"]}],"$defs":{"a":{"properties":{"a":{}},"required":["a"]}}}`, `{"type":"object","required":["x","a","b"],"$defs":{"a":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{}},` + must + `{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"required\":[\"b\",\"x\"]}]}"}`},
		{"a description goes on", `{"description":"mine","not":{"required":["a"]}}`, `{"type":"object","description":"mine\n\nThe input must also fit this JSON Schema: {\"not\":{\"required\":[\"a\"]}}","properties":{}}`},
		{"an enumeration of objects moves into the description", `{"enum":[{"a":1},2]}`, `{"type":"object","properties":{},` + must + `{\"enum\":[{\"a\":1},2]}"}`},
		{"a list says what it is a list of", `{"type":"object","properties":{"a":{"type":"array"},"b":{"anyOf":[{"type":["array","null"]},{"type":"object"}]},"c":{"type":"array","items":{"type":"array"}},"d":{"enum":[{"type":"array"}]}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"anyOf":[{"type":["array","null"],"items":{}},{"type":"object"}]},"c":{"type":"array","items":{"type":"array","items":{}}},"d":{"enum":[{"type":"array"}]}}}`},
		{"so do lists in definitions and in what is besides", `{"type":"object","properties":{},"additionalProperties":{"type":"array"},"$defs":{"l":{"type":"array","prefixItems":[{"type":"array"}]}}}`, `{"type":"object","properties":{},"additionalProperties":{"type":"array","items":{}},"$defs":{"l":{"type":"array","prefixItems":[{"type":"array","items":{}}],"items":{}}}}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			want := test.want
			if want == "" {
				want = test.schema
			}
			both(t, func(t *testing.T, api openai.API, server providertest.Server) {
				req := hello()
				req.Tools = []belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage(test.schema)}}
				model := open(server, &openai.Options{API: api})
				if err := model.CheckTools(req.Tools); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(ask(t, server, model, req).Tools[0].InputSchema)); diff != "" {
					t.Errorf("schema (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestToolsThatCannotBeDeclaredAreRefused(t *testing.T) {
	t.Parallel()
	many := make([]belay.ToolDeclaration, 129)
	for i := range many {
		many[i].Name = fmt.Sprint("tool", i)
	}
	look := func(schema string) []belay.ToolDeclaration {
		return []belay.ToolDeclaration{{Name: "wait"}, {Name: "look", InputSchema: json.RawMessage(schema)}}
	}
	for _, test := range []struct {
		rule  string
		tools []belay.ToolDeclaration
		want  []string
	}{
		{"an input is not a text", look(`{"type":"string"}`), []string{`"look"`, "must be an object", `"string"`}},
		{"an input is not a number of a list", look(`{"enum":[1,2]}`), []string{`"look"`, "enum does not allow an object"}},
		{"an input is not a constant that is no object", look(`{"const":7}`), []string{`"look"`, "const does not allow an object"}},
		{"a schema that nothing fits", look(`false`), []string{`"look"`, "not a JSON object"}},
		{"a schema that is not JSON", look(`{"type":`), []string{`"look"`, "not JSON"}},
		{"a schema with something behind it", look(`{} {}`), []string{`"look"`, "text after the end of the JSON"}},
		{"a tool without a name", []belay.ToolDeclaration{{}}, []string{`""`, "no name"}},
		{"two tools of one name", []belay.ToolDeclaration{{Name: "look"}, {Name: "look"}}, []string{`"look"`, "rename one"}},
		{"too many tools", many, []string{"129", "128"}},
		{"every fault is named", append(look(`7`), belay.ToolDeclaration{Name: "see", InputSchema: json.RawMessage(`8`)}), []string{`"look"`, `"see"`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, api openai.API, server providertest.Server) {
				model := open(server, &openai.Options{API: api, Provider: "openai"})
				err := model.CheckTools(test.tools)
				for _, want := range test.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q in it", err, want)
					}
				}
				req := hello()
				req.Tools = test.tools
				_, err = answer(t, model, req)
				_ = wantFailure(t, err, belay.ModelInvalid, test.want[0])
				if n := len(server.Requests()); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
			})
		})
	}
}

// Some Chat servers accept only descriptions of up to 1,024 characters. The end of a
// longer description moves into the schema. No word is split or lost.
func TestLongDescriptionsAreKept(t *testing.T) { //nolint:tparallel // its parts share a server
	t.Parallel()
	const goesOn, goneOn = " … (continued in the description of the parameters)", "(continued) … "
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	server := providertest.NewChat(t, nil)
	model := open(server, &openai.Options{API: openai.Chat})
	for _, test := range []struct{ rule, text, ends, begins string }{ //nolint:paralleltest // they share a server
		{"between sentences", words(150) + ". Then this. " + words(300), "Then this.", "word "},
		{"between lines", words(190) + "!\nThen " + words(300), "word!", "Then word"},
		{"between words where no sentence ends", words(400), "word", "word"},
		{"between words where a sentence ended long ago", "Look. " + words(400), "word", "word"},
		{"at the very place", strings.Repeat("x", 1024-utf8.RuneCountInString(goesOn)) + " " + strings.Repeat("y", 200), "x", "y"},
		{"between characters where there are no words", strings.Repeat("ü", 1200), "ü", "ü"},
		{"between sentences without spaces", strings.Repeat("字", 800) + "。" + strings.Repeat("句", 800), "字。", "句"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			req := hello()
			req.Tools = []belay.ToolDeclaration{{Name: "look", Description: test.text}, {Name: "see", Description: test.text, InputSchema: json.RawMessage(`{"type":"object","properties":{},"description":"mine"}`)}}
			for i, tool := range ask(t, server, model, req).Tools {
				var schema struct {
					Description string `json:"description"`
				}
				if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
					t.Fatal(err)
				}
				first, cut := strings.CutSuffix(tool.Description, goesOn)
				before, rest, said := strings.Cut(schema.Description, goneOn)
				if !cut || !said || i == 1 && !strings.Contains(before, "mine") {
					t.Fatalf("the description is %q, and that of the schema %q", tool.Description, schema.Description)
				}
				if n := utf8.RuneCountInString(tool.Description); n > 1024 || n < 512 {
					t.Errorf("the description has %d characters", n)
				}
				if !strings.HasSuffix(first, test.ends) || !strings.HasPrefix(rest, test.begins) {
					t.Errorf("it is divided between %q and %q, want %q and %q", first[max(0, len(first)-30):], rest[:min(30, len(rest))], test.ends, test.begins)
				}
				whole := func(s string) string { return strings.Join(strings.Fields(s), "") }
				if whole(first+rest) != whole(test.text) {
					t.Errorf("the parts are not the whole: %q and %q", first, rest)
				}
			}
		})
	}
	req := hello()
	exact := strings.Repeat("x", 1024)
	req.Tools = []belay.ToolDeclaration{{Name: "look", Description: exact}}
	if tools := ask(t, server, model, req).Tools; tools[0].Description != exact {
		t.Errorf("a description that fits was changed to %q", tools[0].Description)
	}
}
