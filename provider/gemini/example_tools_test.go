package gemini_test

import (
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
)

// CheckTools reports a schema that Belay cannot translate for the service. It accepts names
// and schemas that Belay can translate.
func ExampleModel_CheckTools() {
	model := gemini.New("gemini-3-flash-preview", nil)
	fmt.Println(model.CheckTools([]belay.ToolDeclaration{
		{Name: "2fa", Description: "a name that begins with a digit"},
		{Name: "tree", InputSchema: json.RawMessage(`{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}}}}}`)},
	}))
	fmt.Println(model.CheckTools([]belay.ToolDeclaration{
		{Name: "pick", InputSchema: json.RawMessage(`{"type": "string"}`)},
	}))
	// Output:
	// <nil>
	// tool "pick": input schema: the schema's type must be object: the service accepts no other type
}
