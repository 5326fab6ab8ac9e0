package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// The service rejects some keywords at the top level of a schema. They move into the
// description, and the strict server accepts the result.
func TestSchemasAreTranslated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, schema, want string }{
		{"one that is taken stays as it is", `{ "type" : "object", "x-mine":1 }`, `{ "type" : "object", "x-mine":1 }`},
		{
			"alternatives give their properties", `{"description":"Looks.","anyOf":[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]},{"properties":{"on":{"type":"number"}}}]}`,
			`{"description":"Looks.\n\nThe input must also fit this JSON Schema: {\"anyOf\":[{\"type\":\"object\",\"properties\":{\"at\":{\"type\":\"string\"}},\"required\":[\"at\"]},{\"properties\":{\"on\":{\"type\":\"number\"}}}]}","properties":{"at":{"type":"string"},"on":{"type":"number"}},"type":"object"}`,
		},
		{
			"what all of them require is required, and references are followed", `{"type":"object","properties":{"at":{"const":1}},"required":["at"],"allOf":[{"properties":{"at":{"const":2}},"required":["at","b"]},{"$ref":"#/$defs/on"}],"$defs":{"on":{"properties":{"on":{}},"required":["on"]}}}`,
			`{"$defs":{"on":{"properties":{"on":{}},"required":["on"]}},"description":"The input must also fit this JSON Schema: {\"allOf\":[{\"properties\":{\"at\":{\"const\":2}},\"required\":[\"at\",\"b\"]},{\"$ref\":\"#/$defs/on\"}]}","properties":{"at":{"const":1},"on":{}},"required":["at","b","on"],"type":"object"}`,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			r := ask(t, server, open(server, nil), &belay.Request{
				Messages: []*belay.Message{user("look")}, Tools: []belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage(test.schema)}},
			})
			var got, want any
			if err := json.Unmarshal(r.Tools[0].InputSchema, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the schema (-want +got):\n%s", diff)
			}
		})
	}
}

// If a schema allows no object, the model returns an error and sends nothing.
func TestSchemasThatNoObjectFits(t *testing.T) {
	t.Parallel()
	model := anthropic.New("m", &anthropic.Options{Key: "k"})
	for schema, want := range map[string]string{
		`{"type":"string"}`: `type "string"`,
		`["a"]`:             "not a JSON object",
		`{"anyOf":[{"type":"string"},{"type":["null","number"]}]}`: "anyOf in its schema does not allow an object",
		`{"allOf":[{"type":"object"},{"type":"string"}]}`:          "allOf in its schema does not allow an object",
		`{"oneOf":7}`:                    "oneOf in its schema is not a list",
		`{"anyOf":[{}],"properties":[]}`: "properties of its schema are not an object",
		`{"anyOf":[{}],"required":{}}`:   "required in its schema is not a list",
	} {
		err := model.CheckTools([]belay.ToolDeclaration{{Name: "fine"}, {Name: "look", InputSchema: json.RawMessage(schema)}})
		if err == nil || !strings.Contains(err.Error(), `tool "look": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", schema, err, want)
		}
	}
}
