package openai_test

import (
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
)

// CheckTools finds tools that the service would reject. It accepts names and schemas that
// Belay can translate.
func ExampleModel_CheckTools() {
	model := openai.New("gpt-5.2", nil)
	fmt.Println(model.CheckTools([]belay.ToolDeclaration{
		{Name: "files.read", InputSchema: json.RawMessage(`{"anyOf":[{"required":["path"]},{"required":["url"]}]}`)},
		{Name: "roll", InputSchema: json.RawMessage(`{"type":"integer"}`)},
	}))
	// Output:
	// tool "roll": its schema: the input of a tool must be an object, but the schema has the type "integer": declare an object with this value as a property
}
