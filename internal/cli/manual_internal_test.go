package cli

import (
	"bytes"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Every command that the help shows has a man page with its flags and examples. The files depend on nothing but the commands.
//
// SPEC Q-01
func TestManual(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	files, err := Manual("1.2.3", date)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Manual("1.2.3", date)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if !bytes.Equal(text, again[name]) {
			t.Errorf("%s differs the second time", name)
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		page := string(files["man/"+pageName(cmd)+".1"])
		if !strings.Contains(page, ".TH "+roff(strings.ToUpper(pageName(cmd)))+` 1 2026-01-02 "belay 1.2.3"`) {
			t.Errorf("%s has no man page with its title:\n%.200s", cmd.CommandPath(), page)
		}
		if cmd.Example != "" && !strings.Contains(page, ".SH EXAMPLES") {
			t.Errorf("the man page of %s has no examples", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newApp().root())
	for _, name := range []string{"belay.bash", "_belay", "belay.fish", "belay.ps1"} {
		if !bytes.Contains(files["completions/"+name], []byte("belay")) {
			t.Errorf("completions/%s is not a completion script", name)
		}
	}
	if page := string(files["man/belay-run.1"]); !strings.Contains(page, `\fB\-\-model\fR`) || !strings.Contains(page, `\fB\-\-store\fR`) {
		t.Errorf("the man page of belay run lacks flags:\n%s", page)
	}
	man, err := exec.LookPath("man")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatalf("run make manual: %v", err)
	}
	if err != nil {
		t.Skip("no man on this machine: the pages are not rendered")
	}
	var all bytes.Buffer // one call, because a call takes a tenth of a second
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, "man/") {
			all.Write(files[name])
		}
	}
	cmd := exec.CommandContext(t.Context(), man, "--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-")
	cmd.Stdin = &all
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		t.Errorf("man cannot read the pages: %v %s", err, complaints.String())
	}
}

func TestStamp(t *testing.T) { //nolint:paralleltest // the stamp is a variable of the package
	defer func(old string) { stamp = old }(stamp)
	stamp = "v1.2.3 0123456789abcdef 2026-01-02T03:04:05Z"
	if b := thisBuild(); b.Version != "v1.2.3" || b.Commit != "0123456789ab" || b.Time != "2026-01-02T03:04:05Z" || b.Modified {
		t.Errorf("a stamped build is %+v", b)
	}
}
