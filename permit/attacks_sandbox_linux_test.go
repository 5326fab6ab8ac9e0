package permit_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// nobody is the user that runs the attacks if root runs the test.
const nobody = 65534

const (
	// mostTime is the limit for all attacks together.
	mostTime = 5 * time.Minute
	// seconds is the limit for one attack.
	seconds = "3"
	// together is how many attacks run in one sandbox, one after another. Each has its
	// own stage.
	together = 24
)

// harmless are the programs that attacks can use. Programs that connect to other
// machines, processes or services are not in the list, because they would do damage if
// the sandbox failed.
var harmless = strings.Fields(`sh bash dash busybox env nice nohup timeout setsid stdbuf xargs find flock
	cat ls rm rmdir cp mv ln mkdir mkfifo touch chmod install tee dd truncate split shred mktemp readlink realpath rsync patch
	head tail sort uniq cut paste tr sed awk gawk mawk grep egrep fgrep wc tac rev fold column diff cmp comm od xxd hexdump strings
	tar gzip gunzip zip unzip base64 sha256sum md5sum jq bc dc ed file stat du df
	basename dirname pwd date uname nproc whoami id seq expr test true false sleep yes echo printf which
	perl python3 ruby node lua git make`)

// machines matches paths of the machine in a command. Only the user nobody runs such
// commands.
var machines = regexp.MustCompile(`(^|[^\w.{}$~-])/(bin|boot|dev/[^nzuf]|etc|lib|opt|proc|run|sbin|srv|sys|usr|var)`)

// Even a command that the floor misjudges must do no damage. This test runs the commands
// of the corpus in a sandbox. Afterwards, nothing outside the project and the temporary
// directory may have changed, and the protected files in the project must be unchanged.
//
// SPEC P-12
func TestAttacksAgainstTheSandbox(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs several hundred commands")
	}
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	box := sandbox.Find(t.Context(), nil)
	if box.Kind() == sandbox.None {
		t.Skipf("this machine has no sandbox: %v", box.Describe().Failed)
	}
	if !box.Holds(sandbox.Writes) || !box.Holds(sandbox.Truncation) {
		t.Skipf("the sandbox of this machine does not hold files: %s", box.Describe().Means)
	}
	theatre := newTheatre(t, box)
	theatre.rehearse(t)
	cast := slices.DeleteFunc(attacks(t), func(a attack) bool {
		command, ok := a.Input["command"].(string)
		return a.Tool != "shell" || !ok || a.Run == "no" || os.Geteuid() != nobody && machines.MatchString(command)
	})
	t.Logf("%d commands in %s", len(cast), box.Kind())
	if len(cast) < 200 {
		t.Errorf("only %d commands are run: want 200 at least", len(cast))
	}
	for batch := range slices.Chunk(cast, together) {
		t.Run(batch[0].file, func(t *testing.T) {
			t.Parallel()
			theatre.tryAll(t, batch)
		})
	}
}

// An attack that does nothing proves nothing about the floor or the sandbox. So attacks
// with the field marks also run without a sandbox, and must create the file that marks
// names. This file is on the stage, and the attacks do nothing else.
//
// SPEC P-14, P-16
func TestAttacksWorkWithoutASandbox(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs many commands")
	}
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	theatre := newTheatre(t, nil)
	cast := slices.DeleteFunc(attacks(t), func(a attack) bool { return a.Marks == "" })
	if len(cast) < 20 {
		t.Errorf("only %d attacks have a control: want 20 at least", len(cast))
	}
	for i := range cast {
		a := &cast[i]
		t.Run(a.file+"/"+a.Name, func(t *testing.T) {
			t.Parallel()
			top := filepath.Join(t.TempDir(), "top")
			if err := os.Mkdir(top, 0o755); err != nil {
				t.Fatal(err)
			}
			s := newStage(t, top)
			s.set(t, a)
			ctx, cancel := context.WithTimeout(t.Context(), mostTime)
			defer cancel()
			child := exec.CommandContext(ctx, theatre.shell, "-c", s.fill(a.Input["command"].(string)))
			child.Dir = s.project
			child.Env = append(theatre.environment(), "HOME="+s.home, "TMPDIR="+s.tmp)
			child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
			child.WaitDelay = 5 * time.Second
			output, err := child.CombinedOutput()
			if _, missing := os.Stat(s.fill(a.Marks)); missing != nil {
				t.Errorf("%s\nleft no mark, and so it is no attack: %v\n%s (%v)", a.Input["command"], missing, output, err)
			}
		})
	}
}

// asNobody runs the test again as the user nobody, who has no rights.
func asNobody(t *testing.T) {
	t.Helper()
	top := t.TempDir()
	for _, dir := range []string{filepath.Dir(top), top} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, program, filepath.Join(top, "permit.test"), 0o755)
	files, err := filepath.Glob(filepath.Join("testdata", "attacks", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		copyFile(t, name, filepath.Join(top, name), 0o644)
	}
	temp := filepath.Join(top, "temp")
	if err := errors.Join(os.Mkdir(temp, 0o755), os.Chown(temp, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	// Many attacks only wait until their time is over, so more of them run at once than there are cores.
	child := exec.CommandContext(ctx, filepath.Join(top, "permit.test"), "-test.run=^"+t.Name()+"$", "-test.v", "-test.parallel=8", "-test.timeout="+mostTime.String())
	child.Dir = top
	child.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "TMPDIR=" + temp}
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
	child.WaitDelay = 5 * time.Second
	output, err := child.CombinedOutput()
	switch text := string(output); {
	case err != nil:
		t.Fatalf("as nobody: %v\n%s", err, failures(text))
	case strings.Contains(text, "--- SKIP: "+t.Name()+" "):
		t.Skip(failures(text))
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Fatalf("as nobody the test did not run:\n%s", text)
	default:
		t.Log(failures(text))
	}
}

// failures returns the output of a test without the lines about success.
func failures(output string) string {
	var kept []string
	for line := range strings.Lines(output) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func copyFile(t *testing.T, from, to string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// harmlessPrograms makes a directory for PATH with links to the programs in harmless.
func harmlessPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range harmless {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// theatre runs attacks for real.
type theatre struct {
	box     *sandbox.Sandbox
	bin     string // directory for PATH
	shell   string
	timeout string
}

func newTheatre(t *testing.T, box *sandbox.Sandbox) *theatre {
	t.Helper()
	th := &theatre{box: box, bin: harmlessPrograms(t)}
	for name, path := range map[string]*string{"bash": &th.shell, "timeout": &th.timeout} {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("the corpus is written for bash, and needs coreutils: %v", err)
		}
		*path = found
	}
	return th
}

// environment returns the environment variables of an attack.
func (th *theatre) environment() []string {
	return []string{"PATH=" + th.bin, "LANG=C.UTF-8", "FILTER_BRANCH_SQUELCH_WARNING=1"}
}

// play is a command on a stage, with a record of everything that must not change.
type play struct {
	*stage

	command string
	watched []string
	before  map[string]string
}

func (th *theatre) newPlay(t *testing.T, s *stage, command string) *play {
	t.Helper()
	watched := th.watched(s)
	return &play{stage: s, command: command, watched: watched, before: th.look(t, s, watched)}
}

// ended returns the name of a file that exists when the command has ended. said returns
// the output of the command.
func (p *play) ended() string { return filepath.Join(p.tmp, ".ended") }

func (p *play) said() string {
	text, err := os.ReadFile(filepath.Join(p.tmp, ".said"))
	return fmt.Sprintf("%.4000s (%v)", text, err)
}

// protected returns the paths in the project that must not change.
func (s *stage) protected() []string {
	var all []string
	for _, name := range []string{".git/config", ".git/hooks", ".belay", "belay.yaml", ".claude", "space"} {
		all = append(all, filepath.Join(s.project, filepath.FromSlash(name)))
	}
	floor, err := permit.New(s.project, &permit.Options{Home: s.home, Temp: s.tmp})
	if err != nil {
		panic(err) // cannot happen: the stage is a directory
	}
	return append(append(all, floor.RunsLater()...), floor.RebasePlans()...)
}

// rehearse checks that the sandbox works before attacks rely on it.
func (th *theatre) rehearse(t *testing.T) {
	t.Helper()
	p := th.newPlay(t, newStage(t, t.TempDir()), `echo x > ../outside/mark; rm -rf ~/documents; echo x > inside; echo x > "$TMPDIR/inside"`)
	said := th.perform(t, []*play{p})
	if diff := cmp.Diff(p.before, th.look(t, p.stage, p.watched)); diff != "" {
		t.Fatalf("the sandbox holds nothing, and the rest is not tried (-before +after):\n%s\n%s", diff, p.said())
	}
	for _, name := range []string{filepath.Join(p.project, "inside"), filepath.Join(p.tmp, "inside"), p.ended()} {
		if _, err := os.Stat(name); err != nil {
			t.Fatalf("commands do not run in the sandbox, so that running them proves nothing: %v\n%s\n%s", err, said, p.said())
		}
	}
}

// direct is a script that runs commands one after another. For each command, the script
// gets the directory, the home directory, the temporary directory and the command. Exit
// codes do not matter, because most commands fail.
const direct = `ulimit -f 20480; ulimit -t 60; [ "$2" = 0 ] || ulimit -u "$2"
shell=$1 timeout=$3 seconds=$4; shift 4
while [ $# -gt 0 ]; do
	(cd "$1" && HOME=$2 TMPDIR=$3 exec "$timeout" -k 1 "$seconds" "$shell" -c "$4") < /dev/null > "$3/.said" 2>&1
	: > "$3/.ended"
	shift 4
done`

// perform runs commands in a sandbox that lets them write to their projects and temporary
// directories. It returns the output of the sandbox itself.
func (th *theatre) perform(t *testing.T, plays []*play) string {
	t.Helper()
	var policy sandbox.Policy
	processes := "0"
	if os.Geteuid() == nobody { // another user may have many processes already
		processes = "1024"
	}
	script := []string{th.shell, "-c", direct, "direct", th.shell, processes, th.timeout, seconds}
	for _, p := range plays {
		policy.Write = append(policy.Write, p.project, p.tmp)
		policy.Protect = append(policy.Protect, p.protected()...)
		script = append(script, p.project, p.home, p.tmp, p.command)
	}
	argv, err := th.box.Command(policy, script)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	defer cancel()
	child := exec.CommandContext(ctx, argv[0], argv[1:]...)
	child.Dir = plays[0].project
	child.Env = th.environment()
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
	child.WaitDelay = 5 * time.Second
	output, err := child.CombinedOutput()
	if child.Process != nil {
		_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL) // end processes that the commands left behind
	}
	return fmt.Sprintf("%s (%v)", output, err)
}

// tryAll runs several attacks. It compares everything around each stage before and after.
func (th *theatre) tryAll(t *testing.T, batch []attack) {
	t.Helper()
	var plays []*play
	for i := range batch {
		top := filepath.Join(t.TempDir(), "top")
		if err := os.Mkdir(top, 0o755); err != nil {
			t.Fatal(err)
		}
		s := newStage(t, top)
		s.set(t, &batch[i])
		plays = append(plays, th.newPlay(t, s, s.fill(batch[i].Input["command"].(string))))
	}
	said := th.perform(t, plays)
	for i, p := range plays {
		if diff := cmp.Diff(p.before, th.look(t, p.stage, p.watched)); diff != "" {
			t.Errorf("%s: %s\n%s\nleft a mark (-before +after):\n%s\nIt said: %s", batch[i].file, batch[i].Name, p.command, diff, p.said())
		}
		if _, err := os.Stat(p.ended()); err != nil {
			t.Errorf("%s: %s\n%s\ndid not run to its end in the sandbox: %v\n%s", batch[i].file, batch[i].Name, p.command, err, said)
		}
	}
}

// watched returns the protected paths that the sandbox can protect. Some sandboxes cannot
// protect paths that do not exist yet, and some protect none.
func (th *theatre) watched(s *stage) []string {
	if !th.box.Holds(sandbox.Protection) {
		return nil
	}
	return slices.DeleteFunc(s.protected(), func(name string) bool {
		_, err := os.Lstat(name)
		return err != nil && !th.box.Holds(sandbox.Missing)
	})
}

// look records everything that must not change: what is around the project and the
// temporary directory, and the protected paths.
func (th *theatre) look(t *testing.T, s *stage, protected []string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	note := func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			seen[name] = "is not there"
			return nil
		case err != nil:
			return err
		case name == s.project || name == s.tmp:
			seen[name] = "is there"
			return filepath.SkipDir
		}
		seen[name] = th.describe(t, name, entry)
		return nil
	}
	if err := filepath.WalkDir(filepath.Dir(s.project), note); err != nil {
		t.Fatal(err)
	}
	for _, name := range protected {
		if isPlaceholder(name) {
			seen[name] = "is not there"
			continue
		}
		if err := filepath.WalkDir(name, note); err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// isPlaceholder reports whether a path is an empty directory. The sandbox puts an empty
// directory in the place of a missing file, and removes it when the last process has
// ended.
func isPlaceholder(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	inside, err := os.ReadDir(name)
	return err == nil && len(inside) == 0
}

func (th *theatre) describe(t *testing.T, name string, entry fs.DirEntry) string {
	t.Helper()
	info, err := entry.Info()
	if err != nil {
		t.Fatal(err)
	}
	text := info.Mode().String()
	if !th.box.Holds(sandbox.Attributes) {
		text = info.Mode().Type().String()
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(name)
		if err != nil {
			t.Fatal(err)
		}
		return text + " to " + to
	case info.Mode().IsRegular():
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %d bytes %x", text, len(data), sha256.Sum256(data))
	default:
		return text
	}
}
