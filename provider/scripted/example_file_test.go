package scripted_test

import (
	"fmt"

	"github.com/belay-run/belay/provider/scripted"
)

// Parse reports all wrong keys and values in a file.
func ExampleParse() {
	_, err := scripted.Parse("script.yaml", []byte(`
repeat: yes please
steps:
  - text: Let me see.
    calls:
      - tol: read
        tool: read
    stop: tools
`))
	fmt.Println(err)
	// Output:
	// script.yaml:2: repeat must be true or false, not yes please
	// script.yaml:6: unknown key "tol" (did you mean "tool"?)
	// script.yaml:8: unknown stop "tools": use one of end_turn, tool_use, max_tokens, refusal
}

// Fork returns a model for another conversation with the same script.
func ExampleLoad() {
	model, err := scripted.Load("testdata/script.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	other := model.Fork()
	fmt.Println(other.Info().Name, other.Left())
	// Output: scripted/demo 3
}
