package belaytest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// Render returns messages as text for people and for golden files. Each message begins with
// its kind, and its parts are indented below. Render leaves out times and ids of turns,
// because they differ from run to run.
//
//	user
//	  What is to do?
//	assistant
//	  Let me see.
//	  call_1: read {"path": "notes.md"}
//	results
//	  call_1: read: buy milk
//	assistant (end_turn)
//	  Buy milk.
func Render(messages []*belay.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(string(m.Kind))
		if m.StopReason != "" && m.StopReason != belay.StopToolUse {
			fmt.Fprintf(&b, " (%s)", m.StopReason)
		}
		if m.IsSkillInjection {
			b.WriteString(" (of a skill)")
		}
		b.WriteString("\n")
		if m.PreModifiedText != nil {
			paragraph(&b, "typed: "+*m.PreModifiedText)
		}
		if m.Kind == belay.KindReminder {
			for _, text := range reminders(m) {
				paragraph(&b, text)
			}
			continue
		}
		for i := range m.Parts {
			paragraph(&b, renderPart(&m.Parts[i]))
		}
	}
	return b.String()
}

func renderPart(p *belay.Part) string {
	switch {
	case p.Call != nil:
		text := fmt.Sprintf("%s: %s %s", p.Call.ID, p.Call.Tool, p.Call.Input)
		if p.Call.Malformed != "" {
			text += fmt.Sprintf(" (malformed: %q)", p.Call.Malformed)
		}
		if len(p.Call.RewrittenBy) > 0 {
			text += fmt.Sprintf("\nrewritten by %s: %s", strings.Join(p.Call.RewrittenBy, ", "), p.Call.Final)
		}
		return text
	case p.Result != nil:
		class := ""
		if p.Result.IsError {
			class = fmt.Sprintf(" failed (%s)", p.Result.Class)
		}
		return fmt.Sprintf("%s: %s%s: %s", p.Result.Call, p.Result.Tool, class, p.Result.Text)
	case p.Media != nil:
		return fmt.Sprintf("[%s, %d bytes]", p.Media.MIME, len(p.Media.Data))
	case p.Type == belay.PartThinking:
		return "thinking: " + p.Text
	default:
		return p.Text
	}
}

// paragraph writes text. It indents the first line by two spaces and each further line by
// four.
func paragraph(b *strings.Builder, text string) {
	first, rest, more := strings.Cut(strings.TrimRight(text, "\n"), "\n")
	b.WriteString(strings.TrimRight("  "+first, " ") + "\n")
	if !more {
		return
	}
	for line := range strings.SplitSeq(rest, "\n") {
		b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
	}
}

// updateVariable is the environment variable that makes Golden write files. It is not a
// flag, because flags of this package would become flags of every program that imports it.
const updateVariable = "BELAYTEST_UPDATE"

// golden compares text with a file. If updateVariable is set to 1, it writes the file
// instead.
func golden(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv(updateVariable) == "1" {
		if err := writeFile(path, got); err != nil {
			t.Fatalf("belaytest: the golden file cannot be written: %v", err)
		}
		return
	}
	stored, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("belaytest: there is no golden file %s yet: run the test once with %s=1, check the file, and commit it:\n%s", path, updateVariable, got)
		return
	}
	if err != nil {
		t.Fatalf("belaytest: the golden file cannot be read: %v", err)
		return
	}
	want := strings.ReplaceAll(string(stored), "\r\n", "\n") // Git may have converted the line ends
	if want != got {
		t.Errorf("the transcript differs from %s%s\nIf the change is intended, accept it by running the test with %s=1. It is now:\n%s",
			path, firstDifference(want, got), updateVariable, got)
	}
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// firstDifference describes the first line in which two texts differ.
func firstDifference(want, got string) string {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(wants), len(gots)) {
		w, g := lineAt(wants, i), lineAt(gots, i)
		if w != g {
			return fmt.Sprintf(", from line %d on:\n- %s\n+ %s", i+1, w, g)
		}
	}
	return ""
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
