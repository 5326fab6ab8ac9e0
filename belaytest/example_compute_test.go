package belaytest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/scripted"
)

// A step with Compute answers with what the request has.
func Example_compute() {
	var t printer // in a real test this is the *testing.T

	// docs:begin compute
	read := belaytest.NewTool("read", "buy milk")
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("read", `{"path": "notes.md"}`),
		scripted.Step{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
			result := req.Messages[len(req.Messages)-1].Parts[0].Result
			return belaytest.Says("The notes say: " + strings.ToUpper(result.Text)), nil
		}},
	), &belay.Options{Tools: []belay.Tool{read}})

	turn := agent.Say("What do the notes say?")
	turn.Said("BUY MILK")
	// docs:end compute

	fmt.Println(turn.Text)
	// Output: The notes say: BUY MILK
}
