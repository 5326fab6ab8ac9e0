package gemini_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/providertest"
)

// declared returns tools as the server gets them.
func declared(t testing.TB, tools ...belay.ToolDeclaration) []belay.ToolDeclaration {
	t.Helper()
	server := providertest.NewGemini(t, nil)
	req := hello()
	req.Tools = tools
	return ask(t, server, open(server, nil), req).Tools
}

func TestNamesOfToolsFit(t *testing.T) {
	t.Parallel()
	fits := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c_.-]{0,3}x{50,70}`)), 1, 20, rapid.ID[string]).Draw(t, "names")
		var tools []belay.ToolDeclaration
		for _, name := range names {
			tools = append(tools, belay.ToolDeclaration{Name: name})
		}
		sent := map[string]bool{}
		for _, name := range gemini.SentNames(tools) {
			if !fits.MatchString(name) || sent[name] {
				t.Fatalf("%q does not fit, or is there twice", name)
			}
			sent[name] = true
		}
		for i, name := range gemini.SentNames(tools) {
			if fits.MatchString(names[i]) && name != names[i] {
				t.Fatalf("%q fits and became %q", names[i], name)
			}
		}
	})
}

func TestSchemasAreSentAsTheServiceTakesThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, schema, want string }{
		{"what it takes stays as it is", `{"type":"object","properties":{"b":{"type":["string","null"]},"a":{"enum":[1.50]}},"additionalProperties":false}`, ""},
		{"nothing becomes an object", `{}`, `{"type":"object"}`},
		{"anything becomes an object", `true`, `{"type":"object"}`},
		{"an object that may be null becomes one", `{"type":["null","object"]}`, `{"type":"object"}`},
		{"what does not say so becomes an object", `{"anyOf":[{"required":["a"]}]}`, `{"anyOf":[{"required":["a"]}],"type":"object"}`},
		{
			"more than 20000 parts", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a~1b"},"c":{"type":"array","items":{"$ref":"#/definitions/c"}}},"$defs":{"a/b":{"type":"string"}},"definitions":{"c":{"$ref":"#/$defs/a~1b"}}}`,
			`{"properties":{"a":{"type":"string"},"c":{"items":{"type":"string"},"type":"array"}},"type":"object"}`,
		},
		{
			"what stands beside a reference stands", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a","description":"mine","default":1}},"$defs":{"a":{"type":"integer","description":"theirs","maximum":9}}}`,
			`{"properties":{"a":{"default":1,"description":"mine","maximum":9,"type":"integer"}},"type":"object"}`,
		},
		{
			"what refers to itself ends in anything", `{"type":"object","properties":{"next":{"$ref":"#"},"tree":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/tree","title":"left"}}}}}`,
			`{"properties":{"next":{"properties":{"next":{},"tree":{"properties":{"left":{"title":"left"}},"type":"object"}},"type":"object"},"tree":{"properties":{"left":{"title":"left"}},"type":"object"}},"type":"object"}`,
		},
		{
			"schemas that are true or false say so in words", `{"type":"object","properties":{"a":true,"b":{"type":"array","items":false},"c":{"anyOf":[true]}},"additionalProperties":{"type":"array","items":true}}`,
			`{"additionalProperties":{"items":{},"type":"array"},"properties":{"a":{},"b":{"items":{"not":{}},"type":"array"},"c":{"anyOf":[{}]}},"type":"object"}`,
		},
		{
			"a property may be called as a keyword", `{"type":"object","properties":{"$ref":{"type":"string"},"$defs":{"type":"string"},"true":true}}`,
			`{"properties":{"$defs":{"type":"string"},"$ref":{"type":"string"},"true":{}},"type":"object"}`,
		},
		{
			"references lead into lists, and may be escaped", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{"$ref":"#/properties/a/anyOf/1"},"c":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"number"}}}`,
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{"type":"integer"},"c":{"type":"number"}},"type":"object"}`,
		},
		{"half characters are replaced", `{"type":"object","description":"\ud83d"}`, `{"type":"object","description":"\ufffd"}`},
		{"values are no schemas", `{"type":"object","default":{"$ref":"#/nowhere"},"enum":[{"$ref":"#/nowhere"}],"examples":[true]}`, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if test.want == "" {
				test.want = test.schema
			}
			got := declared(t, belay.ToolDeclaration{Name: "look", InputSchema: json.RawMessage(test.schema)})
			if diff := cmp.Diff(test.want, string(got[0].InputSchema)); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
}

// A schema in which references contain references can grow exponentially.
func TestASchemaThatGrowsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 30 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	schema := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(append(defs, `"d30":{"type":"string"}`), ",") + `}}`
	err := gemini.New(newer, nil).CheckTools([]belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage(schema)}})
	if err == nil || !strings.Contains(err.Error(), "more than 20000 parts") {
		t.Errorf("got %v, want it refused for its size", err)
	}
}
