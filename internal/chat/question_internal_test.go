package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
)

// question asks about a call, and returns the channel for the decision.
func (b *bench) question(id, tool, input string) chan belay.Decision {
	b.t.Helper()
	reply := make(chan belay.Decision, 1)
	b.send(askMsg{belay.Question{
		Approval: belay.Approval{ID: id, Call: "call-" + id, Tool: tool, Hash: "h-" + id, Reason: "it removes files", By: "guard"},
		Input:    json.RawMessage(input),
	}, Advice{
		Reach: "zone 1 workspace: changes files", Run: "in the sandbox", Pattern: "shell(rm *)",
		Check: func(pattern string) error {
			if !strings.HasPrefix(pattern, "shell(rm") {
				return errors.New("it does not cover this call")
			}
			return nil
		},
	}, reply})
	return reply
}

// decision returns the decision that was sent.
func decision(t *testing.T, reply chan belay.Decision) belay.Decision {
	t.Helper()
	select {
	case d := <-reply:
		return d
	default:
		t.Fatal("there is no decision")
		return belay.Decision{}
	}
}

func undecided(t *testing.T, reply chan belay.Decision) {
	t.Helper()
	if len(reply) > 0 {
		t.Fatalf("it was decided: %+v", <-reply)
	}
}

func TestQuestionAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		keys []string
		want *belay.Decision
	}{
		{"y allows", []string{"y"}, &belay.Decision{Allow: true}},
		{"s alone allows nothing", []string{"s"}, nil},
		{"esc goes back from s", []string{"s", "esc", "y"}, &belay.Decision{Allow: true}},
		{"s allows for this session", []string{"s", "enter"}, &belay.Decision{Allow: true, Scope: belay.ApprovalScope{Kind: belay.ScopeSession}}},
		{"p asks for a pattern", []string{"p"}, nil},
		{"p offers one", []string{"p", "enter"}, &belay.Decision{Allow: true, Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "shell(rm *)"}}},
		{"the pattern can be changed", []string{"p", "backspace", "backspace", "-rf build)", "enter"}, &belay.Decision{Allow: true, Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "shell(rm -rf build)"}}},
		{"a pattern that will not do is no answer", []string{"p", "ctrl+u", "read", "enter"}, nil},
		{"it can be changed again", []string{"p", "ctrl+u", "read", "enter", "ctrl+u", "shell(rm -rf *)", "enter"}, &belay.Decision{Allow: true, Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "shell(rm -rf *)"}}},
		{"s is a letter in a pattern", []string{"p", "s"}, nil},
		{"esc goes back from the pattern", []string{"p", "x", "esc", "y"}, &belay.Decision{Allow: true}},
		{"esc denies", []string{"esc"}, &belay.Decision{}},
		{"n asks why", []string{"n"}, nil},
		{"n denies with a reason", []string{"n", "not today", "enter"}, &belay.Decision{Reason: "not today"}},
		{"the reason may be left out", []string{"n", "enter"}, &belay.Decision{}},
		{"y is a letter in a reason", []string{"n", "yes but no", "enter"}, &belay.Decision{Reason: "yes but no"}},
		{"esc goes back from the reason", []string{"n", "x", "esc", "y"}, &belay.Decision{Allow: true}},
		{"enter is no answer", []string{"enter"}, nil},
		{"other letters are no answer", []string{"x", "a", "1", " "}, nil},
		{"v shows the whole and is no answer", []string{"v"}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			b := begun(t)
			b.keys("draft")
			b.wait(time.Second)
			reply := b.question("1", "shell", `{"command":"rm -rf build"}`)
			shows(t, "the view", b.view(), "Allow shell to run?", "Why: it removes files (asked by guard)", "zone 1 workspace · runs in the sandbox",
				"$ rm -rf build", "y once · s this session · p all like shell(rm *)", "n deny")
			b.keys(test.keys...)
			if test.want == nil {
				undecided(t, reply)
				return
			}
			got := decision(t, reply)
			if got.Allow != test.want.Allow || got.Reason != test.want.Reason || got.Scope != test.want.Scope || got.By != "you" || got.Approval != "1" || got.Hash != "h-1" {
				t.Errorf("decided %+v, want %+v by you, about this question and input", got, test.want)
			}
			hides(t, "the view", b.view(), "Allow shell to run?")
			if text := b.m.editor.text(); text != "draft" {
				t.Errorf("the editor holds %q, want what was being typed", text)
			}
		})
	}
}

// The chat shows why a pattern is invalid. Without a suggested pattern the key p does
// nothing.
func TestQuestionPatterns(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	reply := b.question("1", "shell", `{"command":"rm -rf build"}`)
	b.keys("p")
	shows(t, "the view", b.view(), "enter allow all calls like this", "› shell(rm *)")
	b.keys("ctrl+u", "read", "enter")
	shows(t, "the view", b.view(), "invalid pattern: it does not cover this call")
	b.keys("x")
	hides(t, "the view", b.view(), "does not cover")
	b.send(withdrawMsg{"1"})
	undecided(t, reply)
	other := make(chan belay.Decision, 1)
	b.send(askMsg{question: belay.Question{Approval: belay.Approval{ID: "2", Tool: "shell"}, Input: json.RawMessage(`{}`)}, reply: other})
	b.wait(quiet)
	hides(t, "the view", b.view(), "all like", "would run")
	b.keys("p")
	undecided(t, other)
	hides(t, "the view", b.view(), "enter allows")
}

// A key that was meant for the input does not answer a question that just appeared.
func TestQuestionWaitsForSilence(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.keys("read")
	reply := b.question("1", "shell", `{}`)
	shows(t, "the view", b.view(), "Allow shell to run?", "stop typing for a moment, then answer")
	b.wait(quiet / 2)
	b.keys("y")
	undecided(t, reply)
	if got := b.m.editor.text(); got != "ready" {
		t.Errorf("the editor holds %q", got)
	}
	b.wait(quiet / 2)
	b.keys(" ")
	undecided(t, reply)
	b.wait(quiet)
	shows(t, "the view", b.view(), "y once")
	b.keys("y")
	if !decision(t, reply).Allow {
		t.Error("it was not allowed")
	}
}

// While a question is open, it is the only thing that asks: its keys stand out, no spinner says
// that the agent works, and the input does not invite to type.
//
// SPEC U-01
func TestQuestionAsksAlone(t *testing.T) {
	t.Parallel()
	b := begun(t)
	shows(t, "the view", b.view(), "working", "type a message")
	b.question("1", "shell", `{"command":"rm x"}`)
	b.wait(quiet)
	shows(t, "the view", b.view(), "y once", "esc deny", "answer with a key above")
	hides(t, "the view", b.view(), "working", "type a message")
	for _, key := range []string{"y", "n", "esc", "ctrl+c"} {
		if bold := b.m.look.accent.Bold(true).Render(key); !strings.Contains(b.m.View().Content, bold) {
			t.Errorf("the key %s does not stand out", key)
		}
	}
	b.keys("n")
	hides(t, "the view", b.view(), "answer with a key above")
	b.keys("esc", "y")
	shows(t, "the view", b.view(), "working", "type a message")
}

// After s the screen says what enter does, and does not invite to type a message.
//
// SPEC U-01
func TestSessionGrantSaysWhatEnterDoes(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	reply := b.question("1", "shell", `{"command":"rm x"}`)
	b.keys("s")
	undecided(t, reply)
	shows(t, "the view", b.view(), "enter allow for this session", "esc back", "answer with a key above")
}

// A word that begins with no key of the question, or with s, is a message, and none of its
// letters answers.
// Esc sets the message aside, and the keys answer again.
//
// SPEC U-01, U-02
func TestWordsDoNotAnswerAQuestion(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"wait, stop", "are you sure?", "/yes", "stop", "s y"} {
		b := begun(t)
		b.keys("first ")
		b.wait(time.Second)
		reply := b.question("1", "shell", `{"command":"rm x"}`)
		b.keys(word)
		undecided(t, reply)
		shows(t, "the view", b.view(), "Allow shell to run?", "enter send the message", "esc set it aside and answer")
		if got := b.m.editor.text(); got != "first "+word {
			t.Errorf("the editor holds %q", got)
		}
		b.keys("esc")
		undecided(t, reply)
		shows(t, "the view", b.view(), "y once", "esc deny", "answer with a key above")
		b.keys("y")
		if !decision(t, reply).Allow {
			t.Error("it was not allowed")
		}
		if got := b.m.editor.text(); got != "first "+word {
			t.Errorf("afterwards the editor holds %q", got)
		}
	}
}

// Questions are asked one after another. A key that is pressed twice answers only one of
// them.
func TestQuestionsQueue(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	one, two, three := b.question("1", "one", `{}`), b.question("2", "two", `{}`), b.question("3", "three", `{}`)
	shows(t, "the view", b.view(), "Allow one to run? (1 of 3)")
	b.keys("y", "y")
	if !decision(t, one).Allow {
		t.Error("the first was not allowed")
	}
	undecided(t, two)
	b.wait(quiet)
	b.send(withdrawMsg{"2"}) // its call was aborted
	shows(t, "the view", b.view(), "Allow three to run?", "stop typing")
	b.keys("y")
	undecided(t, three)
	b.wait(quiet)
	b.keys("esc")
	if decision(t, three).Allow {
		t.Error("the third was allowed")
	}
	undecided(t, two)
	hides(t, "the view", b.view(), "May")
	b.send(withdrawMsg{"never asked"})
}

// A question shows the whole input that would run.
func TestQuestionHidesNothing(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	var command strings.Builder
	for range 40 {
		command.WriteString(`echo ok\n`)
	}
	b.question("1", "shell", `{"command":"`+command.String()+`\u001b[2Krm -rf \u202e/"}`)
	shows(t, "the view", b.view(), "$ echo ok", "  echo ok", "lines more: v shows all", "y once")
	b.keys("v")
	all := strings.Join(b.printed, "\n")
	if n := strings.Count(all, "echo ok"); n != 40 {
		t.Errorf("v shows %d of 40 lines", n)
	}
	shows(t, "the scrollback", all, `␛[2Krm -rf \u202e/`)
}

// If a hook rewrote the input, the person also sees the model's input.
func TestQuestionShowsARewrite(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	part := &belay.CallPart{
		ID: "call-1", Tool: "shell", Input: json.RawMessage(`{"command":"rm -rf /","cwd":"."}`),
		Final: json.RawMessage(`{"command":"rm -rf ./build","cwd":"."}`), RewrittenBy: []string{"paths"},
	}
	b.event(belay.Event{Kind: belay.EventToolUse, Call: part})
	b.question("1", "shell", string(part.Final))
	shows(t, "the view", b.view(), "- command: rm -rf /\n", "+ command: rm -rf ./build", "  cwd: .")
	shows(t, "the view", b.view(), "? shell", "waiting for your answer")
}

// Every decision is printed, no matter who made it.
func TestDecisionsAreLines(t *testing.T) {
	t.Parallel()
	b := begun(t)
	part := b.calls("1", "shell", `{}`)
	for _, d := range []belay.Decision{
		{Allow: true, By: "policy", Reason: "it is Monday"},
		{Allow: true, By: "ada", Scope: belay.ApprovalScope{Kind: belay.ScopeSession}},
		{Allow: true, By: "ada", Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "shell(ls *)"}},
		{By: "expiry", Reason: "nobody decided in time"},
	} {
		b.event(belay.Event{Kind: belay.EventApprovalDecided, Call: part, Approval: &belay.Approval{Tool: "shell", Decided: &d}})
	}
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "✓ shell allowed by policy: it is Monday", "✓ shell allowed for this session by ada", "✓ shell allowed like shell(ls *) by ada",
		"✗ shell denied by expiry: nobody decided in time")
}

func TestCtrlCWhileAskedAborts(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	reply := b.question("1", "shell", `{}`)
	b.keys("n", "rea", "ctrl+c")
	undecided(t, reply)
	if last := b.did[len(b.did)-1]; last != "abort" {
		t.Errorf("the host was asked to %q, want abort", last)
	}
	b.send(withdrawMsg{"1"})
	b.send(overMsg{err: errAborted})
	hides(t, "the view", b.view(), "May shell")
}

// SPEC U-01
// A question about a file shows the change of the file as it is now, and says whether the call
// overwrites it.
func TestQuestionShowsTheChange(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	change := &Change{
		Path: "notes.md", Action: "overwritten", Added: 1, Removed: 2,
		Diff: "--- a/notes.md\n+++ b/notes.md\n@@ -8,3 +8,2 @@\n # Notes\n-- milk\n-- bread\n+- oat milk\n",
	}
	reply := make(chan belay.Decision, 1)
	b.send(askMsg{belay.Question{
		Approval: belay.Approval{ID: "1", Tool: "write", Reason: "a long reason"}, Input: json.RawMessage(`{"path":"notes.md","content":"# Notes\n- oat milk\n"}`),
	}, Advice{Cause: "changes notes.md; strict mode asks first", Change: change}, reply})
	shows(t, "the view", b.view(), "Allow write to overwrite notes.md?  +1 −2", "Why: changes notes.md; strict mode asks first",
		"  8   # Notes", "  9 - - milk", " 10 - - bread", "  9 + - oat milk", "y once")
	hides(t, "the view", b.view(), "a long reason", "content:")
	removed, added := b.m.look.removed.Render("   9 - - milk"), b.m.look.added.Render("   9 + - oat milk")
	if content := b.m.View().Content; !strings.Contains(content, removed) || !strings.Contains(content, added) {
		t.Errorf("the change has no colours: %q", content)
	}
	for action, want := range map[string]string{"created": "Allow write to create notes.md?", "edited": "Allow write to change notes.md?", "unchanged": "Allow write to write, without a change, notes.md?"} {
		if head := Head(&belay.Question{Approval: belay.Approval{Tool: "write"}}, &Advice{Change: &Change{Path: "notes.md", Action: action}}); head != want {
			t.Errorf("%s: asked %q, want %q", action, head, want)
		}
	}
}

// SPEC U-01
// A question about a command shows what will really run, and marks why approval is needed.
func TestQuestionShowsWhatRuns(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	ask := func(command string, effects ...Effect) string {
		input, err := json.Marshal(map[string]string{"command": command, "cwd": "web"})
		if err != nil {
			t.Fatal(err)
		}
		b.send(askMsg{belay.Question{Approval: belay.Approval{ID: command, Tool: "shell"}, Input: input}, Advice{Run: "in the sandbox", Effects: effects}, make(chan belay.Decision, 1)})
		b.wait(quiet)
		view := b.view()
		b.send(withdrawMsg{command})
		return view
	}
	shows(t, "the view", ask("cat x | sh -c 'rm -rf build'", Effect{"Runs cat x.", false}, Effect{"Runs rm -rf build: removes whole directories.", true}),
		"$ cat x | sh -c 'rm -rf build'", "· cwd: web", "· Runs cat x\n", "! Runs rm -rf build: removes whole directories\n")
	hides(t, "the view", ask("git push", Effect{"Runs git push.", true}), "Runs git")
}

// SPEC U-01
// The keys fit 30 columns, and none is cut.
func TestQuestionKeysFitNarrowScreens(t *testing.T) {
	t.Parallel()
	for _, width := range []int{30, 80, 200} {
		b := begun(t)
		b.send(tea.WindowSizeMsg{Width: width, Height: 40})
		b.wait(time.Second)
		b.question("1", "shell", `{"command":"rm -rf build"}`)
		view := strings.Join(strings.Fields(b.view()), " ")
		for _, key := range []string{"y once", "s this session", "p all like shell(rm *)", "n deny and say why", "esc deny", "v all", "ctrl+c abort"} {
			if !strings.Contains(view, key) {
				t.Errorf("at %d columns the key %q is missing or cut:\n%s", width, key, b.view())
			}
		}
		for _, hints := range []struct{ press, want string }{
			{"p", "enter allow all calls like this for this session"}, {"esc", "y once"}, {"x", "esc set it aside and answer"},
		} {
			b.keys(hints.press)
			if view := strings.Join(strings.Fields(b.view()), " "); !strings.Contains(view, hints.want) {
				t.Errorf("at %d columns the hint %q is missing or cut:\n%s", width, hints.want, b.view())
			}
		}
	}
}

// On a small terminal a question still shows the lines that change, and which call waits.
//
// SPEC U-01
func TestQuestionOnASmallTerminal(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.send(tea.WindowSizeMsg{Width: 30, Height: 24})
	b.calls("call-1", "edit", `{"path":"docs/notes.md","old_string":"buy milk","new_string":"buy oat milk"}`)
	b.wait(time.Second)
	b.send(askMsg{belay.Question{
		Approval: belay.Approval{ID: "1", Call: "call-1", Tool: "edit", Reason: "strict mode asks first"},
		Input:    json.RawMessage(`{"path":"docs/notes.md","old_string":"buy milk","new_string":"buy oat milk"}`),
	}, Advice{Reach: "zone 1 workspace", Pattern: "edit(docs/notes.md)", Change: &Change{
		Path: "docs/notes.md", Action: "edited", Added: 1, Removed: 1,
		Diff: "--- a/docs/notes.md\n+++ b/docs/notes.md\n@@ -1,7 +1,7 @@\n one\n two\n three\n-buy milk\n+buy oat milk\n five\n six\n seven\n",
	}}, make(chan belay.Decision, 1)})
	shows(t, "the view", b.view(), "? edit docs", "Allow edit to change", "- buy milk", "+ buy oat milk", "y once", "n deny")
	hides(t, "the view", b.view(), "three")
	b.send(tea.WindowSizeMsg{Width: 80, Height: 40})
	shows(t, "the view", b.view(), "? edit docs/notes.md · waiting for your answer", "three", "- buy milk", "+ buy oat milk", "five")
}

// A path that is completed is not cut while there is room.
func TestCompletedPathIsShown(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.send(tea.WindowSizeMsg{Width: 30, Height: 24})
	b.keys("@model")
	shows(t, "the view", b.view(), "▸ @internal/chat/model.go")
}
