package skill_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

func extensionOf(t testing.TB, catalog *skill.Catalog, opts *skill.Options) *skill.Extension {
	t.Helper()
	e, err := skill.New(catalog, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// agentWith makes an agent with the skills of e.
func agentWith(t testing.TB, e *skill.Extension, steps ...scripted.Step) *belaytest.Agent {
	t.Helper()
	return belaytest.New(t, belaytest.Script(steps...), &belay.Options{Instructions: "You are careful.", Extensions: []belay.Extension{e}})
}

func catalogOf(t testing.TB, skills ...skill.Skill) *skill.Catalog {
	t.Helper()
	catalog := skill.NewCatalog(t.Context(), skill.Values(skills...))
	if problems := catalog.Problems(); len(problems) > 0 {
		t.Fatalf("problems: %v", told("", problems))
	}
	return catalog
}

// declared returns the description of a tool in a model request. The bool is false if the
// request does not have the tool.
func declared(r *belay.Request, tool string) (string, bool) {
	i := slices.IndexFunc(r.Tools, func(d belay.ToolDeclaration) bool { return d.Name == tool })
	if i < 0 {
		return "", false
	}
	return r.Tools[i].Description, true
}

// wire returns the content of a model request as JSON.
func wire(t testing.TB, r *belay.Request) string {
	t.Helper()
	type message struct {
		Role  belay.Role
		Parts []belay.Part
	}
	var messages []message
	for _, m := range r.Messages {
		messages = append(messages, message{m.Role, m.Parts})
	}
	data, err := json.Marshal(map[string]any{"system": r.System, "tools": r.Tools, "messages": messages, "max_tokens": r.MaxTokens})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// computed is a handler that returns a text.
func computed(text string) skill.Handler {
	return func(context.Context, *skill.Use) ([]belay.Part, error) { return []belay.Part{belay.Text(text)}, nil }
}

// SPEC K-03, K-04
func TestWithoutSkillsTheRequestIsTheSame(t *testing.T) {
	t.Parallel()
	text := "say /hello to skill:nobody, please"
	request := func(extensions ...belay.Extension) string {
		agent := belaytest.New(t, belaytest.Script(belaytest.Says("done")), &belay.Options{Instructions: "You are careful.", Tools: []belay.Tool{belaytest.NewTool("look", "ok")}, Extensions: extensions})
		return wire(t, &agent.Say(text).Requests[0])
	}
	without := request()
	for rule, catalog := range map[string]*skill.Catalog{
		"no skills":                          catalogOf(t),
		"a directory that is not there":      skill.NewCatalog(t.Context(), skill.Dir(filepath.Join(t.TempDir(), "none"))),
		"skills of another agent":            catalogOf(t, skill.Skill{Name: "hello", Body: "x", Agents: []string{"other"}, Triggers: []skill.Trigger{{Pattern: "please"}}}),
		"a computed skill that is not shown": catalogOf(t, skill.Skill{Name: "quiet", Handler: computed("x")}),
	} {
		if diff := cmp.Diff(without, request(extensionOf(t, catalog, nil))); diff != "" {
			t.Errorf("%s: the request differs (-without +with):\n%s", rule, diff)
		}
	}
	if with := request(extensionOf(t, catalogOf(t, skill.Skill{Name: "any", Body: "x"}), nil)); with == without {
		t.Error("with a skill the request is the same: the test proves nothing")
	}
}

// SPEC K-04, K-05
func TestReadSkill(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(
		t, skill.Skill{Name: "pdf", Description: "Handles PDFs.", Body: "Do </content> it.", Sections: []skill.Section{{Name: "forms", Text: "Fill them."}}},
		skill.Skill{Name: "git", Description: "Handles git.", Body: "Commit.", Priority: 1}, skill.Skill{Name: "secret", Hidden: true, Description: "Hush.", Body: "Hush."},
		skill.Skill{Name: "elsewhere", Body: "x", Agents: []string{"other"}}, skill.Skill{Name: "both", Body: "Its text.", Handler: computed("x"), Exposed: true},
		skill.Skill{Name: "template", Body: "In {{language}} for {{agent_id}}: {{task}}", Triggers: []skill.Trigger{{Pattern: "never"}}},
	)
	agent := agentWith(
		t, extensionOf(t, catalog, &skill.Options{Suffix: "Ask before you guess."}),
		belaytest.Calls("read_skill", `{"name":"pdf"}`,
			scripted.Call{Tool: "read_skill", Input: `{"name":"pdf","section":"forms"}`},
			scripted.Call{Tool: "read_skill", Input: `{"name":"pdf","section":"../x"}`},
			scripted.Call{Tool: "read_skill", Input: `{"name":"pdg"}`},
			scripted.Call{Tool: "read_skill", Input: `{"name":"secret"}`},
			scripted.Call{Tool: "read_skill", Input: `{"name":"elsewhere"}`},
			scripted.Call{Tool: "read_skill", Input: `{"name":"both"}`},
			scripted.Call{Tool: "read_skill", Input: `{"name":"template"}`},
			scripted.Call{Tool: "read_skill", Input: `{}`}),
		belaytest.Says("done"),
	)
	turn := agent.Say("go")
	description, ok := declared(&turn.Requests[0], "read_skill")
	listing := "<available_skills>\n<skill name=\"git\">Handles git.</skill>\n<skill name=\"pdf\">Handles PDFs.</skill>\n<skill name=\"template\" />\n</available_skills>"
	if !ok || !strings.HasSuffix(description, "\n\n"+listing+"\n\nAsk before you guess.") {
		t.Errorf("the tool is described as\n%s\nwant it to end with\n%s", description, listing)
	}
	calls := turn.Calls()
	for i, want := range []struct {
		class belay.ResultClass
		text  string
	}{
		{"", "<skill name=\"pdf\">\n<content>\nDo <\\/content> it.\n</content>\n<sections>forms</sections>\n</skill>"},
		{"", "<skill name=\"pdf\" section=\"forms\">\n<content>\nFill them.\n</content>\n<sections>forms</sections>\n</skill>"},
		{belay.ClassNotFound, `skill "pdf" has no section "../x": not found. It has: forms`},
		{belay.ClassNotFound, `there is no skill "pdg" (did you mean "pdf"?): not found. Available skills: git, pdf, template`},
		{"", "<skill name=\"secret\">\n<content>\nHush.\n</content>\n</skill>"}, // a hidden skill can be read by its name
		{belay.ClassNotFound, `there is no skill "elsewhere": not found. Available skills: git, pdf, template`},
		{"", "<skill name=\"both\">\n<content>\nIts text.\n</content>\n</skill>"},
		{"", "<skill name=\"template\">\n<content>\nIn  for main: {{task}}\n</content>\n</skill>"},
		{belay.ClassInvalid, ""},
	} {
		got := calls[i].Result
		if got.Class != want.class || got.Text != want.text && want.text != "" {
			t.Errorf("call %s: %q (%s), want %q (%s)", calls[i].Input, got.Text, got.Class, want.text, want.class)
		}
	}
	var render skill.Reading
	if err := json.Unmarshal(calls[0].Result.Render, &render); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(skill.Reading{Name: "pdf", Text: "Do </content> it.", Sections: []string{"forms"}}, render); diff != "" {
		t.Errorf("the render data differs (-want +got):\n%s", diff)
	}
}

// SPEC K-03, K-13
func TestInvokeSkill(t *testing.T) {
	t.Parallel()
	var used []skill.Use
	var mu sync.Mutex // calls of one response run in parallel
	image := belay.Image("image/png", []byte{1, 2})
	catalog := catalogOf(
		t, skill.Skill{Name: "weather", Description: "Tells the weather.", Exposed: true, Handler: func(_ context.Context, use *skill.Use) ([]belay.Part, error) {
			mu.Lock()
			defer mu.Unlock()
			used = append(used, *use)
			return []belay.Part{belay.Text("Sunny"), image, belay.Text("and warm.")}, nil
		}},
		skill.Skill{Name: "fails", Exposed: true, Handler: func(context.Context, *skill.Use) ([]belay.Part, error) { return nil, errors.New("no sky") }},
		skill.Skill{Name: "panics", Exposed: true, Handler: func(context.Context, *skill.Use) ([]belay.Part, error) { panic("oops") }},
		skill.Skill{Name: "strange", Exposed: true, Handler: func(context.Context, *skill.Use) ([]belay.Part, error) {
			return []belay.Part{{Type: belay.PartCall}}, nil
		}},
		skill.Skill{Name: "private", Handler: computed("x")},
		skill.Skill{Name: "secret", Exposed: true, Hidden: true, Handler: computed("shh")},
	)
	agent := agentWith(
		t, extensionOf(t, catalog, nil),
		belaytest.Calls("invoke_skill", `{"name":"weather","args":"Berlin"}`,
			scripted.Call{Tool: "invoke_skill", Input: `{"name":"weather"}`},
			scripted.Call{Tool: "invoke_skill", Input: `{"name":"fails"}`},
			scripted.Call{Tool: "invoke_skill", Input: `{"name":"panics"}`},
			scripted.Call{Tool: "invoke_skill", Input: `{"name":"strange"}`},
			scripted.Call{Tool: "invoke_skill", Input: `{"name":"private"}`},
			scripted.Call{Tool: "invoke_skill", Input: `{"name":"nothing"}`}),
		belaytest.Says("done"),
	)
	turn := agent.Say("go")
	description, ok := declared(&turn.Requests[0], "invoke_skill")
	listing := "<available_skills>\n<skill name=\"fails\" />\n<skill name=\"panics\" />\n<skill name=\"strange\" />\n<skill name=\"weather\">Tells the weather.</skill>\n</available_skills>"
	if !ok || !strings.HasSuffix(description, listing) {
		t.Errorf("the tool is described as\n%s\nwant it to end with\n%s", description, listing)
	}
	if _, ok := declared(&turn.Requests[0], "read_skill"); ok {
		t.Error("read_skill is advertised though there is nothing to read")
	}
	known := "not found. Available skills: fails, panics, strange, weather"
	calls := turn.Calls()
	for i, want := range []struct {
		class belay.ResultClass
		text  string
	}{
		{"", `{"skill":"weather","content":"Sunny\nand warm."}`},
		{"", `{"skill":"weather","content":"Sunny\nand warm."}`},
		{belay.ClassFailed, `skill "fails": no sky`},
		{belay.ClassFailed, `skill "panics": its handler panicked: oops`},
		{belay.ClassFailed, `skill "strange": its handler returned a part of type "tool_call"`},
		{belay.ClassNotFound, `there is no skill "private": ` + known},
		{belay.ClassNotFound, `there is no skill "nothing": ` + known},
	} {
		if got := calls[i].Result; got.Class != want.class || !strings.Contains(got.Text, want.text) {
			t.Errorf("call %s: %q (%s), want %q (%s)", calls[i].Input, got.Text, got.Class, want.text, want.class)
		}
	}
	var render []belay.Part
	if err := json.Unmarshal(calls[0].Result.Render, &render); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]belay.Part{belay.Text("Sunny"), image, belay.Text("and warm.")}, render); diff != "" {
		t.Errorf("the render data differs (-want +got):\n%s", diff)
	}
	slices.SortFunc(used, func(a, b skill.Use) int { return strings.Compare(b.Args, a.Args) })
	for i, args := range []string{"Berlin", ""} {
		want := skill.Use{Name: "weather", Source: skill.ByAgent, Text: args, Args: args, Session: "test", Turn: turn.ID, Agent: "main"}
		if used[i].Controls == nil || used[i].Controls.Emit(belay.Event{}) == nil {
			t.Error("a handler has controls, and until it returns")
		}
		used[i].Controls = nil
		if used[i] != want {
			t.Errorf("the handler was called with %+v, want %+v", used[i], want)
		}
	}
}

// SPEC K-02, K-13
func TestNamesInTheText(t *testing.T) {
	t.Parallel()
	used := make(chan skill.Use, 10)
	catalog := catalogOf(
		t, skill.Skill{Name: "concise", Body: "Be brief."}, skill.Skill{Name: "secret", Hidden: true, Body: "Hush."},
		skill.Skill{Name: "weather", Handler: func(_ context.Context, use *skill.Use) ([]belay.Part, error) {
			used <- *use
			return []belay.Part{belay.Text("Sunny.")}, nil
		}},
		skill.Skill{Name: "elsewhere", Body: "x", Agents: []string{"other"}},
		skill.Skill{Name: "template", Body: "For {{agent_id}}: {{task}}", Triggers: []skill.Trigger{{Pattern: "never ever"}}},
	)
	injected := func(name, text string) string {
		return "<skill name=\"" + name + "\">\n<content>\n" + text + "\n</content>\n</skill>"
	}
	for _, test := range []struct {
		rule, text string
		injected   []string
		stored     string
	}{
		{"a skill", "/concise tell me", []string{injected("concise", "Be brief.")}, "[invoked_extension__skill_concise] tell me"},
		{
			"one for each occurrence, in order", "/weather\n/concise /weather",
			[]string{injected("weather", "Sunny."), injected("concise", "Be brief."), injected("weather", "Sunny.")},
			"[invoked_extension__skill_weather]\n[invoked_extension__skill_concise] [invoked_extension__skill_weather]",
		},
		{"a hidden one", "use /secret now", []string{injected("secret", "Hush.")}, "use [invoked_extension__skill_secret] now"},
		{"a template", "/template fix {{agent_id}}", []string{injected("template", "For main: fix {{agent_id}}")}, "[invoked_extension__skill_template] fix {{agent_id}}"},
		{"names that nobody has stay", "/nobody /concise, /usr/bin /elsewhere", nil, "/nobody /concise, /usr/bin /elsewhere"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent := agentWith(t, extensionOf(t, catalog, nil), belaytest.Says("done"))
			turn := agent.Say(test.text)
			var got []string
			user := turn.Messages[len(turn.Messages)-2]
			for _, m := range turn.Messages {
				if m.Kind == belay.KindInjected {
					got = append(got, m.Text())
					if !m.IsSkillInjection || m.Role != belay.RoleUser {
						t.Errorf("the message %+v is not marked, or not on the user's side", m)
					}
				}
			}
			if !slices.Equal(got, test.injected) || user.Kind != belay.KindUser || user.Text() != test.stored {
				t.Errorf("injected %q in front of %q, want %q in front of %q", got, user.Text(), test.injected, test.stored)
			}
			if changed := user.PreModifiedText != nil; changed != (test.text != test.stored) || changed && *user.PreModifiedText != test.text {
				t.Errorf("what the user typed is kept as %v", user.PreModifiedText)
			}
		})
	}
	t.Cleanup(func() { // runs after all subtests
		close(used)
		calls := 0
		for use := range used {
			calls++
			if use.Source != skill.ByUser || use.Args != "" || use.Text != "[invoked_extension__skill_weather]\n[invoked_extension__skill_concise] [invoked_extension__skill_weather]" {
				t.Errorf("the handler was called with %+v", use)
			}
		}
		if calls != 2 {
			t.Errorf("the handler was called %d times, want twice", calls)
		}
	})
}

// SPEC K-02, K-04
func TestNamesCanBeLeftAlone(t *testing.T) {
	t.Parallel()
	agent := agentWith(t, extensionOf(t, catalogOf(t, skill.Skill{Name: "concise", Body: "Be brief."}), &skill.Options{NoNames: true, ToolName: "open_skill"}), belaytest.Says("done"))
	turn := agent.Say("/concise tell me")
	if turn.Messages[0].Kind != belay.KindUser || turn.Messages[0].Text() != "/concise tell me" {
		t.Errorf("the first message is %+v", turn.Messages[0])
	}
	turn.Request(1).Offers("open_skill")
}

// SPEC K-13
func TestAHandlerThatFailsEndsTheTurnOfAUser(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(
		t, skill.Skill{Name: "fails", Handler: func(context.Context, *skill.Use) ([]belay.Part, error) { return nil, errors.New("no sky") }},
		skill.Skill{Name: "panics", Handler: func(context.Context, *skill.Use) ([]belay.Part, error) { panic("oops") }},
	)
	agent := agentWith(t, extensionOf(t, catalog, nil), belaytest.Says("done"))
	for text, want := range map[string]string{"/fails": `/fails: skill "fails": no sky`, "say /panics": `/panics: skill "panics": its handler panicked: oops`} {
		turn := agent.Say(text)
		turn.Failed(want)
		if len(turn.Messages) > 0 {
			t.Errorf("%s: %d messages were stored, want none", text, len(turn.Messages))
		}
	}
	agent.Say("go on").Ended(belay.EndTurn)
}

// SPEC K-01, K-08, K-09
func TestTriggersMakeSections(t *testing.T) {
	t.Parallel()
	project := filepath.Join(t.TempDir(), "shop")
	put(t, project, "go.mod", "module shop\n\nrequire github.com/go-chi/chi/v5 v5.0.0\n")
	catalog := catalogOf(
		t, skill.Skill{Name: "late", ID: "b", Body: "Late.", Triggers: []skill.Trigger{{Pattern: "deploy"}}},
		skill.Skill{Name: "early", ID: "a", Body: "Early.", Triggers: []skill.Trigger{{Pattern: "deploy"}}},
		skill.Skill{
			Name: "first", Priority: 3, Triggers: []skill.Trigger{{Type: skill.Regex, Pattern: `deploy \w+`}},
			Body: "{{project_name}} {{ project_path }} {{language}} {{framework}} {{agent_id}} {{mode}} {{other}}: {{task}}",
		},
		skill.Skill{Name: "named", Body: "No {{language}} here."},
		skill.Skill{Name: "about", Body: "About.", Triggers: []skill.Trigger{{Pattern: "early"}, {Pattern: "extension"}}},
		skill.Skill{Name: "hush", Hidden: true, Body: "Quiet.", Triggers: []skill.Trigger{{Pattern: "quietly"}}},
		skill.Skill{Name: "everything", Description: "Can do it all.", Body: "All.", Exposed: true, Handler: computed("Computed."), Triggers: []skill.Trigger{{Pattern: "everything"}}},
	)
	e := extensionOf(t, catalog, &skill.Options{Project: project, Mode: "build"})
	for _, test := range []struct {
		rule, text, want string
	}{
		{"nothing matches", "hello", "You are careful."},
		{
			"by priority, then id", "deploy {{mode}} now and deploy it",
			"You are careful.\n\n## Skill: first\n\nshop " + project + " Go chi main build {{other}}: deploy {{mode}} now and deploy it\n\n## Skill: early\n\nEarly.\n\n## Skill: late\n\nLate.",
		},
		{"an id in the text; a body without triggers is no template", "with skill:named, go", "You are careful.\n\n## Skill: named\n\nNo {{language}} here."},
		{"a hidden one is not named", "quietly", "You are careful.\n\n## Skill\n\nQuiet."},
		{"a skill that is all three", "everything", "You are careful.\n\n## Skill: everything\n\nAll."},
		{"one that the user names is not added again", "/early deploy", "You are careful.\n\n## Skill: late\n\nLate."},
		{"a name that was typed is no part of the task", "/early", "You are careful."},
		{"one that was not is", "early", "You are careful.\n\n## Skill: about\n\nAbout."},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			turn := agentWith(t, e, belaytest.Says("done")).Say(test.text)
			if got := turn.Requests[0].System; got != test.want {
				t.Errorf("the prompt is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
	turn := agentWith(t, e, belaytest.Says("done")).Say("hello")
	read, _ := declared(&turn.Requests[0], "read_skill")
	invoke, _ := declared(&turn.Requests[0], "invoke_skill")
	if strings.Contains(read, "everything") || !strings.Contains(invoke, "everything") {
		t.Error("a skill that is all three is listed by one tool, the one that calls it")
	}
}

// SPEC K-02, K-03, K-04, K-05
func TestAHiddenSkillIsNamedNowhere(t *testing.T) {
	t.Parallel()
	const name = "zzhidden"
	catalog := catalogOf(
		t, skill.Skill{Name: name, ID: name, Hidden: true, Description: "x", Body: "Quiet.", Triggers: []skill.Trigger{{Pattern: "quietly"}}, AllowedTools: []string{"look"}},
		skill.Skill{Name: name + "2", Hidden: true, Exposed: true, Handler: computed("x")},
		skill.Skill{Name: "open", Body: "x"}, skill.Skill{Name: "called", Exposed: true, Handler: computed("x")},
	)
	write := belaytest.NewTool("write", "written")
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("read_skill", `{"name":"zzhidde"}`, scripted.Call{Tool: "invoke_skill", Input: `{"name":"zzhiddem"}`}, scripted.Call{Tool: "read_skill", Input: `{"name":"open","section":"x"}`}, scripted.Call{Tool: "write"}),
		belaytest.Says("done"),
	), &belay.Options{Tools: []belay.Tool{write}, Extensions: []belay.Extension{extensionOf(t, catalog, &skill.Options{EnforceAllowedTools: true})}})
	turn := agent.Say("do it quietly")
	turn.Denied("write", "skill.allowed-tools", "a skill is active in this turn and allows only look")
	turn.Request(1).SystemSays("Quiet.")
	for i := range turn.Requests {
		if sent := wire(t, &turn.Requests[i]); strings.Contains(sent, name) {
			t.Errorf("request %d names the hidden skill:\n%s", i+1, sent)
		}
	}
}

// SPEC K-03, K-04, K-11
func TestTheToolsFollowTheSkills(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{})
	synctest.Test(t, func(t *testing.T) { toolsFollow(t, dir) }) // with a fake clock
}

func toolsFollow(t *testing.T, dir string) {
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	agent := agentWith(t, extensionOf(t, catalog, nil), belaytest.Says("1"), belaytest.Says("2"), belaytest.Says("3"), belaytest.Says("4"), belaytest.Says("5"))
	tools := func() string {
		<-time.After(time.Second) // until then the sources are not read again
		r := agent.Say("hello").Request(1)
		var all []string
		for _, d := range r.Tools {
			_, listing, _ := strings.Cut(d.Description, "<available_skills>\n")
			all = append(all, d.Name+": "+strings.ReplaceAll(strings.TrimSuffix(listing, "</available_skills>"), "\n", ""))
		}
		return strings.Join(all, "; ")
	}
	if got := tools(); got != "" {
		t.Errorf("without skills the tools are %s", got)
	}
	put(t, dir, "a/SKILL.md", md("name: a", "description: One."))
	if got, want := tools(), `read_skill: <skill name="a">One.</skill>`; got != want {
		t.Errorf("after a file was written the tools are %s, want %s", got, want)
	}
	lease, err := catalog.Add(skill.Skill{Name: "b", Handler: computed("x"), Exposed: true})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a/SKILL.md", md("name: a", "description: Two."))
	if got, want := tools(), `read_skill: <skill name="a">Two.</skill>; invoke_skill: <skill name="b" />`; got != want {
		t.Errorf("after a change and an addition the tools are %s, want %s", got, want)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if got := tools(); got != "" {
		t.Errorf("after all are gone the tools are %s", got)
	}
	put(t, dir, "a/SKILL.md", md("name: a", "description: One."))
	if r := agent.Say("hello").Request(1); len(r.Tools) > 0 {
		t.Errorf("the sources were asked again at once: %v", r.Tools)
	}
}

// SPEC K-08
func TestAnActiveSkillThatCannotBeReadIsLeftOut(t *testing.T) {
	t.Parallel()
	broken := &source{
		name: "broken", list: func(context.Context) ([]*skill.Skill, error) {
			return []*skill.Skill{{Name: "broken", Triggers: []skill.Trigger{{Pattern: "go"}}}}, nil
		},
		read: func(context.Context, string, string) (skill.Reading, error) {
			return skill.Reading{}, errors.New("gone")
		},
	}
	catalog := skill.NewCatalog(t.Context(), broken, skill.Values(skill.Skill{Name: "sound", Body: "Sound.", Triggers: []skill.Trigger{{Pattern: "go"}}}))
	turn := agentWith(t, extensionOf(t, catalog, nil), belaytest.Says("done")).Say("go")
	if got, want := turn.Requests[0].System, "You are careful.\n\n## Skill: sound\n\nSound."; got != want {
		t.Errorf("the prompt is %q, want %q", got, want)
	}
}

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(t)
	for want, try := range map[string]func() (*skill.Extension, error){
		"there is no catalog":         func() (*skill.Extension, error) { return skill.New(nil, nil) },
		"budget must not be negative": func() (*skill.Extension, error) { return skill.New(catalog, &skill.Options{Budget: -1}) },
		"tool name: invoke_skill":     func() (*skill.Extension, error) { return skill.New(catalog, &skill.Options{ToolName: "invoke_skill"}) },
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}

// SPEC D-08, K-13
func TestSkillsAreToldBeforeTheyWork(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(t, skill.Skill{Name: "concise", Body: "Be brief."},
		skill.Skill{Name: "weather", Exposed: true, Handler: func(_ context.Context, use *skill.Use) ([]belay.Part, error) {
			return []belay.Part{belay.Text("Sunny.")}, use.Controls.Emit(belay.Event{Kind: belay.EventHookInvoked, Text: "worked"})
		}})
	agent := agentWith(t, extensionOf(t, catalog, nil),
		scripted.Step{Calls: []scripted.Call{{Tool: "invoke_skill", Input: `{"name":"weather","args":"Berlin"}`}}}, scripted.Step{Text: "fine"})
	var told []string
	for _, e := range agent.Say("/concise /weather").Events {
		switch {
		case e.Kind == belay.EventSkillInvoked:
			told = append(told, strings.TrimSpace(e.Invoked.Name+" "+e.Invoked.Source+" "+e.Invoked.Args))
		case e.Text == "worked":
			told = append(told, e.Text)
		}
	}
	wants(t, "what was told", told, []string{"concise user", "weather user", "worked", "weather agent Berlin", "worked"})
}

// SPEC K-03, K-04: if skills are added during a turn, their tools are advertised from the
// next model request on.
func TestTheToolsFollowTheSkillsWithinATurn(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(t)
	grow := belay.NewTool("grow", "Adds a skill.", func(context.Context, struct{}) (string, error) {
		_, err := catalog.Add(skill.Skill{Name: "new", Exposed: true, Handler: computed("x")}, skill.Skill{Name: "text", Body: "x"})
		return "grown", err
	}, nil)
	agent := belaytest.New(t, scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "grow"}}}, {Text: "fine"}}, nil),
		&belay.Options{Tools: []belay.Tool{grow}, Extensions: []belay.Extension{extensionOf(t, catalog, nil)}})
	turn := agent.Say("go")
	for _, tool := range []string{"invoke_skill", "read_skill"} {
		if _, ok := declared(&turn.Requests[0], tool); ok {
			t.Errorf("%s is advertised before there is a skill", tool)
		}
		if _, ok := declared(&turn.Requests[1], tool); !ok {
			t.Errorf("%s is not advertised once there is a skill", tool)
		}
	}
}
