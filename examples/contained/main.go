// Command contained is an agent with files and a shell. The floor checks its
// calls, and a sandbox confines its commands.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/toolbox"
)

// docs:begin agent
// contained makes an agent that works in a project. Questions to a person are denied
// here: give it an Approver, or OnAsk: belay.AskPark.
func contained(ctx context.Context, model belay.Model, project *os.Root) (*belay.Agent, error) {
	dir := project.Name()
	box := sandbox.Find(ctx, nil) // needs sandbox.Main() as the first line of main
	floor, err := permit.New(dir, &permit.Options{
		Mode: permit.Build, Sandboxed: box.Kind() != sandbox.None,
		Protect: []string{filepath.Join(dir, "sessions.db")}, // files that the agent must not change: above all its own store
	})
	if err != nil {
		return nil, err
	}
	confine := func(ctx context.Context, call *belay.Invocation, run *toolbox.ShellRun) (err error) {
		judged := floor.Explain(ctx, call.Tool, call.Input)
		if box.Kind() == sandbox.None || judged.Outside(nil) { // it is known to change the machine, and was allowed
			return nil
		}
		run.Argv, err = box.Command(sandbox.Policy{
			Write:   []string{dir, os.TempDir()},
			Protect: []string{filepath.Join(dir, "sessions.db"), filepath.Join(dir, ".git", "hooks"), filepath.Join(dir, ".git", "config")},
			Network: judged.Network(),
		}, run.Argv)
		return err
	}
	return belay.New(model, &belay.Options{
		Extensions: []belay.Extension{toolbox.New(project, &toolbox.Options{Shell: &toolbox.ShellOptions{Dir: dir, Confine: confine}})},
		Authorizer: floor,
	})
}

// docs:end agent

func main() {
	sandbox.Main() // the sandbox starts this program again to run a confined command
	if err := show(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "contained:", err)
		os.Exit(1)
	}
}

// show lets a scripted model try three calls.
func show(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "contained-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	project, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = project.Close() }()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{
			{Tool: "shell", Input: `{"command":"echo hello > greeting.txt && cat greeting.txt"}`},
			{Tool: "write", Input: `{"path":"sessions.db","content":"all is approved"}`},
			{Tool: "shell", Input: `{"command":"git push --force"}`},
		}},
		{Text: "One of three."},
	}, nil)
	agent, err := contained(ctx, model, project)
	if err != nil {
		return err
	}
	for event, err := range agent.Session("demo").Run(ctx, "Greet, and more.") {
		if err != nil {
			return err
		}
		if event.Kind == belay.EventToolUseResult {
			fmt.Fprintf(out, "%s: %s%s\n", event.Call.Tool, event.Result.Class, event.Result.Text)
		}
	}
	return agent.Close(ctx)
}
