package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
)

// controlled makes a chat with modes, sessions, models and files.
func controlled(t *testing.T) (*bench, *string) {
	t.Helper()
	mode := "standard"
	b := newBench(t, &Options{Directives: []Directive{{"review", "look at it"}}, Model: "test/one", Controls: Controls{
		Open: func(context.Context, string) (Session, error) { return nil, errors.New("the bench opens none") },
		Sessions: func(context.Context) ([]Choice, error) {
			return []Choice{{ID: "s1", Name: "mend the login"}, {ID: "s2", Name: "write the docs"}}, nil
		},
		Models: func(context.Context) ([]Choice, error) { return []Choice{{ID: "test/one"}, {ID: "test/two"}}, nil },
		Modes:  []Choice{{ID: "plan"}, {ID: "strict"}, {ID: "standard"}, {ID: "build"}},
		Mode:   func(string) string { return mode },
		SetMode: func(_, name string) error {
			if name == "none" {
				return errors.New("no such mode")
			}
			mode = name
			return nil
		},
		PassMode: func(_, name string) error { mode = name; return nil },
		Window:   func(string) int { return 1000 },
		Files: func(context.Context) ([]string, error) {
			return []string{"main.go", "docs/chat.md", "internal/chat/model.go"}, nil
		},
		AddDir: func(dir string) (string, error) {
			if dir == "nowhere" {
				return "", errors.New("there is no directory nowhere")
			}
			return dir + " counts like the project", nil
		},
		Jobs: func(session string) []Job {
			if session != "main" {
				return nil
			}
			at := time.Date(2026, 1, 1, 11, 59, 0, 0, time.UTC)
			return []Job{{ID: "bg_1", Command: "make docs", Started: at, Ended: at.Add(2 * time.Second), End: "exit code 2"}, {ID: "bg_2", Command: "npm run dev", Started: at}}
		},
		JobOutput: func(_, id string) (string, error) { return "first of " + id + "\nlast of " + id + "\n", nil },
		StopJob:   func(_ context.Context, _, id string) error { return fmt.Errorf("asked to stop %s", id) },
		Attach: func(text string) ([]belay.Part, []string) {
			if strings.Contains(text, "x.png") {
				return []belay.Part{belay.Image("image/png", []byte("x"))}, []string{"attached x.png"}
			}
			return nil, nil
		},
	}})
	return b, &mode
}

// last returns what the host was last asked to do, apart from the input history.
func (b *bench) last() string {
	for _, v := range slices.Backward(b.did) {
		if !strings.HasPrefix(v, "remember ") {
			return v
		}
	}
	return ""
}

// SPEC U-02
// The footer shows the mode. shift+tab goes to the next one, /mode NAME to any.
func TestModes(t *testing.T) {
	t.Parallel()
	b, mode := controlled(t)
	shows(t, "the view", b.view(), "standard · main · test/one")
	for _, want := range []string{"build", "plan", "strict", "standard"} {
		if b.keys("shift+tab"); *mode != want {
			t.Fatalf("the mode is %s, want %s", *mode, want)
		}
		shows(t, "the view", b.view(), want+" · main")
	}
	b.keys("/mode build", "enter")
	if *mode != "build" {
		t.Errorf("the mode is %s", *mode)
	}
	b.keys("/mode none", "enter")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), `there is no mode "none"`)
	b.keys("/mode", "enter")
	shows(t, "the view", b.view(), "Modes, now build · 4 of 4", "▸ plan", "strict")
	b.keys("stri", "enter")
	if *mode != "strict" {
		t.Errorf("the mode is %s", *mode)
	}
}

// SPEC U-02
// A mode that shift+tab only passes is not chosen. The mode in which the user stays is chosen with
// the next key, also if the user began in plan mode and went around the whole ring.
func TestModesThatAreOnlyPassed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, begin string
		keys        []string
		want        string // what is passed in ( ), and what is chosen
	}{
		{"stops in a mode", "standard", []string{"shift+tab", "x"}, "(build) build"},
		{"passes to plan mode", "standard", []string{"shift+tab", "shift+tab", "x", "y"}, "(build) (plan) plan"},
		{"goes around from plan mode", "plan", []string{"shift+tab", "shift+tab", "shift+tab", "shift+tab", "enter"}, "(strict) (standard) (build) (plan) plan"},
		{"stays twice", "standard", []string{"shift+tab", "x", "shift+tab", "x"}, "(build) build (plan) plan"},
		{"stays with ctrl+c", "plan", []string{"shift+tab", "ctrl+c"}, "(strict) strict"},
		{"stays with a paste", "plan", []string{"shift+tab", "paste"}, "(strict) strict"},
		{"a mode that somebody else has changed meanwhile", "standard", []string{"shift+tab", "elsewhere", "x"}, "(build)"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var set []string
			mode := test.begin
			b := newBench(t, &Options{Controls: Controls{
				Modes:    []Choice{{ID: "plan"}, {ID: "strict"}, {ID: "standard"}, {ID: "build"}},
				Mode:     func(string) string { return mode },
				SetMode:  func(_, name string) error { mode, set = name, append(set, name); return nil },
				PassMode: func(_, name string) error { mode, set = name, append(set, "("+name+")"); return nil },
			}})
			for _, key := range test.keys {
				switch key {
				case "paste":
					b.send(tea.PasteMsg{Content: "text"})
				case "elsewhere":
					mode = "strict"
				default:
					b.keys(key)
				}
			}
			if got := strings.Join(set, " "); got != test.want {
				t.Errorf("the modes are %s, want %s", got, test.want)
			}
		})
	}
}

// SPEC U-02
// A picker searches, shows a preview, and restores the input.
func TestSessionPicker(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.keys("/sessions", "enter")
	shows(t, "the view", b.view(), "Sessions · 2 of 2", "▸ mend the login", "write the docs", "│ › about s1", "type to search")
	b.keys("docs")
	shows(t, "the view", b.view(), "1 of 2", "▸ write the docs", "│ › about s2")
	b.keys("enter")
	if b.last() != "open s2" {
		t.Errorf("the host was asked to %q", b.last())
	}
	b.send(openedMsg{opening: &opening{session: "s2"}})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "session main is closed", "session s2")
	shows(t, "the view", b.view(), "standard · s2")
	b.keys("/resume docs", "enter", "esc")
	if hides(t, "the view", b.view(), "Sessions"); b.last() != "open s2" {
		t.Errorf("esc asked the host to %q", b.last())
	}
}

// SPEC U-02
// /new and /clear begin a new session. A running turn must end first.
func TestNewSession(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	for _, command := range []string{"/new", "/clear"} {
		b.keys(command, "enter")
		if b.last() != "open " {
			t.Errorf("%s asked the host to %q", command, b.last())
		}
		b.send(openedMsg{opening: &opening{session: "next"}})
	}
	b.keys("go", "enter", "/new", "enter")
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "wait for the end of the turn")
	b.send(overMsg{})
	b.keys("/new", "enter")
	b.send(openedMsg{err: errors.New("the store is gone")})
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "✗ the store is gone")
	shows(t, "the view", b.view(), "next")
}

// SPEC U-02
func TestModelPicker(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.keys("/model", "enter", "two", "enter")
	if b.last() != "run /model test/two" {
		t.Errorf("the host was asked to %q", b.last())
	}
	b.event(belay.Event{Kind: belay.EventModelResponse, Message: &belay.Message{Model: "/model"}})
	b.send(overMsg{})
	shows(t, "the view", b.view(), "main · test/one") // a directive is no model
}

// SPEC U-02
// @ completes the path of a file by fuzzy search.
func TestFileCompletion(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.keys("look at @chmd")
	shows(t, "the view", b.view(), "▸ @docs/chat.md")
	b.keys("tab", "please", "enter")
	if b.last() != "run look at @docs/chat.md please" {
		t.Errorf("the host was asked to %q", b.last())
	}
	b.send(overMsg{})
	b.keys("@", "ma") // what was first before the last letter is not chosen any more
	shows(t, "the view", b.view(), "▸ @main.go")
	b.keys("ctrl+u", "ann@")
	hides(t, "the view", b.view(), "▸")
}

// SPEC U-02
func TestImagesAndCommands(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.send(tea.PasteMsg{Content: "/tmp/x.png"})
	b.keys("enter")
	if len(b.parts) != 1 || b.parts[0].Media == nil {
		t.Errorf("the parts are %+v", b.parts)
	}
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "attached x.png")
	b.send(overMsg{})
	b.keys("!git status", "enter")
	if b.last() != "run /sh git status" {
		t.Errorf("the host was asked to %q", b.last())
	}
	part := b.calls("1", "shell", `{"command":"git status"}`)
	b.answers(part, belay.Result{Text: "one\ntwo\nthree\nfour\nfive\nsix\n"})
	b.event(belay.Event{Kind: belay.EventHookInvoked, Text: "sh"})
	b.event(belay.Event{Kind: belay.EventModelResponse, Message: &belay.Message{Model: "/sh", Parts: []belay.Part{{Type: belay.PartText, Text: "```\none\n```"}}}})
	b.send(overMsg{})
	all := strings.Join(b.printed, "\n")
	shows(t, "the scrollback", all, "✓ shell git status", "│ one", "│ six")
	if hides(t, "the scrollback", all, "hook sh"); strings.Count(all, "one") != 1 {
		t.Errorf("the output of a command is shown more than once:\n%s", all)
	}
}

// SPEC U-02
// A message that is sent while a turn runs steers it, or waits, as the user chose.
func TestSteering(t *testing.T) {
	t.Parallel()
	b := openBench(t, nil, &opening{session: "main", steers: true})
	b.keys("go", "enter", "not there")
	shows(t, "the view", b.view(), "enter steers, ctrl+s to queue")
	b.keys("enter")
	if b.last() != "steer 1 not there" {
		t.Errorf("the host was asked to %q", b.last())
	}
	shows(t, "the view", b.view(), "at the next step: not there")
	b.event(belay.Event{Kind: belay.EventSteered, Text: "not there"})
	b.send(steeredMsg{id: 1})
	hides(t, "the view", b.view(), "at the next step")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "› go", "› not there")
	b.keys("ctrl+s", "later", "enter")
	shows(t, "the view", b.view(), "queued: later")
	b.keys("ctrl+s", "too late", "enter")
	b.send(overMsg{}, steeredMsg{id: 2, err: belay.ErrNotSteered})
	b.send(overMsg{})
	if all := strings.Join(b.did, "|"); !strings.Contains(all, "run later|run too late") && !strings.HasSuffix(all, "run too late") {
		t.Errorf("the host was asked to %s", all)
	}
}

// SPEC U-03
// The last lines of the output of a running command are shown.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	b := begun(t)
	part := b.calls("1", "shell", `{"command":"make"}`)
	for _, text := range []string{"one\ntwo\n", "three\nfour\nfive\nsix\n"} {
		b.event(belay.Event{Kind: belay.EventToolProgress, Call: part, Text: text})
	}
	shows(t, "the view", b.view(), "shell make", "│ two", "│ six")
	hides(t, "the view", b.view(), "│ one")
}

// SPEC U-02
func TestTodoList(t *testing.T) {
	t.Parallel()
	b := begun(t)
	part := b.calls("1", "todo_write", `{}`)
	b.answers(part, belay.Result{Text: "ok", Render: []byte(`{"kind":"todo","todos":[{"content":"look","status":"completed"},{"content":"mend","status":"in_progress"},{"content":"test","status":"pending"}]}`)})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "☑ look", "▸ mend", "☐ test")
}

// SPEC U-02
// A user who is in another window is called, once for each time that the chat waits.
func TestNotification(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.send(tea.BlurMsg{})
	b.wait(time.Second)
	b.m.desk.waiting = append(b.m.desk.waiting, askMsg{reply: make(chan belay.Decision, 1)})
	if b.m.notify() == nil {
		t.Error("nobody is called")
	}
	if b.m.notify() != nil {
		t.Error("the user is called twice")
	}
}

// SPEC U-02
// A plan is shown as formatted text. Its approval covers this plan only, and a denial says what
// should change.
func TestPlanQuestion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		keys []string
		want *belay.Decision
	}{
		{"y approves", []string{"y"}, &belay.Decision{Allow: true}},
		{"n says what should change", []string{"n", "use b.txt", "enter"}, &belay.Decision{Reason: "use b.txt"}},
		{"esc denies", []string{"esc"}, &belay.Decision{}},
		{"s approves no other plan", []string{"s"}, nil},
		{"p approves no other plan", []string{"p"}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			b := begun(t)
			b.wait(time.Second)
			reply := b.question("1", "present_plan", `{"plan":"# Mend it\n\n1. write **a.txt**\n2. test"}`)
			shows(t, "the view", b.view(), "Approve this plan?", "Mend it", "1. write a.txt", "2. test", "y approve and begin")
			hides(t, "the view", b.view(), "this session", "all like", "zone", "**")
			b.keys(test.keys...)
			if test.want == nil {
				undecided(t, reply)
				return
			}
			if got := decision(t, reply); got.Allow != test.want.Allow || got.Reason != test.want.Reason || got.Scope != (belay.ApprovalScope{}) {
				t.Errorf("decided %+v, want %+v", got, test.want)
			}
		})
	}
}

// SPEC U-02
// An approved plan stays readable above, with the mode that follows.
func TestApprovedPlan(t *testing.T) {
	t.Parallel()
	b := begun(t)
	part := b.calls("1", "present_plan", `{"plan":"1. write a.txt"}`)
	b.answers(part, belay.Result{Text: "approved", Render: []byte(`{"kind":"plan","plan":"1. write a.txt","mode":"build"}`)})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "✓ present_plan", "1. write a.txt", "mode build: the agent carries out the plan")
}

// SPEC U-03
// Commands in the background are listed with their output, and stopped, also while a turn runs.
func TestJobs(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.keys("go", "enter", "/jobs", "enter")
	shows(t, "the view", b.view(), "Commands in the background · 2 of 2", "▸ npm run dev · running for 1m00s · bg_2", "make docs · exit code 2 after 2.0s · bg_1", "│ last of bg_2")
	b.keys("enter")
	shows(t, "the view", b.view(), "Command bg_2", "▸ show its output", "stop it")
	b.keys("enter")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "the last output of command bg_2:", "│ first of bg_2", "│ last of bg_2")
	b.keys("/jobs", "enter", "enter", "down", "enter")
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "asked to stop bg_2")
	b.keys("/jobs", "enter", "docs", "enter")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "│ last of bg_1")
	b.send(overMsg{})
	b.send(openedMsg{opening: &opening{session: "next"}})
	b.keys("/jobs", "enter")
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "no command runs in the background")
}

// SPEC U-02
func TestAddDir(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	for typed, want := range map[string]string{
		"/add-dir ../other": "../other counts like the project", "/add-dir nowhere": "✗ there is no directory nowhere", "/add-dir": "name a directory: /add-dir ../other",
	} {
		b.keys(typed, "enter")
		shows(t, "the scrollback", b.printed[len(b.printed)-1], want)
	}
	if b.last() != "" {
		t.Errorf("the host was asked to %q", b.last())
	}
}

// A line about a call does not repeat what the lines below it show.
func TestTitles(t *testing.T) {
	t.Parallel()
	b := begun(t)
	for _, test := range []struct{ tool, input, want string }{
		{"shell", `{"command":"make","description":"builds everything"}`, "✓ shell make"},
		{"shell", `{"command":"make","background":true}`, "✓ shell make, background: true"},
		{"edit", `{"path":"a.go","old_string":"x","new_string":"y"}`, "✓ edit a.go"},
		{"write", `{"path":"a.go","content":"y"}`, "✓ write a.go"},
		{"todo_write", `{"todos":[]}`, "✓ todo_write"},
		{"deploy", `{"content":"y"}`, "✓ deploy y"},
	} {
		b.answers(b.calls("1", test.tool, test.input), belay.Result{Text: "", Render: []byte(`{"diff":"--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-x\n+y\n"}`)})
		line := strings.TrimRight(b.printed[len(b.printed)-4], " ")
		if got, _, _ := strings.Cut(line, " · "); got != test.want {
			t.Errorf("%s %s is shown as %q, want %q", test.tool, test.input, line, test.want)
		}
		hides(t, "the diff", strings.Join(b.printed, "\n"), "+++")
	}
}
