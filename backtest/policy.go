package backtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Policy is what is tried: hooks and a floor.
type Policy struct {
	// Hooks are the hooks, of any phase. Defaults to none.
	Hooks []hook.Subscription
	// Grants returns what an origin may contribute. Defaults to hook.DefaultGrants.
	Grants func(hook.Origin) hook.Capability
	// Floor is the permission check. Defaults to none: every call passes it.
	Floor belay.Authorizer
}

// Effects returns why a hook must not be asked without Options.AllowEffects: it leaves the
// process, or its options say that it has effects. It returns "" for other hooks in Go, and for
// actions that only answer.
func Effects(sub hook.Subscription) string {
	switch opts := sub.Options(); {
	case opts.Kind == hook.HandlerCommand || opts.Kind == hook.HandlerWorker:
		return "it runs a program"
	case opts.Kind == hook.HandlerWebhook:
		return "it sends the call to a webhook"
	case opts.Effects && opts.Kind == hook.HandlerAction:
		return "it writes a log or a file"
	case opts.Effects:
		return "it has effects"
	default:
		return ""
	}
}

// asker asks the hooks and the floor of one policy.
type asker struct {
	runtime *hook.Runtime
	floor   belay.Authorizer
	tally   *tally
	// notAsked are the hooks that are not asked.
	notAsked map[hookKey]NotAsked
	// known are all hooks of the policy. phases are the phases that have hooks.
	known  map[hookKey]bool
	phases map[string]bool
}

// hookKey identifies a hook.
type hookKey struct{ phase, id string }

// newAsker installs the hooks of a policy. Hooks that must not be asked are replaced by
// hooks that have no opinion, so that the order of the others stays.
func newAsker(p *Policy, t *tally, why func(hook.Subscription) string) (*asker, error) {
	a := &asker{floor: p.Floor, tally: t, notAsked: make(map[hookKey]NotAsked), known: make(map[hookKey]bool), phases: make(map[string]bool)}
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Journal: t, Grants: p.Grants})
	if err != nil {
		return nil, fmt.Errorf("backtest: %w", err)
	}
	a.runtime = runtime
	var subs []hook.Subscription
	for _, sub := range p.Hooks {
		phase := sub.Phase().Name()
		silence, replayed := silences[phase]
		if !replayed {
			continue
		}
		key, opts := hookKey{phase, sub.ID()}, sub.Options()
		a.known[key], a.phases[phase] = true, true
		reason := why(sub)
		idle := opts.Execution == hook.FireAndRecord || opts.Execution == hook.Background || leavesProgram(&opts)
		if idle {
			reason = "nothing waits for it, so it changes no outcome"
		}
		if reason != "" && !opts.Disabled {
			a.notAsked[key] = NotAsked{Phase: phase, ID: sub.ID(), Why: reason, Idle: idle}
			sub = silence(sub.ID(), opts)
		} else if !opts.Disabled {
			t.know(phase, sub.ID(), opts.Shadow)
		}
		subs = append(subs, sub)
	}
	if _, err := runtime.Install(subs...); err != nil {
		return nil, fmt.Errorf("backtest: %w", err)
	}
	return a, nil
}

// leavesProgram reports whether a run of a hook ends before its program does. The hook then
// decides nothing, and each replayed call would leave a program running.
func leavesProgram(opts *hook.Options) bool {
	return opts.Effects && opts.Kind == hook.HandlerCommand
}

// silences make a hook without an opinion for each phase that is replayed.
var silences = map[string]func(id string, opts hook.Options) hook.Subscription{
	belay.UserPromptSubmit.Name(): silent(belay.UserPromptSubmit),
	belay.ToolPre.Name():          silent(belay.ToolPre),
	belay.ApprovalRequest.Name():  silent(belay.ApprovalRequest),
	belay.ToolPost.Name():         silent(belay.ToolPost),
}

// silent returns a function that makes hooks without an opinion.
func silent[In any, Out hook.Output](phase hook.Phase[In, Out]) func(string, hook.Options) hook.Subscription {
	return func(id string, opts hook.Options) hook.Subscription {
		return phase.On(id, func(context.Context, In) (Out, error) {
			var none Out
			return none, nil
		}, &hook.Options{Priority: opts.Priority, After: opts.After, Before: opts.Before, Match: opts.Match, Origin: opts.Origin, Capabilities: opts.Capabilities})
	}
}

// isSilent reports whether a hook is not asked, although it may decide.
func (a *asker) isSilent(phase, id string) bool {
	n, notAsked := a.notAsked[hookKey{phase, id}]
	return notAsked && !n.Idle
}

// isSilentAt reports whether a phase has a hook that is not asked, although it may decide.
func (a *asker) isSilentAt(phase string) bool {
	for k := range a.notAsked {
		if k.phase == phase && a.isSilent(phase, k.id) {
			return true
		}
	}
	return false
}

// listNotAsked returns the hooks that were not asked, sorted.
func (a *asker) listNotAsked() []NotAsked {
	var all []NotAsked
	for _, n := range a.notAsked {
		all = append(all, n)
	}
	slices.SortFunc(all, func(x, y NotAsked) int {
		return cmp.Or(strings.Compare(x.Phase, y.Phase), strings.Compare(x.ID, y.ID))
	})
	return all
}
