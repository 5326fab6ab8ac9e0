//go:build unix

package vendorhook_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/vendorhook"
)

// woken makes an agent with hooks that run in the background until ended is called. ended waits
// for their ends.
func woken(t *testing.T, hookText string, model belay.Model, more func(ended func()) *belay.Options) *belaytest.Agent {
	t.Helper()
	project := t.TempDir()
	r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: project}, vendorhook.File{Path: "settings.json", Text: []byte(hookText)})
	if err != nil || len(r.Notes) > 0 {
		t.Fatalf("%v, %+v", err, r.Notes)
	}
	wakes := new(vendorhook.Wakes)
	for _, d := range r.Hooks {
		wakes.Use(d)
	}
	if !wakes.Used() {
		t.Fatal("no hook wakes the model")
	}
	set, err := declare.New(r.Hooks, hook.Origin{Kind: hook.OriginHost}, &declare.Options{Project: project})
	if err != nil {
		t.Fatal(err)
	}
	ended := func() {
		if err := os.WriteFile(filepath.Join(project, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
		_ = set.Close() // Close returns no error
	}
	t.Cleanup(ended)
	opts := more(ended)
	opts.Hooks = slices.Concat(set.Subscriptions(), wakes.Hooks(), opts.Hooks)
	return belaytest.New(t, model, opts)
}

// waits is the beginning of a command that waits for ended.
const waits = `cat >/dev/null; until test -e go; do sleep 0.01; done; `

const slowCheck = `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"` + waits + `echo the tests fail >&2; exit 2","asyncRewake":true}]}]}}`

// atStop returns a hook that calls a function when the turn is about to end, before other hooks.
func atStop(do func()) hook.Subscription {
	return belay.TurnStop.On("ends", func(context.Context, belay.StopAttempt) (belay.StopVerdict, error) {
		do()
		return belay.StopVerdict{}, nil
	}, &hook.Options{Priority: -1})
}

// SPEC B-01: a hook with asyncRewake gives the model its message after the next call.
func TestAHookInTheBackgroundWakesTheModelAfterACall(t *testing.T) {
	t.Parallel()
	agent := woken(t, slowCheck, belaytest.Script(belaytest.Calls("wait", `{}`), belaytest.Says("I see.")), func(ended func()) *belay.Options {
		return &belay.Options{Tools: []belay.Tool{belay.NewRawTool(belay.ToolDeclaration{Name: "wait", Description: "waits for the hook"}, func(context.Context, *belay.Invocation) (belay.Result, error) {
			ended()
			return belay.Result{Text: "waited"}, nil
		}, nil)}}
	})
	turn := agent.Say("go")
	turn.Ended(belay.EndTurn)
	turn.Request(2).Reminds("the tests fail")
}

// SPEC B-01: rewakeMessage stands before what the command printed.
func TestTheMessageOfAHookThatWakesTheModel(t *testing.T) {
	t.Parallel()
	text := strings.Replace(slowCheck, `"asyncRewake":true`, `"asyncRewake":true,"rewakeMessage":"The suite has a result.","rewakeSummary":"suite"`, 1)
	agent := woken(t, text, belaytest.Script(belaytest.Says("done"), belaytest.Says("I see.")), func(ended func()) *belay.Options {
		return &belay.Options{Hooks: []hook.Subscription{atStop(ended)}}
	})
	agent.Say("go").Request(2).Reminds("The suite has a result.\n\nthe tests fail")
}

// SPEC B-01: if the turn is about to end, it continues.
func TestAHookInTheBackgroundMakesTheTurnContinue(t *testing.T) {
	t.Parallel()
	agent := woken(t, slowCheck, belaytest.Script(belaytest.Says("done"), belaytest.Says("I see.")), func(ended func()) *belay.Options {
		return &belay.Options{Hooks: []hook.Subscription{atStop(ended)}}
	})
	turn := agent.Say("go")
	turn.Ended(belay.EndTurn)
	turn.Request(2).Reminds("the tests fail")
}

// SPEC B-01: an idle session gets the message with its next turn.
func TestAHookInTheBackgroundIsHeardInTheNextTurn(t *testing.T) {
	t.Parallel()
	var wait func()
	agent := woken(t, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"`+waits+`echo the review failed; exit 2","asyncRewake":true}]}]}}`,
		belaytest.Script(belaytest.Says("done"), belaytest.Says("I see.")), func(ended func()) *belay.Options {
			wait = ended
			return new(belay.Options)
		})
	agent.Say("go").Ended(belay.EndTurn)
	wait()
	agent.Say("and now?").Request(1).Reminds("the review failed")
}

// SPEC B-01: other ends of such a hook say nothing to the model.
func TestOnlyExitCode2WakesTheModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]string{
		"it succeeds":        `"command":"` + waits + `echo fine >&2","asyncRewake":true`,
		"it fails otherwise": `"command":"` + waits + `echo broken >&2; exit 1","asyncRewake":true`,
		"it is killed":       `"command":"` + waits + `echo broken >&2; kill -9 $$","asyncRewake":true`,
		"it is only async":   `"command":"` + waits + `echo broken >&2; exit $((1 + 1))","async":true`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command",` + c + `}, {"type":"command","command":"cat >/dev/null","asyncRewake":true}]}]}}`
			agent := woken(t, text, belaytest.Script(belaytest.Says("done")), func(ended func()) *belay.Options {
				return &belay.Options{Hooks: []hook.Subscription{atStop(ended)}}
			})
			agent.Say("go").Ended(belay.EndTurn) // a second request would find no step
		})
	}
}
