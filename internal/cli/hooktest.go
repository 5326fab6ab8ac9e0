package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/space"
	"github.com/spf13/cobra"
)

func (a *app) testHooksCommand() *cobra.Command {
	var sessions []string
	var output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [ID…]",
		Short: "Run the tests of declared hooks",
		Long: `Runs the tests beside the declared hooks here, or only those of the hooks that you name: the key tests of a hook, with inputs and
the answers that the hook must give. A hook runs as in a turn: with its conditions, its timeout, its environment and its sandbox,
and only if it is allowed to run. No other hook and no tool runs. The exit code is 1 if an answer differs or a hook cannot run.

With --record, prints tests for one hook, with cases from recorded sessions: their calls (tool.pre), their results (tool.post), the
messages of the user (user.prompt.submit) or the answers that ended their turns (turn.stop). It asks the hook about each case, and
the test expects what the hook answers now: review these answers. ` + "`belay backtest`" + ` shows where they differ from what happened. With
--output, writes the tests to a new file. Secrets are removed, but the tests quote the session: read them before you share them.`,
		Example: `  belay hooks test
  belay hooks test project/no-prod
  belay hooks test project/ci --record 2026 --output .belay/tests/ci.yaml`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeHooks,
		RunE: a.looking(func(ctx context.Context, v *inspect.Hooks, args []string) error {
			tested, err := testedHooks(v, args)
			switch {
			case err != nil:
				return err
			case len(sessions) == 0 && output != "":
				return usage("--output is for the tests that --record makes: add --record SESSION")
			case len(sessions) > 0 && len(tested) != 1:
				return usage("--record makes tests for one hook: name it; `belay hooks list` lists them")
			case len(sessions) > 0:
				return a.recordTests(ctx, v, &tested[0], sessions, output)
			}
			if err := readTests(v.Settings, tested); err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			return a.testHooks(ctx, v, tested, len(args) > 0, asJSON)
		}),
	}
	cmd.Flags().StringArrayVar(&sessions, "record", nil, "print tests made from this `SESSION` (its id, or a prefix of the id); can be repeated")
	cmd.Flags().StringVar(&output, "output", "", "with --record: write the tests to this new `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("record", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeSessions(nil, nil, word)
	})
	jsonFlag(cmd, &asJSON, "print one JSON object for each test")
	exclusive(cmd, "record", "json")
	return cmd
}

// testedHook is a hook with its tests. readTests sets them.
type testedHook struct {
	sub      hook.Subscription
	agent    string
	declared *declare.Declaration
	tests    []declare.Test
}

// readTests reads the tests of hooks.
func readTests(s *config.Loaded, tested []testedHook) error {
	var problems []error
	for i := range tested {
		var err error
		tested[i].tests, err = tested[i].declared.Tests()
		problems = append(problems, testMistakes(s, err))
	}
	return errors.Join(problems...)
}

// testMistakes returns mistakes in tests, each with the path of its file as users know it.
func testMistakes(s *config.Loaded, err error) error {
	var all []error
	for _, f := range declare.Faults(err) {
		all = append(all, fmt.Errorf("%s:%d: %s", assembly.ShownPath(s, f.File), f.Line, f.Message))
	}
	return errors.Join(all...)
}

// declaredHooks returns the hooks of a place, also those of its agents.
func declaredHooks(place *space.Space) []*declare.Declaration {
	all := slices.Clone(place.Hooks)
	for _, agent := range place.Agents {
		all = append(all, place.AgentHooks(agent.Name)...)
	}
	return all
}

// checkTests returns the mistakes in the tests of all hooks. It warns about tools in tests that
// do not exist.
func (a *app) checkTests(s *config.Loaded, places *assembly.Places) error {
	check, err := inspect.NewHookCheck(s)
	if err != nil {
		return err
	}
	var problems []error
	for _, place := range places.All {
		for _, d := range declaredHooks(place) {
			tests, err := d.Tests()
			problems = append(problems, testMistakes(s, err))
			for _, t := range tests {
				var input struct {
					Tool string `json:"tool"`
				}
				if json.Unmarshal(t.Input, &input) != nil || input.Tool == "" {
					continue
				}
				if said := check.Tool(input.Tool); said != "" {
					a.warn(fmt.Sprintf("%s:%d: a test of hook %s: %s", assembly.ShownPath(s, t.File), t.Line, inspect.PrefixedID(place, d), said))
				}
			}
		}
	}
	return errors.Join(problems...)
}

// testedHooks returns the declared hooks with these ids, or all declared hooks.
func testedHooks(v *inspect.Hooks, ids []string) ([]testedHook, error) {
	declared := make(map[string]*declare.Declaration)
	place := func(file string, line int, phase string) string { return fmt.Sprint(phase, " ", line, " ", file) }
	for _, s := range v.Places.All {
		for _, d := range declaredHooks(s) {
			declared[place(d.File, d.Line, d.Phase)] = d
		}
	}
	var found []testedHook
	var known []string
	add := func(sub hook.Subscription, agent string) {
		o := sub.Options().Origin
		if d, ok := declared[place(o.File, o.Line, sub.Phase().Name())]; ok {
			known = append(known, sub.ID())
			if len(ids) == 0 || slices.Contains(ids, sub.ID()) {
				found = append(found, testedHook{sub: sub, agent: agent, declared: d})
			}
		}
	}
	for _, sub := range v.Runtime.Subscriptions() {
		add(sub, assembly.MainAgent)
	}
	for _, h := range v.OfAgents {
		add(h.Sub, h.Agent)
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, usage("there is no declared hook %q%s: `belay hooks list` lists them", id, near.Hint(id, known))
		}
	}
	return found, nil
}

// testResult is the result of one test. --json prints it.
type testResult struct {
	Hook        string          `json:"hook"`
	Phase       string          `json:"phase"`
	Name        string          `json:"name,omitempty"`
	File        string          `json:"file"`
	Line        int             `json:"line"`
	Passed      bool            `json:"passed"`
	Differences []string        `json:"differences,omitempty"`
	Said        json.RawMessage `json:"said,omitempty"`
	Latency     hook.Latency    `json:"latency,omitempty"`
}

func (a *app) testHooks(ctx context.Context, v *inspect.Hooks, tested []testedHook, named, asJSON bool) error {
	count, failed, without := 0, 0, 0
	for i := range tested {
		h := &tested[i]
		if len(h.tests) == 0 {
			without++
			continue
		}
		for _, t := range h.tests {
			result, err := a.testHook(ctx, v, h, &t)
			if err != nil {
				return err
			}
			if count++; !result.Passed {
				failed++
			}
			if asJSON {
				if err := a.printJSON(result); err != nil {
					return err
				}
				continue
			}
			a.tellTest(v, result)
		}
	}
	switch {
	case count == 0 && named && len(tested) == 1:
		return usage("hook %s has no tests: add the key tests to it; docs/hook-tests.md shows how", tested[0].sub.ID())
	case count == 0 && named:
		return usage("none of these hooks has tests: add the key tests to them; docs/hook-tests.md shows how")
	case count == 0:
		return usage("no hook here has tests: add the key tests to a hook; docs/hook-tests.md shows how")
	}
	if !asJSON {
		line := fmt.Sprintf("%s passed", visible.Counted(count-failed, "test"))
		if failed > 0 {
			line = a.onOut.red(visible.Counted(failed, "test")+" failed") + ", " + line
		}
		if without > 0 {
			line += a.onOut.dim(", " + visible.Counted(without, "hook") + " without tests")
		}
		fmt.Fprintln(a.out, line)
	}
	if failed > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (a *app) tellTest(v *inspect.Hooks, r *testResult) {
	name := cmp.Or(r.Name, "line "+fmt.Sprint(r.Line))
	if r.Passed {
		fmt.Fprintf(a.out, "%s  %s: %s\n", a.onOut.green("ok"), r.Hook, oneLine(name))
		return
	}
	fmt.Fprintf(a.out, "%s  %s: %s  %s\n", a.onOut.red("FAIL"), r.Hook, oneLine(name), a.onOut.dim(fmt.Sprintf("%s:%d", assembly.ShownPath(v.Settings, r.File), r.Line)))
	for _, d := range r.Differences {
		fmt.Fprintf(a.out, "      %s\n", visible.All(oneLine(d)))
	}
}

// whyOff returns why a hook cannot be asked, or "".
func whyOff(v *inspect.Hooks, h *testedHook) string {
	note, noted := v.Notes().Of(h.sub.Phase().Name(), h.sub.ID(), h.sub.Options().Origin)
	switch {
	case noted && (note.Closed || h.sub.Options().Disabled):
		return note.Reason
	case h.sub.Options().Disabled:
		return "its file says enabled: false"
	}
	return ""
}

// testHook runs one test.
func (a *app) testHook(ctx context.Context, v *inspect.Hooks, h *testedHook, t *declare.Test) (*testResult, error) {
	r := &testResult{Hook: h.sub.ID(), Phase: h.sub.Phase().Name(), Name: t.Name, File: t.File, Line: t.Line}
	if why := whyOff(v, h); why != "" {
		r.Differences = []string{"the hook was not run: " + why}
		return r, nil
	}
	e, err := a.askAlone(ctx, v, h, t.Input)
	if err != nil {
		if _, invalid := errors.AsType[*exitError](err); !invalid {
			return nil, err
		}
		r.Differences = []string{"the input of the test is invalid: " + err.Error()}
		return r, nil
	}
	r.Said, r.Latency = e.Said, e.Latency
	r.Differences = differences(&t.Want, e)
	r.Passed = len(r.Differences) == 0
	return r, nil
}

// askAlone asks a hook in a runtime that has no other hook. The error is an *exitError if the input
// is not one of the phase.
func (a *app) askAlone(ctx context.Context, v *inspect.Hooks, h *testedHook, input json.RawMessage) (*hook.Explained, error) {
	alone, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: v.Places.Host.Grants, Queue: inspect.NoQueue{}, Logger: a.logger()})
	if err != nil {
		return nil, err
	}
	if _, err := alone.Install(h.sub.Alone()); err != nil {
		return nil, err
	}
	x, err := explainInput(ctx, alone, h.sub.Phase().Name(), h.agent, input)
	if err != nil {
		return nil, err
	}
	for i := range x.Entries {
		if x.Entries[i].ID == h.sub.ID() {
			return &x.Entries[i], nil
		}
	}
	return nil, fmt.Errorf("hook %s is not in the plan of %s", h.sub.ID(), x.Phase)
}

// differences compares what a hook did with what its test expects.
func differences(want *declare.Expectation, e *hook.Explained) (all []string) {
	differ := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	failed := e.Asked && e.State != hook.Completed
	switch {
	case failed && want.Decision == declare.ExpectFails:
		return nil
	case failed:
		differ("the hook failed (%s): %s", cmp.Or(string(e.Code), e.State.String()), e.Why)
		return all
	case want.Decision == declare.ExpectFails:
		differ("the hook should fail, but it answered %s", cmp.Or(string(e.Said), "nothing"))
		return all
	case want.Decision == declare.ExpectSkip:
		if e.Asked {
			differ("the hook should not match this input, but it ran")
		}
		return all
	}
	said := make(map[string]json.RawMessage)
	_ = json.Unmarshal(e.Said, &said) // a hook without an answer has said nothing
	notAsked := ""
	if !e.Asked {
		notAsked = " (the hook did not run: " + e.Why + ")"
	}
	decision, reason := cmp.Or(textOf(said["decision"]), "pass"), textOf(said["reason"])
	if want.Decision != "" && want.Decision != decision {
		because := ""
		if reason != "" {
			because = ", because: " + reason
		}
		differ("decision: want %s, got %s%s%s", want.Decision, decision, because, notAsked)
		if !e.Asked {
			return all // it gave nothing else either
		}
	}
	if !strings.Contains(reason, want.Reason) {
		differ("reason: want a text with %q, got %q%s", want.Reason, reason, notAsked)
	}
	texts := stringsIn(said["context"])
	for _, part := range want.Context {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) }) {
			differ("context: want a text with %q, got %s%s", part, cmp.Or(quotedTexts(texts), "none"), notAsked)
		}
	}
	if want.Key != "" && !sameJSON(want.Rewrite, said[want.Key]) {
		differ("%s: want %s, got %s%s", want.Key, want.Rewrite, cmp.Or(string(said[want.Key]), "none"), notAsked)
	}
	return all
}

// quotedTexts returns texts in quotes.
func quotedTexts(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return strings.Join(quoted, ", ")
}

func textOf(value json.RawMessage) (text string) {
	_ = json.Unmarshal(value, &text) // anything but a text counts as none
	return text
}

// stringsIn returns the texts in a JSON value.
func stringsIn(value json.RawMessage) (all []string) {
	var decoded any
	_ = json.Unmarshal(value, &decoded) // no value has no texts
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(decoded)
	return all
}

// sameJSON reports whether two JSON values are equal, whatever the order of their keys.
func sameJSON(a, b json.RawMessage) bool {
	canonical := func(value json.RawMessage) []byte {
		decode := json.NewDecoder(bytes.NewReader(value))
		decode.UseNumber()
		var decoded any
		if decode.Decode(&decoded) != nil {
			return nil
		}
		text, _ := json.Marshal(decoded) //nolint:errchkjson // it was JSON
		return text
	}
	return len(b) > 0 && bytes.Equal(canonical(a), canonical(b))
}
