package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// try installs the program for this machine from its archive into an empty directory, as the install script does, and uses it:
// the version, the tour, a session that is stored and shown, and the removal of all that.
func (r *release) try(ctx context.Context) error {
	here := platform{runtime.GOOS, runtime.GOARCH}
	if here.system == "windows" || !slices.Contains(r.platforms, here) {
		fmt.Fprintf(r.log, "not tried: there is no archive for %s\n", here)
		return nil
	}
	dir, err := os.MkdirTemp("", "belay-try-")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	home, project := filepath.Join(dir, "home"), filepath.Join(dir, "project")
	temp, sockets := filepath.Join(dir, "temp"), filepath.Join(dir, "sockets")
	for _, d := range []string{home, project, temp, sockets} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	script := "steps:\n- calls: [{tool: shell, input: {command: ls}}]\n- text: I listed the files.\n"
	if err := os.WriteFile(filepath.Join(project, "try.yaml"), []byte(script), 0o644); err != nil {
		return err
	}
	belay := filepath.Join(home, ".local", "bin", "belay")
	// The steps write to a store and remove it. So nothing of the environment here reaches them, and the settings of this machine
	// cannot name another store.
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temp, "XDG_RUNTIME_DIR=" + sockets,
		"BELAY_STORE=" + filepath.Join(project, ".belay", "belay.db"), "BELAY_MEMORY_FILE=" + filepath.Join(home, "memory.db"),
		"INSTALL_FROM=" + out, "PREFIX=" + filepath.Join(home, ".local"),
	}
	for _, step := range []struct {
		want string
		argv []string
	}{
		{"belay " + r.tag() + " " + r.commit[:12], []string{"sh", filepath.Join(out, "install.sh")}},
		{"== Timeline: ", []string{belay, "demo"}},
		{"I listed the files.", []string{belay, "run", "--model", "scripted/try.yaml", "--mode", "build", "What is here?"}},
		{"What is here?", []string{belay, "show"}},
		{"program  " + belay, []string{belay, "uninstall", "--yes"}},
	} {
		text, err := execute(ctx, project, env, step.argv[0], step.argv[1:]...)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), step.want) {
			return fmt.Errorf("%s does not print %q:\n%s", strings.Join(step.argv, " "), step.want, text)
		}
	}
	left, err := filesIn(dir)
	if err != nil {
		return err
	}
	if !slices.Equal(left, []string{filepath.Join(project, "try.yaml")}) {
		return fmt.Errorf("belay uninstall leaves %q", left)
	}
	fmt.Fprintf(r.log, "installed %s from its archive: the version, the tour and a session are right, and uninstall leaves nothing\n", here)
	return nil
}

// filesIn returns the files in a directory and below it.
func filesIn(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}
