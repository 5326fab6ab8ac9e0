package assembly

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs git in the project, outside the sandbox.
func (r *room) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", r.floor.settings.Project, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("git %v: %v: %s", args, err, out)
	}
}

// The user's next git status does not run files that a confined command left behind.
//
// SPEC P-06, P-12
func TestGitDoesNotRunWhatACommandLeft(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, script, held string }{
		{
			"settings in another place", `mkdir evil; cp -r .git/objects .git/refs evil/
printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch PWNED;false"\n' > evil/config
echo ../evil > .git/commondir`, ".git/commondir",
		},
		{
			"a repository inside, which the index knows", `git init -q sub && git -C sub -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m x
git add sub && git -C sub config core.fsmonitor 'touch PWNED;false'`, "sub/.git",
		},
		{
			"settings of a repository that is there", `git -C old config core.fsmonitor 'touch PWNED;false'; true`, "",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			mark := filepath.Join(outside(t), "pwned")
			r := newRoom(t, "", map[string]string{"x.sh": "#!/bin/sh\n" + strings.ReplaceAll(test.script, "PWNED", mark) + "\n", "a.txt": "a", "old/b.txt": "b"}).sandboxed()
			r.git(t, "init", "-q")
			r.git(t, "-C", "old", "init", "-q")
			r.git(t, "-C", "old", "add", "b.txt")
			r.git(t, "-C", "old", "commit", "-qm", "b")
			r.git(t, "add", "a.txt", "old")
			r.git(t, "commit", "-qm", "a")
			_, result := r.run("./x.sh")
			if test.held != "" && !strings.Contains(result.Text, test.held+" now ends in") {
				t.Errorf("the model is told %q", result.Text)
			}
			r.git(t, "status", "-s")
			if _, err := os.Stat(mark); err == nil {
				t.Error("the user's git ran what the command left")
			}
		})
	}
}

func TestGitlinks(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3", "4"} {
		r := newRoom(t, "", map[string]string{"a.txt": "a", "dir/b.txt": "b", "dir/sub/c.txt": "c", "dir/sub2/d.txt": "d", "z.txt": "z"})
		r.git(t, "init", "-q")
		for _, sub := range []string{"dir/sub", "dir/sub2"} {
			r.git(t, "-C", sub, "init", "-q")
			r.git(t, "-C", sub, "commit", "-q", "--allow-empty", "-m", "x")
		}
		r.git(t, "add", "a.txt", "dir/b.txt", "dir/sub", "dir/sub2", "z.txt")
		r.git(t, "add", "-N", "x.sh")
		r.git(t, "update-index", "--index-version", version)
		got := gitlinks(filepath.Join(r.floor.settings.Project, ".git", "index"))
		if want := []string{"dir/sub", "dir/sub2"}; !slices.Equal(got, want) {
			t.Errorf("version %s: the index has the repositories %q, want %q", version, got, want)
		}
	}
}
