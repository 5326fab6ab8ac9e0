package belaytest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

// printer replaces the *testing.T of a real test. It prints the failures.
type printer struct{ testing.TB }

func (printer) Helper()                  {}
func (printer) Failed() bool             { return false }
func (printer) Context() context.Context { return context.Background() }
func (printer) Cleanup(func())           {}
func (printer) TempDir() string          { return "unused" }

func (printer) Errorf(format string, args ...any) {
	message, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n") // the first line is enough here
	fmt.Println("FAIL:", message)
}

// Test a hook in a conversation: the script says what the model does, and the assertions
// say what must happen.
func Example() {
	var t printer // in a real test this is the *testing.T

	// docs:begin turn
	write := belaytest.NewTool("write", "written")
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("write", `{"path": "/srv/prod/notes.md"}`),
		belaytest.Calls("write", `{"path": "drafts/notes.md"}`),
		belaytest.Says("The notes are in drafts, for review."),
	), &belay.Options{Tools: []belay.Tool{write}, Hooks: []hook.Subscription{noProd}})

	turn := agent.Say("publish the notes")
	turn.Ended(belay.EndTurn)
	turn.Denied("write", "no-prod", "production is off limits")
	turn.Result("write", "written")
	turn.Said("for review")
	write.Ran(t, `{"path": "drafts/notes.md"}`)
	// docs:end turn

	turn.Called("write")
	fmt.Print(agent.Transcript())
	// Output:
	// FAIL: want the calls write, got write {"path": "/srv/prod/notes.md"}, write {"path": "drafts/notes.md"}
	// user
	//   publish the notes
	// assistant
	//   call_1: write {"path": "/srv/prod/notes.md"}
	// results
	//   call_1: write failed (denied): Denied by "no-prod": production is off limits
	//     Do not repeat this call. Reach the goal in another way, or tell the user what you need.
	// assistant
	//   call_2: write {"path": "drafts/notes.md"}
	// results
	//   call_2: write: written
	// assistant (end_turn)
	//   The notes are in drafts, for review.
}

// Each request to the model can be checked.
func ExampleTurn_Request() {
	var t printer // in a real test this is the *testing.T

	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("read", `{"path": "notes.md"}`),
		belaytest.Says("Buy milk."),
	), &belay.Options{
		Instructions: "You keep the notes.",
		Tools:        []belay.Tool{belaytest.NewTool("read", "milk")},
	})
	turn := agent.Say("what is to do?")
	turn.Request(1).SystemSays("the notes")
	turn.Request(1).Offers("read")
	turn.Request(-1).UserSays("to do")
	turn.Request(-1).Reminds("Friday")
	// Output:
	// FAIL: request 2: want a reminder that says "Friday", got []
}
