package scripted_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// A step with expectations makes the script a test. The model returns an error for any other
// request. The error says how the request differs.
func ExampleExpect() {
	model, err := scripted.Parse("script.yaml", []byte(`
steps:
  - expect:
      user: weather
      tools: [forecast]
    calls:
      - {tool: forecast, input: {city: Oslo}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	request := &belay.Request{
		Tools: []belay.ToolDeclaration{{Name: "forecast"}},
		Messages: []*belay.Message{
			{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("What is for lunch?")}},
		},
	}
	for _, err := range model.Stream(context.Background(), request) {
		fmt.Println(err)
	}
	fmt.Println("left:", model.Left())
	// Output:
	// model scripted/script: invalid: script.yaml:3: step 1: the request is not as expected: the user's newest message does not contain "weather": it is "What is for lunch?"
	// left: 1
}
