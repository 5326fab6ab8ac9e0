package hooktest_test

import (
	"errors"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

type uploadTrial = hooktest.Trial[file, verdict]

func TestAssertions(t *testing.T) {
	t.Parallel()
	ask := verdict{Severity: hook.SeverityAsk, Reason: "is it yours?"}
	halt := verdict{Severity: hook.SeverityHalt, Reason: "stop it all"}
	rename := verdict{Rename: "safe.txt"}
	for _, test := range []struct {
		rule    string
		handler hook.Handler[file, verdict]
		opts    hook.Options
		holds   func(trial *uploadTrial)
		fails   func(trial *uploadTrial)
		says    []string // texts that the failure message must contain
	}{
		{
			"Passed refuses a denial", answers(verdict{}),
			hook.Options{},
			func(trial *uploadTrial) { trial.Passed() },
			func(trial *uploadTrial) { trial.Denied("") },
			[]string{"tried at upload: want deny, got pass, without a text", "completed"},
		},
		{
			"Denied wants its reason", answers(deny("too large")),
			hook.Options{},
			func(trial *uploadTrial) { trial.Denied("too"); trial.Denied("") },
			func(trial *uploadTrial) { trial.Denied("too small") },
			[]string{`want deny with the text "too small", got deny, with the text deny "too large"`},
		},
		{
			"Passed refuses what is denied", answers(deny("too large")),
			hook.Options{},
			func(trial *uploadTrial) { trial.Severity(hook.SeverityDeny) },
			func(trial *uploadTrial) { trial.Passed() },
			[]string{"want pass, got deny", "tried won"},
		},
		{
			"Asked refuses a halt", answers(halt),
			hook.Options{},
			func(trial *uploadTrial) { trial.Halted("stop") },
			func(trial *uploadTrial) { trial.Asked("") },
			[]string{"want ask, got halt"},
		},
		{
			"Halted refuses to ask", answers(ask),
			hook.Options{},
			func(trial *uploadTrial) { trial.Asked("yours") },
			func(trial *uploadTrial) { trial.Halted("") },
			[]string{"want halt, got ask"},
		},
		{
			"a gate that fails closed is denied", hooktest.Fails[file, verdict](errors.New("no disk")),
			hook.Options{},
			func(trial *uploadTrial) {
				trial.Denied("no disk")
				trial.Contributed()
				trial.Diagnosed(codes.Error)
			},
			func(trial *uploadTrial) { trial.State(hook.Completed) },
			[]string{"want a run that is completed, got failed", "no disk"},
		},
		{
			"Contributed wants every kind in order", answers(rename),
			hook.Options{Capabilities: hook.CanRewriteInput},
			func(trial *uploadTrial) { trial.Contributed("input"); trial.Rewrote() },
			func(trial *uploadTrial) { trial.Contributed("input", "deny") },
			[]string{`want the contributions ["input" "deny"], got ["input"]`},
		},
		{
			"Contributed without kinds wants none", answers(deny("")),
			hook.Options{},
			func(trial *uploadTrial) { trial.Contributed("deny") },
			func(trial *uploadTrial) { trial.Contributed() },
			[]string{`want the contributions [], got ["deny"]`},
		},
		{
			"Rewrote refuses what was left alone", answers(verdict{}),
			hook.Options{},
			func(trial *uploadTrial) { trial.Contributed() },
			func(trial *uploadTrial) { trial.Rewrote() },
			[]string{"want the subscription to rewrite the input"},
		},
		{
			"Code refuses another code", hooktest.Panics[file, verdict]("oh"),
			hook.Options{Failure: hook.Open},
			func(trial *uploadTrial) { trial.Code(codes.Panic); trial.Passed() },
			func(trial *uploadTrial) { trial.Code("") },
			[]string{`want the code "", got "hook.panic"`},
		},
		{
			"NotAsked refuses a run", answers(verdict{}),
			hook.Options{},
			func(trial *uploadTrial) { trial.State(hook.Completed) },
			func(trial *uploadTrial) { trial.NotAsked() },
			[]string{"want no call of the handler, got a run that is completed"},
		},
		{
			"State refuses what was not asked", answers(verdict{}),
			hook.Options{Match: hook.Match{Labels: map[string][]string{"owner": {"bob"}}}},
			func(trial *uploadTrial) { trial.NotAsked(); trial.Contributed(); trial.Passed() },
			func(trial *uploadTrial) { trial.State(hook.Completed) },
			[]string{"there is no record", "not asked"},
		},
		{
			"what is disabled is not asked", answers(verdict{}),
			hook.Options{Disabled: true},
			func(trial *uploadTrial) { trial.NotAsked(); trial.Passed() },
			func(trial *uploadTrial) { trial.Code("") },
			[]string{"there is no record"},
		},
		{
			"Diagnosed refuses silence", answers(verdict{}),
			hook.Options{},
			func(trial *uploadTrial) { trial.Passed() },
			func(trial *uploadTrial) { trial.Diagnosed(codes.Timeout) },
			[]string{`want the diagnostic "hook.timeout"`},
		},
		{
			"a shadow contributes and changes nothing", answers(deny("no")),
			hook.Options{Shadow: true},
			func(trial *uploadTrial) { trial.Passed(); trial.Contributed("deny") },
			func(trial *uploadTrial) { trial.Denied("") },
			[]string{"want deny, got pass", "shadow"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			sub := upload.On("tried", test.handler, &test.opts)
			test.holds(hooktest.Try(t, upload, sub, file{owner: "ann"}, nil))
			failed := probetest.Run(t, func(t testing.TB) { test.fails(hooktest.Try(t, upload, sub, file{owner: "ann"}, nil)) })
			failed.WantFailure(t, test.says...)
		})
	}
}

func TestAssertionsTakeNilForNoOpinion(t *testing.T) {
	t.Parallel()
	sub := tagging.On("tag", hooktest.NilOutput[file, *tags](), nil)
	trial := hooktest.Try(t, tagging, sub, file{name: "a"}, nil)
	trial.Passed()
	trial.Contributed()
	trial.State(hook.Completed)
}

func TestPassedRefusesAnError(t *testing.T) {
	t.Parallel()
	sub := tagging.On("tag", hooktest.Fails[file, *tags](errors.New("no tags today")), &hook.Options{Failure: hook.Closed})
	probetest.Run(t, func(t testing.TB) { hooktest.Try(t, tagging, sub, file{name: "a"}, nil).Passed() }).
		WantFailure(t, "want pass, got the error", "no tags today")
}
