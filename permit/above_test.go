package permit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// Moving or removing a directory also moves or removes everything in it. So a command on
// a directory is judged as if it named each path below: a protected path, the home
// directory or the project.
//
// SPEC P-06
func TestDirectoriesAboveWhatIsProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.home = filepath.Join(w.outside, "people", "me") // directories above it do not contain the project
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tools/space/hooks/a.yaml", "tools/other/x", "toolset/x", "deep/a/b/.belay/x", "docs/x", "build/out/x"} {
		w.write(t, name, "x")
	}
	w.link(t, "shortcut", "tools")
	f := w.floor(t, permit.Options{Mode: permit.Permissive, Sandboxed: true, Protect: []string{
		filepath.Join(w.project, "tools", "space"), filepath.Join(w.home, ".config", "belay", "deep", "belay.yaml"),
	}})
	const self, never, asks = "protection self.files", "zone 6", "protection destructive.files"
	for _, c := range []struct {
		command string
		want    belay.ToolDecision
		by      string
	}{
		// Directories above a protected directory of the project.
		{`mv tools old`, belay.ToolDeny, self},
		{`mv ./tools/ old`, belay.ToolDeny, self},
		{`mv -t docs tools`, belay.ToolDeny, self},
		{`mv tools/space old`, belay.ToolDeny, self},
		{`mv docs/../tools old`, belay.ToolDeny, self},
		{`cd docs && mv ../tools ../old`, belay.ToolDeny, self},
		{`d=tools; mv "$d" old`, belay.ToolDeny, self},
		{`mv tool[s] old`, belay.ToolDeny, self},
		{`mv t* old`, belay.ToolDeny, self},
		{`git mv tools old`, belay.ToolDeny, self},
		{`git rm -r tools`, belay.ToolDeny, self},
		{`rm -rf tools`, belay.ToolDeny, self},
		{`rm -rf shortcut/`, belay.ToolDeny, self},
		{`rm -rf *`, belay.ToolDeny, self},
		{`find tools -delete`, belay.ToolDeny, self},
		{`find tools -exec rm -rf {} +`, belay.ToolDeny, self},
		{`chmod -R 700 tools`, belay.ToolDeny, self},
		{`chown -R nobody tools`, belay.ToolDeny, self},
		{`shred -u tools/space/hooks/a.yaml`, belay.ToolDeny, self},
		{`rename tools old tools`, belay.ToolDeny, self},
		{`tar cf x.tar --remove-files tools`, belay.ToolDeny, self},
		{`rsync -a --remove-source-files tools docs`, belay.ToolDeny, self},
		// Paths that control Belay, anywhere.
		{`rm -rf deep/a/b/.belay`, belay.ToolDeny, self},
		{`rm -rf ` + w.home + `/.config/belay/deep`, belay.ToolDeny, self},
		{`mv ` + w.home + `/.config/belay ` + w.home + `/x`, belay.ToolDeny, self},
		// Directories above the home directory or above the project are zone 6.
		{`rm -rf ` + w.home, belay.ToolDeny, never},
		{`rm -rf ` + filepath.Dir(w.home), belay.ToolDeny, never},
		{`mv ` + filepath.Dir(w.home) + ` /x`, belay.ToolDeny, never},
		{`chmod -R 777 ` + filepath.Dir(w.home), belay.ToolDeny, never},
		{`rm -rf ../../*`, belay.ToolDeny, never},
		{`rm -rf ..`, belay.ToolDeny, never},
		{`rm -rf ` + w.outside, belay.ToolDeny, never},
		{`rm -rf ` + w.outside + `/*`, belay.ToolDeny, never},
		{`mv ../../work x`, belay.ToolDeny, never},
		{`cd / && rm -rf .` + filepath.Dir(w.project), belay.ToolDeny, never},
		// Not denied: changes to other directories (next to a protected one, or with a similar
		// name) and to the link itself, and commands that only read tools.
		{`mv toolset old`, belay.ToolPass, ""},
		{`mv tools/other old`, belay.ToolPass, ""},
		{`git mv docs guide`, belay.ToolPass, ""},
		{`mv shortcut s`, belay.ToolPass, ""},
		{`rm shortcut`, belay.ToolPass, ""},
		{`chmod -R 700 docs`, belay.ToolPass, ""},
		{`chmod 700 tools/other/x`, belay.ToolPass, ""},
		{`cp -r tools copy`, belay.ToolPass, ""},
		{`mv build/out build/old`, belay.ToolPass, ""},
		{`tar cf x.tar tools`, belay.ToolPass, ""},
		{`ls -R tools; find tools -name x; grep -r x tools`, belay.ToolPass, ""},
		{`rm -rf tools/other`, belay.ToolAsk, asks},
		{`rm -rf build`, belay.ToolAsk, asks},
		{`rm -rf toolset`, belay.ToolAsk, asks},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			expect(t, shell(t, f, c.command), c.want, c.by)
		})
	}
	if _, err := os.Stat(filepath.Join(w.project, "tools", "space")); err != nil {
		t.Errorf("judging must touch nothing: %v", err)
	}
}
