package chat

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// asProgram is the variable that makes the test binary run as the program of newTmux.
const asProgram = "BELAY_CHAT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(program())
	}
	goleak.VerifyTestMain(m,
		// teatest starts a goroutine that waits for an interrupt and never ends.
		goleak.IgnoreTopFunction("github.com/charmbracelet/x/exp/teatest/v2.NewTestModel.func2"),
		// The regexp2 library is no longer a dependency, so this line has no effect.
		goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// program runs a chat with a scripted model.
func program() int {
	if err := converse(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "program:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "program: left")
	return 0
}

// story is the script of the program's model.
func story() *scripted.Model {
	return scripted.New([]scripted.Step{
		{
			Thinking: "They want to know what there is.",
			Text:     "There are **notes** and a `build` directory:\n\n1. `notes.md`\n2. `build/`, which can be made again\n\n```sh\nrm -rf build\n```\n",
		},
		{Text: "Let me look, and clean up.", Calls: []scripted.Call{
			{Tool: "read", Input: `{"path":"notes.md"}`},
			{Tool: "shell", Input: `{"command":"rm -rf build"}`},
		}},
		{Text: "The notes say: buy milk 🥛 (牛乳). The build is gone."},
		{Text: "This will take a while", Fault: &scripted.Fault{Hang: true, After: 3}},
	}, &scripted.Options{Name: "scripted/story"})
}

type readInput struct {
	Path string `json:"path" jsonschema:"the file"`
}

type shellInput struct {
	Command string `json:"command" jsonschema:"the command"`
}

// toolsOfStory returns the tools of the program.
func toolsOfStory() []belay.Tool {
	return []belay.Tool{
		belay.NewTool("read", "Reads a file.", func(context.Context, readInput) (string, error) {
			return "# Notes\n\n- buy milk\n- call home\n- sleep", nil
		}, nil),
		belay.NewTool("shell", "Runs a command.", func(context.Context, shellInput) (string, error) {
			return "removed build", nil
		}, nil),
	}
}

// advise returns advice as a floor would.
func advise(context.Context, belay.Question) Advice {
	return Advice{
		Reach: "zone 1 workspace: changes files of the project, or temporary files", Run: "in the sandbox, without network",
		Pattern: "shell(rm *)",
	}
}

// converse runs a chat as the command belay chat does.
func converse(ctx context.Context) error {
	store := memstore.New(nil)
	c := New(&Options{History: os.Getenv("BELAY_CHAT_TEST_HISTORY"), Store: store, Directives: []Directive{{"review", "look at the last change"}}, Advise: advise})
	guard := belay.ToolPre.On("guard", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		if call.Tool() == "shell" {
			return belay.Ask("it removes files"), nil
		}
		return belay.Pass, nil
	}, &hook.Options{Visibility: hook.VisibleToUser})
	agent, err := belay.New(story(), &belay.Options{Store: store, Approver: c, Tools: toolsOfStory(), Hooks: []hook.Subscription{guard}})
	if err != nil {
		return err
	}
	defer func() { _ = agent.Close(ctx) }()
	return c.Run(ctx, agent.Session("main"))
}
