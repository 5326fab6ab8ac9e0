package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/warmhook"
	"github.com/belay-run/belay/internal/warmhook/early"
	"github.com/spf13/cobra"
)

// mostEvent limits the size of an event that another agent writes.
const mostEvent = 64 << 20

func (a *app) hookCommand() *cobra.Command {
	var agent, event string
	var cold bool
	cmd := &cobra.Command{
		Use:   "hook --agent AGENT",
		Short: "Be a hook of another agent: check its calls with Belay's hooks and floor",
		Long: `Another agent runs this command as one of its hooks. The command reads one event of that agent from standard input, asks
Belay's hooks and the floor, records what they did, and answers in the way that this agent reads. "belay hook install" sets this
up. "belay runs" shows the records.

To list, write and test your own hooks, see "belay hooks".

If the agent cannot express an answer, it gets a safer one: a denial in place of a question, for example. The denial names an
approval. After "belay approvals approve", the same call passes once. If the event cannot be read, or something fails, calls and
messages are denied.

The first event starts a worker process, which answers the next events faster. The worker ends when no event comes for some
minutes.`,
		Example: `  belay hook install --agent claude-code
  belay hook --agent claude-code < event.json
  belay hook --agent copilot --event preToolUse < event.json`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if agent == "" {
				return usage("name the agent that runs the hook: --agent %s", strings.Join(guard.Agents(), "|"))
			}
			vendor, err := agentNamed(agent)
			if err != nil {
				return err
			}
			stdin, err := a.readEvent()
			request := guard.Request{Agent: vendor, Event: event, Stdin: stdin}
			if err != nil {
				return a.printOutput(guard.Refuse(request, err))
			}
			if a.dir == "" {
				if a.dir, err = warmhook.Dir(agent); err != nil {
					return a.printOutput(guard.Refuse(request, err))
				}
			} else {
				cold = true // the worker does not know the flag
			}
			err = a.printOutput(a.answerHook(cmd.Context(), request))
			if !cold && a.store == "" && !a.debug {
				startWorker(a.dir)
			}
			return err
		},
	}
	hookAgentFlag(cmd, &agent)
	cmd.Flags().StringVar(&event, "event", "", "the name of the event, for agents that do not write it (copilot)")
	cmd.Flags().BoolVar(&cold, "no-worker", false, "do not use or start the worker process that answers faster")
	cmd.AddCommand(a.hookInstallCommand(), a.hookUninstallCommand(), a.hookStatusCommand(), a.hookWorkerCommand())
	return cmd
}

// readEvent reads the event, unless the attempt to reach a worker has already read it.
func (a *app) readEvent() ([]byte, error) {
	if early.Begun.Read {
		return early.Begun.Stdin, nil
	}
	stdin, err := io.ReadAll(io.LimitReader(a.in, mostEvent+1))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(stdin) > mostEvent {
		return nil, fmt.Errorf("the event has more than %d MB", mostEvent>>20)
	}
	return stdin, nil
}

// hookAgentFlag adds the flag --agent, which names another agent.
func hookAgentFlag(cmd *cobra.Command, agent *string) {
	cmd.Flags().StringVar(agent, "agent", "", "the agent: "+strings.Join(guard.Agents(), ", "))
	complete(cmd, "agent", guard.Agents())
}

// agentNamed returns the agent with this name.
func agentNamed(name string) (dialect.Vendor, error) {
	for _, v := range dialect.Vendors() {
		if string(v) == name {
			return v, nil
		}
	}
	return "", usage("--agent: there is no agent %q%s: use one of %s", name, near.Hint(name, guard.Agents()), strings.Join(guard.Agents(), ", "))
}

// answerHook answers an event with the hooks and the floor of the project.
func (a *app) answerHook(ctx context.Context, r guard.Request) (out guard.Output) {
	settings, err := a.settings()
	if err != nil {
		return guard.Refuse(r, err)
	}
	r.Dir = settings.Project
	guarding, err := a.assembler().Guard(ctx, settings)
	if err != nil {
		return guard.Refuse(r, err)
	}
	out = answerInTime(r, func() guard.Output { return guard.Answer(ctx, guarding.Engine, r) })
	// A slow end must not delay the answer: an agent continues when its hook takes too long.
	closed := make(chan error, 1)
	go func() { closed <- guarding.Close(ctx) }() // ends with the process at the latest
	select {
	case err := <-closed:
		if err != nil {
			a.warn("close: " + told(err))
		}
	case <-time.After(closeWithin):
		a.warn("close: hooks are still running")
	}
	return out
}

// An agent waits 60 seconds for its hook, and then continues as if there were none. So the
// answer must come earlier.
const (
	answerWithin = 45 * time.Second
	closeWithin  = 5 * time.Second
)

// answerInTime returns the answer, or a denial if the answer takes too long.
func answerInTime(r guard.Request, answer func() guard.Output) guard.Output {
	done := make(chan guard.Output, 1)
	go func() { done <- answer() }() // ends with the process at the latest
	select {
	case out := <-done:
		return out
	case <-time.After(answerWithin):
		return guard.Refuse(r, fmt.Errorf("the hooks took longer than %v", answerWithin))
	}
}

// printOutput prints the output for the other agent, and returns its exit code as an error.
func (a *app) printOutput(o guard.Output) error {
	_, err := a.out.Write(o.Stdout)
	_, unread := a.err.Write(o.Stderr)
	if err := errors.Join(err, unread); err != nil {
		return &exitError{code: 2} // the agent got no answer: exit code 2 blocks
	}
	if o.Code != 0 {
		return &exitError{code: o.Code}
	}
	return nil
}
