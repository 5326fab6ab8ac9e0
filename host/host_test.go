package host_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/store/memstore"
)

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this test program again to confine commands
	os.Exit(m.Run())
}

// options returns options for a project of the test. They do not depend on the user's own
// settings.
func options(t *testing.T, files map[string]string, steps ...scripted.Step) *host.Options {
	t.Helper()
	dir, remove := project(files)
	t.Cleanup(remove)
	return &host.Options{Dir: dir, UserDir: filepath.Join(dir, "user"), Environ: []string{}, Model: scripted.New(steps, nil)}
}

// open opens a host that is closed when the test ends.
func open(t *testing.T, opts *host.Options) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// take runs a turn of an agent.
func take(t *testing.T, h *host.Host, name string) *belay.Turn {
	t.Helper()
	agent, err := h.Agent(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("s-"+name).Turn(t.Context(), "do it")
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

const reviewer = "name: reviewer\ndescription: reviews changes\nprompt: You review changes.\ntools: [read, grep]\n"

// The agent of the settings has the stock tools, and the skills, the declared agents and
// the hooks of the project.
func TestAgentsHaveWhatTheCommandLineHas(t *testing.T) {
	t.Parallel()
	opts := options(t, map[string]string{
		"belay.yaml":                  "instructions: You tidy up.\n",
		".belay/hooks/no-prod.yaml":   noProd,
		".belay/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: how to tidy\n---\nTidy.\n",
		".belay/agents/reviewer.yaml": reviewer,
	}, scripted.Step{
		Expect: &scripted.Expect{System: "You tidy up.", Tools: []string{"read", "write", "shell", "invoke_subagent", "read_skill"}},
		Calls: []scripted.Call{
			{Tool: "write", Input: `{"path": "prod/notes.md", "content": "x"}`},
			{Tool: "write", Input: `{"path": "notes.md", "content": "x"}`},
		},
	}, scripted.Step{
		Expect: &scripted.Expect{Results: []scripted.Result{{Text: "no-prod", IsError: true}, {}}},
		Text:   "done",
	})
	if turn := take(t, open(t, opts), host.Main); turn.Reason != belay.EndTurn || turn.Text != "done" {
		t.Errorf("the turn ended with %s %q: %s", turn.Reason, turn.Text, turn.Why)
	}
	if _, err := os.Stat(filepath.Join(opts.Dir, "notes.md")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(opts.Dir, ".belay", "belay.db")); err != nil {
		t.Errorf("the sessions are not where the command line keeps them: %v", err)
	}
}

// A declared agent has the prompt and the tools from its file, and the model from
// host.Options.
func TestDeclaredAgentsAreMadeByName(t *testing.T) {
	t.Parallel()
	h := open(t, options(t, map[string]string{".belay/agents/reviewer.yaml": reviewer},
		scripted.Step{Expect: &scripted.Expect{System: "You review changes.", Tools: []string{"read", "grep"}, NoTools: []string{"write", "shell"}}, Text: "fine"}))
	if turn := take(t, h, "reviewer"); turn.Text != "fine" {
		t.Errorf("the turn ended with %s %q: %s", turn.Reason, turn.Text, turn.Why)
	}
	first, err := h.Agent(t.Context(), "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := h.Agent(t.Context(), "reviewer"); err != nil || second != first {
		t.Errorf("the agent is made twice, %v", err)
	}
	if _, err := h.Agent(t.Context(), "reviewers"); err == nil || !strings.Contains(err.Error(), `did you mean "reviewer"?`) {
		t.Errorf("the error is %v, want the name that is meant", err)
	}
}

// The setting hooks.no_previews reaches the agent: hooks at turn.post_turn get no texts.
func TestNoPreviewsReachesTheAgent(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"": "do it/done", "hooks: {no_previews: true}\n": "/"} {
		var mu sync.Mutex
		var got []string
		opts := options(t, map[string]string{"belay.yaml": setting}, scripted.Step{Text: "done"})
		opts.Hooks = []hook.Subscription{belay.TurnPostTurn.On("look", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, in.UserText()+"/"+in.Text())
			return belay.Note{}, nil
		}, nil)}
		take(t, open(t, opts), host.Main)
		mu.Lock()
		if len(got) != 1 || got[0] != want {
			t.Errorf("with the settings %q, hooks get the texts %q, want %q", setting, got, want)
		}
		mu.Unlock()
	}
}

// Agents have the hooks and skills of the spaces that the program names, and cannot change
// their files. A missing space is an error, because it may have had a gate.
func TestSpacesOfTheProgram(t *testing.T) {
	t.Parallel()
	opts := options(t, map[string]string{
		"acme/manifest.json":        `{"id": "acme"}`,
		"acme/hooks/rules.yaml":     noProd,
		"acme/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: how to tidy\n---\nTidy.\n",
	}, scripted.Step{
		Expect: &scripted.Expect{Tools: []string{"read_skill"}},
		Calls: []scripted.Call{
			{Tool: "write", Input: `{"path": "prod/notes.md", "content": "x"}`},
			{Tool: "write", Input: `{"path": "acme/hooks/rules.yaml", "content": "hooks: []"}`},
			{Tool: "read_skill", Input: `{"name": "acme/tidy"}`},
		},
	}, scripted.Step{
		Expect: &scripted.Expect{Results: []scripted.Result{{Text: "acme/no-prod", IsError: true}, {IsError: true}, {Text: "Tidy."}}},
		Text:   "done",
	})
	opts.Spaces = []string{filepath.Join(opts.Dir, "acme")}
	if turn := take(t, open(t, opts), host.Main); turn.Text != "done" {
		t.Errorf("the turn ended with %s %q: %s", turn.Reason, turn.Text, turn.Why)
	}
	if text, err := os.ReadFile(filepath.Join(opts.Dir, "acme", "hooks", "rules.yaml")); err != nil || string(text) != noProd {
		t.Errorf("the file of the space is %q, %v", text, err)
	}
	opts.Spaces = append(opts.Spaces, filepath.Join(opts.Dir, "gone"))
	if _, err := open(t, opts).Agent(t.Context(), host.Main); err == nil || !strings.Contains(err.Error(), "no longer exists") || !strings.Contains(err.Error(), "remove it from the spaces that the program loads") {
		t.Errorf("a missing space: %v", err)
	}
}

// Settings of the program override settings of files. Errors about them name their source.
func TestSettingsOverruleFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{"belay.yaml": "instructions: You tidy up.\n"}
	opts := options(t, files, scripted.Step{Expect: &scripted.Expect{System: "You count."}, Text: "three"})
	opts.Settings = []host.Setting{{Path: "instructions", Value: "You count."}}
	if turn := take(t, open(t, opts), host.Main); turn.Text != "three" {
		t.Errorf("the turn ended with %s %q: %s", turn.Reason, turn.Text, turn.Why)
	}
	for _, test := range []struct {
		rule    string
		setting host.Setting
		want    []string
	}{
		{"an unknown path", host.Setting{Path: "limits.step", Value: "3"}, []string{"host.Options: there is no setting", `did you mean "limits.steps"?`}},
		{"a value that does not fit", host.Setting{Path: "limits.steps", Value: "many"}, []string{"host.Options: ", "many"}},
		{"a source of the program", host.Setting{Path: "mode", Value: "lax", From: "--how"}, []string{"--how: ", "lax"}},
	} {
		opts := options(t, files)
		opts.Settings = []host.Setting{test.setting}
		h, err := host.Open(t.Context(), opts)
		if err == nil {
			t.Errorf("%s: it is taken", test.rule)
			_ = h.Close()
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %q, want %q in it", test.rule, err, want)
			}
		}
	}
}

// Without a model, Open fails and creates no store.
func TestWithoutAModelNothingIsMade(t *testing.T) {
	t.Parallel()
	opts := options(t, nil)
	opts.Model = nil
	if h, err := host.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("Open returns %v, %v: want an error that says which keys there are", h, err)
	}
	if found, err := os.ReadDir(opts.Dir); err != nil || len(found) > 0 {
		t.Errorf("it made %v, %v", found, err)
	}
}

// An unreadable hook may be a gate, so no agent is made without it.
func TestMistakesInHooksAreErrors(t *testing.T) {
	t.Parallel()
	h := open(t, options(t, map[string]string{".belay/hooks/odd.yaml": "hooks:\n  - {id: odd, phaze: tool.pre}\n"}))
	if _, err := h.Agent(t.Context(), host.Main); err == nil || !strings.Contains(err.Error(), `odd.yaml:2: unknown key "phaze"`) {
		t.Errorf("the error is %v, want the file and the line", err)
	}
}

// A problem that only limits an agent is a notice. So is a setting with an old name.
func TestNoticesTellWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all []host.Notice
	opts := options(t, map[string]string{
		".belay/skills/odd/SKILL.md": "---\nname: [odd\n---\n",
		"user/belay/belay.yaml":      "anthropic: {key_file: key}\n",
	}, scripted.Step{Text: "done"})
	opts.Notify = func(n host.Notice) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, n)
	}
	take(t, open(t, opts), host.Main)
	mu.Lock()
	defer mu.Unlock()
	for label, text := range map[string]string{"not loaded": "SKILL.md", "warning": `belay.yaml:1: "anthropic" is deprecated: write "providers.anthropic"`} {
		at := slices.IndexFunc(all, func(n host.Notice) bool { return n.Warning && n.Label == label && strings.Contains(n.Text, text) })
		if at < 0 {
			t.Errorf("the notices are %+v, want one with %s", all, text)
		} else if !strings.HasPrefix(all[at].String(), label+": ") {
			t.Errorf("it reads %q", all[at])
		}
	}
}

// approve approves every call and counts the questions.
type approve struct{ asked int }

func (a *approve) Approve(context.Context, belay.Question) (belay.Decision, error) {
	a.asked++
	return belay.Decision{Allow: true, By: "a test"}, nil
}

// The program's approver decides about calls. Without an approver the turn parks.
func TestApprovals(t *testing.T) {
	t.Parallel()
	steps := []scripted.Step{{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "notes.md", "content": "x"}`}}}, {Text: "done"}}
	strict := []host.Setting{{Path: "mode", Value: "strict"}}
	opts := options(t, nil, steps...)
	opts.Settings = strict
	if turn := take(t, open(t, opts), host.Main); turn.Reason != belay.EndParked || len(turn.Waits) != 1 {
		t.Errorf("without an approver the turn ended with %s, and waits for %v", turn.Reason, turn.Waits)
	}
	person := &approve{}
	opts = options(t, nil, steps...)
	opts.Settings, opts.Approver = strict, person
	if turn := take(t, open(t, opts), host.Main); turn.Reason != belay.EndTurn || person.asked != 1 {
		t.Errorf("with an approver the turn ended with %s, and asked %d times", turn.Reason, person.asked)
	}
}

// The host uses the store of the program, and does not close it.
func TestTheProgramKeepsItsStore(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	opts := options(t, nil, scripted.Step{Text: "done"})
	opts.Store = store
	h, err := host.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	take(t, h, host.Main)
	if h.Store() != belay.Store(store) {
		t.Error("it has another store")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	messages := 0
	for _, err := range store.Read(t.Context(), "s-main", 0) {
		if err != nil {
			t.Fatal(err)
		}
		messages++
	}
	if messages != 2 {
		t.Errorf("the store has %d messages, want the user's and the model's", messages)
	}
	if _, err := os.Stat(filepath.Join(opts.Dir, ".belay", "belay.db")); err == nil {
		t.Error("it made a store of its own")
	}
	if _, err := h.Agent(t.Context(), host.Main); err == nil {
		t.Error("a closed host makes agents")
	}
	if err := h.Close(); err != nil {
		t.Errorf("closing it twice: %v", err)
	}
}
