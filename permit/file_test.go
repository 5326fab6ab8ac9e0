package permit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// SPEC P-06
func TestFileToolsStayInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link(t, "out", w.outside)
	w.link(t, "around", filepath.Join(w.project, "src"))
	w.link(t, "loop", "loop")
	w.link(t, "src/up", "../..")
	w.link(t, "dangling", filepath.Join(w.outside, "new"))
	w.link(t, "proc", "/proc/self/root")
	floor := w.floor(t, permit.Options{Roots: []string{w.temp}})
	for _, c := range []struct {
		rule, path string
		want       belay.ToolDecision
	}{
		{"a file of the project", "src/a.go", belay.ToolPass},
		{"a file that is not there yet", "new/deep/file.txt", belay.ToolPass},
		{"its absolute name", filepath.Join(w.project, "src", "a.go"), belay.ToolPass},
		{"a link inside", "around/a.go", belay.ToolPass},
		{"an extra root", filepath.Join(w.temp, "x"), belay.ToolPass},
		{".. that stays inside", "src/../src/a.go", belay.ToolPass},
		{"a name with dots", "..a/b..c", belay.ToolPass},
		{"..", "../x", belay.ToolDeny},
		{".. behind a link", "around/../../x", belay.ToolDeny},
		{"a link out", "out/x", belay.ToolDeny},
		{"a link out to what is not there", "dangling", belay.ToolDeny},
		{"a link up", "src/up/x", belay.ToolDeny},
		{"a link in a circle", "loop/x", belay.ToolDeny},
		{"an absolute path", "/etc/passwd", belay.ToolDeny},
		{"the parent by its absolute name", filepath.Dir(w.project), belay.ToolDeny},
		{"a neighbour whose name begins alike", w.project + "-old/x", belay.ToolDeny},
		{"the root of the process", "/proc/self/root/" + w.project + "/src/a.go", belay.ToolDeny},
		{"a link to the root of the process", "proc/etc/passwd", belay.ToolDeny},
		{"a zero byte", "src/a.go\x00/etc/passwd", belay.ToolDeny},
		{"home", "~/x", belay.ToolDeny}, // many tools replace ~ with the home directory
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for _, tool := range []string{"read", "list", "write", "edit"} {
				by := ""
				if c.want == belay.ToolDeny {
					by = "protection files.outside"
					if tool == "write" || tool == "edit" {
						by = "protection "
					}
				}
				expect(t, file(t, floor, tool, c.path), c.want, by)
			}
		})
	}
}

// A root that is added later counts at once, in every mode of the floor.
//
// SPEC U-02
func TestAddRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{})
	strict := floor.In(permit.Strict)
	name := filepath.Join(w.temp, "x")
	expect(t, file(t, floor, "read", name), belay.ToolDeny, "protection files.outside")
	for _, wrong := range []string{"temp", filepath.Join(w.temp, "nothing")} {
		if err := floor.AddRoot(wrong); err == nil {
			t.Errorf("the root %s is accepted", wrong)
		}
	}
	if err := floor.AddRoot(w.temp); err != nil {
		t.Fatal(err)
	}
	expect(t, file(t, floor, "write", name), belay.ToolPass, "")
	expect(t, file(t, strict, "read", name), belay.ToolPass, "")
	if got := file(t, strict, "write", name).Decision; got != belay.ToolAsk {
		t.Errorf("strict mode says %q about a change", got)
	}
}

// SPEC P-06
func TestWhatSteersBelayIsNotChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link(t, "innocent", ".git/hooks")
	w.link(t, "doc.txt", "belay.yaml")
	w.write(t, "space/hooks/gate.yaml", "")
	floor := w.floor(t, permit.Options{Sandboxed: true, Mode: permit.Permissive, Rules: rules(t, "allow *"), Protect: []string{filepath.Join(w.project, "space")}})
	for path, by := range map[string]string{
		".git/hooks/pre-commit": "protection self.git", ".git/config": "protection self.git", "sub/.git/hooks/x": "protection self.git",
		"innocent/x": "protection self.git", ".GIT/Config": "protection self.git", ".git./config": "protection self.git",
		".g\u200cit/config": "protection self.git", "GIT~1/config": "protection self.git", ".git/modules/a/hooks/x": "protection self.git",
		"belay.yaml": "protection self.files", "doc.txt": "protection self.files", "sub/Belay.YAML": "protection self.files",
		".belay/belay.db": "protection self.files", ".claude/settings.json": "protection self.files", "space/hooks/gate.yaml": "protection self.files",
		"ｂelay.yaml": "protection self.files",
	} {
		for _, tool := range []string{"write", "edit"} {
			expect(t, file(t, floor, tool, path), belay.ToolDeny, by)
		}
		expect(t, shell(t, floor, "echo x > '"+path+"'"), belay.ToolDeny, by)
		expect(t, file(t, floor, "read", path), belay.ToolPass, "")
	}
	for _, path := range []string{".gitignore", ".github/workflows/ci.yml", "docs/belay.yaml.md", "git/config", "config", "hooks/x", ".git/COMMIT_EDITMSG", "claude/x"} {
		expect(t, file(t, floor, "write", path), belay.ToolPass, "")
		expect(t, shell(t, floor, "echo x > '"+path+"'"), belay.ToolPass, "")
	}
}

// SPEC P-06
func TestProtectionsAreRelaxedByID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relaxed := w.floor(t, permit.Options{Sandboxed: true, Relax: []string{"self.git", "files.outside"}, Rules: rules(t, "allow write", "allow read")})
	expect(t, file(t, relaxed, "write", ".git/config"), belay.ToolPass, "")
	expect(t, file(t, relaxed, "read", filepath.Join(w.outside, "x")), belay.ToolPass, "")
	expect(t, file(t, relaxed, "write", "belay.yaml"), belay.ToolDeny, "protection self.files")
	own := w.floor(t, permit.Options{Sandboxed: true, Relax: []string{"self.files", "system.write"}})
	expect(t, file(t, own, "write", filepath.Join(w.home, ".claude", "x")), belay.ToolDeny, "protection files.outside")
	expect(t, file(t, own, "write", "/etc/passwd"), belay.ToolDeny, "protection files.outside")
	expect(t, shell(t, own, "echo x > /etc/passwd"), belay.ToolAsk, "protection shell.outside")
	if got := relaxed.Relaxed(); len(got) != 2 {
		t.Errorf("relaxed: %v", got)
	}
	if _, err := permit.New(w.project, &permit.Options{Relax: []string{"self.gti"}}); err == nil {
		t.Error("a protection that is none was relaxed")
	}
}

func TestTheProjectMustBeADirectory(t *testing.T) {
	t.Parallel()
	if _, err := permit.New(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("there is no such directory")
	}
	if floor, err := permit.New(t.TempDir(), nil); err != nil || floor.Mode() != permit.Standard {
		t.Errorf("%v %v", floor, err)
	}
}

// A link to a project leads to the same project.
func TestAProjectBehindALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alias := filepath.Join(w.outside, "alias")
	if err := os.Symlink(w.project, alias); err != nil {
		t.Fatal(err)
	}
	floor, err := permit.New(alias, &permit.Options{Home: w.home, Temp: w.temp})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, file(t, floor, "read", filepath.Join(alias, "src", "a.go")), belay.ToolPass, "")
	expect(t, file(t, floor, "read", filepath.Join(w.project, "src", "a.go")), belay.ToolPass, "")
	expect(t, file(t, floor, "read", "src/a.go"), belay.ToolPass, "")
}

// SPEC P-03, P-07
func TestToolsThatNobodyDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true, Tools: map[string]permit.Profile{
		"notes__*": {Zone: permit.ZoneWorkspace}, "notes__wipe": {Zone: permit.ZoneExternal}, "fetch": {Zone: permit.ZoneNetwork, URLs: []string{"url"}},
		"save": {Zone: permit.ZoneWorkspace, Writes: []string{"files"}}, "run": {Command: "line"},
	}})
	explain := func(tool string, fields map[string]any) *permit.Explanation {
		return floor.Explain(t.Context(), tool, input(t, fields))
	}
	if e := explain("anything", nil); e.Decision != belay.ToolAsk || e.Zone != permit.ZoneMachine {
		t.Error(e)
	}
	expect(t, explain("anything", map[string]any{"file": ".git/hooks/pre-commit"}), belay.ToolDeny, "protection self.git")
	expect(t, explain("anything", map[string]any{"target": []string{"a", "belay.yaml"}}), belay.ToolDeny, "protection self.files")
	expect(t, explain("anything", map[string]any{"cmd": "rm -rf /"}), belay.ToolDeny, "zone 6")
	expect(t, explain("anything", map[string]any{"endpoint": "http://169.254.169.254/latest"}), belay.ToolDeny, "protection net.metadata")
	expect(t, explain("anything", map[string]any{"text": "see .git/config and belay.yaml"}), belay.ToolAsk, "zone")
	expect(t, explain("notes__add", map[string]any{"text": "belay.yaml"}), belay.ToolPass, "")
	expect(t, explain("notes__wipe", nil), belay.ToolAsk, "zone")
	expect(t, explain("save", map[string]any{"files": []string{"a", "../b"}}), belay.ToolDeny, "protection files.outside")
	expect(t, explain("save", map[string]any{"Files": "../b"}), belay.ToolDeny, "protection files.outside")
	expect(t, explain("run", map[string]any{"line": "rm -rf /"}), belay.ToolDeny, "zone 6")
	expect(t, explain("run", nil), belay.ToolAsk, "zone")
	if e := explain("fetch", map[string]any{"url": "https://example.com/"}); e.Zone != permit.ZoneNetwork {
		t.Error(e)
	}
}

// Nobody knows what a program does with an argument. Perhaps the program only reads a
// path of the system, so the floor asks and does not deny.
func TestPathsGivenToProgramsAreAskedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true, Mode: permit.Build})
	expect(t, shell(t, floor, "./report /etc/passwd"), belay.ToolAsk, "protection shell.outside")
	expect(t, shell(t, floor, "nosuchprogram --in=/dev/sda"), belay.ToolAsk, "protection shell.outside")
	expect(t, shell(t, floor, "./report .git/config"), belay.ToolDeny, "protection self.git")
}

// SPEC P-03
func TestAnInputWithTwoReadings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Rules: rules(t, "allow *")})
	for _, in := range []string{
		`{"path":"src/a.go","path":"/etc/passwd"}`, `{"path":"src/a.go","Path":"/etc/passwd"}`, `{"path":"src/a.go","p\u0061th":"x"}`,
		`{"path":"a"} {"path":"b"}`, `{"path":`, `{"path" "a"}`, `nonsense`,
	} {
		expect(t, floor.Explain(t.Context(), "read", []byte(in)), belay.ToolDeny, "protection input.ambiguous")
	}
	expect(t, floor.Explain(t.Context(), "read", []byte(" { \"path\" : \"src\\u002fa.go\" , \"limit\": [1, {\"a\": \"}\"}] } ")), belay.ToolPass, "")
}
