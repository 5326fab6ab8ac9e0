//go:build unix

package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// After a failed commit the turn is still open in the store. The advice is a command that
// resumes the turn and does not abort it.
//
// SPEC L-14
func TestAdviceAfterAFailedCommit(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": listsOnce})
	home := filepath.Join(d.dir, ".belay")
	var once sync.Once
	d.hooks = []hook.Subscription{belay.ToolPost.On("away", func(context.Context, belay.ToolResult) (_ belay.ToolReaction, err error) {
		once.Do(func() { err = os.Rename(home, home+"-away") })
		return belay.ToolReaction{}, err
	}, nil)}
	if code := d.run("run", d.model(), "a task"); code != exitFailed {
		t.Fatalf("exit code %d: %s", code, &d.err)
	}
	told := d.err.String()
	contains(t, told, "the file was removed or replaced", "put its files back")
	advice := regexp.MustCompile(`resume it: belay (resume \S+)`).FindStringSubmatch(told)
	if advice == nil || strings.Contains(told, "belay run --session") {
		t.Fatalf("it says:\n%s", told)
	}
	if err := os.Rename(home+"-away", home); err != nil {
		t.Fatal(err)
	}
	d.must(strings.Fields(advice[1])...)
	contains(t, d.out.String(), "Done.")
	if strings.Contains(d.err.String(), "aborted") {
		t.Errorf("the turn was given up:\n%s", &d.err)
	}
}

// If the start of the turn was not stored, Belay does not advise to resume the turn.
//
// SPEC L-14
func TestAdviceWhenNothingWasStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": listsOnce})
	home := filepath.Join(d.dir, ".belay")
	d.hooks = []hook.Subscription{belay.UserPromptSubmit.On("away", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
		return belay.PromptVerdict{}, os.Rename(home, home+"-away")
	}, nil)}
	if code := d.run("run", d.model(), "a task"); code != exitFailed {
		t.Fatalf("exit code %d: %s", code, &d.err)
	}
	if told := d.err.String(); strings.Contains(told, "belay run --session") || strings.Contains(told, "belay resume") {
		t.Errorf("it says:\n%s", told)
	}
}

// Commands that only read also work with a damaged store.
//
// SPEC L-14
func TestLookingAtADamagedStore(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "steps: [{text: hello}]\n"})
	d.must("run", d.model(), "--as", "mine", "a task")
	file := filepath.Join(d.dir, ".belay", "belay.db")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[39]++ // a wrong number of free pages
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := d.run("run", d.model(), "a task"); code != exitFailed {
		t.Errorf("exit code %d: it works with a damaged store", code)
	}
	contains(t, d.err.String(), "the file is damaged", "belay store check", "restore a backup")
	for _, command := range [][]string{{"sessions"}, {"show", "mine"}, {"store", "export", "mine"}} {
		d.must(command...)
		contains(t, d.out.String(), "mine")
		contains(t, d.err.String(), "the store was opened read-only", "damaged")
	}
	if code := d.run("store", "vacuum"); code != exitFailed {
		t.Errorf("exit code %d: %s", code, &d.err)
	}
	contains(t, d.err.String(), "read-only")
}
