package mcptool

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Shared returns an extension for another agent, such as a subagent. It uses the same
// servers, but closing that agent does not close the servers. The agent must end before e
// is closed.
func (e *Extension) Shared() belay.Extension { return shared{e} } //nolint:ireturn // callers need the interface

type shared struct{ of *Extension }

var (
	_ belay.StepToolExtension = shared{}
	_ belay.HookExtension     = shared{}
	_ belay.PromptExtension   = shared{}
	_ belay.ScopeExtension    = shared{}
	_ belay.NameExtension     = shared{}
)

func (s shared) Name() string                          { return s.of.Name() }
func (s shared) StepTools(session string) []belay.Tool { return s.of.StepTools(session) }
func (s shared) Hooks() []hook.Subscription            { return s.of.Hooks() }

func (s shared) Binds(agent, name string) bool { return s.of.Binds(agent, name) }

func (s shared) TypedNames(agent string) []belay.TypedName { return s.of.TypedNames(agent) }

func (s shared) Expand(ctx context.Context, in belay.Submission) (belay.Expansion, error) {
	return s.of.Expand(ctx, in)
}

func (s shared) Prompt(agent belay.AgentConfig) (fragment, resources string) {
	return s.of.Prompt(agent)
}

func (s shared) Narrow(agent belay.AgentConfig, allowed []string) (tools []string, line string) {
	return s.of.Narrow(agent, allowed)
}
