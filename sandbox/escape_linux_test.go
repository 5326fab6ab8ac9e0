package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// escapes are ways to change something outside the writable directory. Each one first
// runs without a sandbox, to prove that it works, unless it could do harm.
var escapes = []struct {
	name   string
	limit  sandbox.Limit
	script string // shell script, run in the writable directory; "" means the attack with this name
	tame   bool   // do not try it without a sandbox
}{
	{"write to a file", sandbox.Writes, `echo bad > "$OUT/file"`, false},
	{"append to a file", sandbox.Writes, `echo bad >> "$OUT/file"`, false},
	{"make a file", sandbox.Writes, `echo bad > "$OUT/bad"`, false},
	{"make a directory", sandbox.Writes, `mkdir "$OUT/bad"`, false},
	{"make a pipe", sandbox.Writes, `mkfifo "$OUT/bad"`, false},
	{"make a symbolic link", sandbox.Writes, `ln -s /etc/passwd "$OUT/bad"`, false},
	{"remove a file", sandbox.Writes, `rm -f "$OUT/file"`, false},
	{"remove a directory", sandbox.Writes, `rmdir "$OUT/empty"`, false},
	{"remove a tree", sandbox.Writes, `rm -rf "$OUT/dir"`, false},
	{"write through ..", sandbox.Writes, `echo bad > ../out/file`, false},
	{"write through a symbolic link to a directory", sandbox.Writes, `ln -s "$OUT" link; echo bad > link/file`, false},
	{"write through a symbolic link to a file", sandbox.Writes, `ln -s "$OUT/file" link; echo bad > link`, false},
	{"write through a symbolic link with ..", sandbox.Writes, `mkdir -p a/b; ln -s ../../../out a/b/link; echo bad > a/b/link/file`, false},
	{"write through a hard link", sandbox.Writes, `ln "$OUT/file" hard && echo bad > hard`, false},
	{"move a file in", sandbox.Writes, `mv "$OUT/file" moved`, false},
	{"move a directory in", sandbox.Writes, `mv "$OUT/dir" moved`, false},
	{"move a file out", sandbox.Writes, `echo bad > mine; mv mine "$OUT/bad"`, false},
	{"move a file over another", sandbox.Writes, `echo bad > mine; mv -f mine "$OUT/file"`, false},
	{"move within", sandbox.Writes, `mv "$OUT/file" "$OUT/dir/file"`, false},
	{"write with dd", sandbox.Writes, `echo bad | dd of="$OUT/file" conv=notrunc 2>/dev/null`, false},
	{"write from a process in the background", sandbox.Writes, `(setsid sh -c 'echo bad > "$OUT/bad"; echo done > done') & while [ ! -e done ]; do sleep 0.01; done`, false},
	{"change a mode", sandbox.Attributes, `chmod 777 "$OUT/file"`, false},
	{"change the mode of a directory", sandbox.Attributes, `chmod -R 777 "$OUT"`, false},
	{"touch a file", sandbox.Attributes, `touch -d @1 "$OUT/file"`, false},

	{"open for reading and truncate", sandbox.Truncation, "", false},
	{"truncate by name", sandbox.Truncation, "", false},
	{"truncate through /proc/self/fd", sandbox.Truncation, "", false},
	{"write through /proc/self/fd", sandbox.Writes, "", false},
	{"write from an open directory", sandbox.Writes, "", false},
	{"write through /proc/self/root", sandbox.Writes, "", false},
	{"write through /proc/self/cwd", sandbox.Writes, "", false},
	{"write through the root of a process outside", sandbox.Writes, "", false},
	{"write through the working directory of a process outside", sandbox.Writes, "", false},
	{"exchange two files", sandbox.Writes, "", false},
	{"link a file that is open", sandbox.Writes, "", false},
	{"set an extended attribute", sandbox.Attributes, "", false},
	{"change times", sandbox.Attributes, "", false},
	{"change the mode of an open file", sandbox.Attributes, "", false},
	{"mount over a directory", sandbox.Writes, "", true},
	{"bind a directory", sandbox.Writes, "", true},
	{"remount the root", sandbox.Writes, "", true},
	{"unmount what is on top", sandbox.Writes, "", true},
	{"mount in namespaces of its own", sandbox.Writes, "", true},
	{"unmount in namespaces of its own", sandbox.Writes, "", true},
	{"change a mount with the new calls", sandbox.Writes, "", true},
	{"enter the namespaces of a process outside", sandbox.Writes, "", true},
}

// furnish makes files outside that attacks can try to change.
func (p *place) furnish(t testing.TB) {
	t.Helper()
	write(t, p.out+"/file", "precious\n")
	write(t, p.out+"/dir/file", "precious too\n")
	write(t, p.out+"/empty/file", "")
	if err := os.Remove(p.out + "/empty/file"); err != nil {
		t.Fatal(err)
	}
}

// strike runs an attack and returns its exit code and output. If s is nil, it uses no
// sandbox.
func (p *place) strike(t testing.TB, s *sandbox.Sandbox, name, script, target string) (code int, output string) {
	t.Helper()
	argv := []string{executable(t)}
	env := p.env(attackTask+"="+name, "TARGET="+target)
	if script != "" {
		argv, env = []string{"sh", "-c", script}, p.env()
	}
	if s == nil {
		command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		command.Dir, command.Env = p.in, env
		said, _ := command.CombinedOutput() // the exit code shows the error
		return command.ProcessState.ExitCode(), string(said)
	}
	exit, output := p.runWith(t, s, func(c *proc.Command) { c.Env = env }, argv...)
	return exit.Code, output
}

// SPEC P-12
func TestNothingOutsideCanBeChanged(t *testing.T) {
	t.Parallel()
	target := strconv.Itoa(bystander(t))
	for _, e := range escapes {
		if e.tame || asUser() {
			continue
		}
		t.Run("without a sandbox/"+e.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.furnish(t)
			before := snapshot(t, p.out)
			target := target
			if strings.Contains(e.name, "working directory of a process") {
				target = strconv.Itoa(bystanderIn(t, p.out))
			}
			if _, output := p.strike(t, nil, e.name, e.script, target); snapshot(t, p.out) == before {
				t.Errorf("the attack proves nothing: it changes nothing even without a sandbox: %s", output)
			}
		})
	}
	eachVersion(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, e := range escapes {
			if e.limit == sandbox.Writes && e.script != "" && old(s) {
				continue // all versions enforce this limit, so testing the newest version is enough
			}
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.furnish(t)
				target := target
				if strings.Contains(e.name, "working directory of a process") {
					target = strconv.Itoa(bystanderIn(t, p.out))
				}
				before := snapshot(t, p.out)
				code, output := p.strike(t, s, e.name, e.script, target)
				after := snapshot(t, p.out)
				switch {
				case s.Holds(e.limit) && before != after:
					t.Errorf("it got out:\n%safter:\n%s%s", before, after, output)
				case s.Holds(e.limit) && e.script == "" && code != 3:
					t.Errorf("exit code %d, want it to be refused: %s", code, output)
				case !s.Holds(e.limit) && before == after:
					t.Errorf("the limit %s is said not to be held, and it was: %s", e.limit, output)
				}
			})
		}
	})
}

// bystander starts a process outside the sandbox, and returns its process number.
func bystander(t testing.TB) int {
	t.Helper()
	return bystanderIn(t, "/")
}

func bystanderIn(t testing.TB, dir string) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sleep", "3600")
	command.Dir = dir
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // the error only says that it was killed
	})
	return command.Process.Pid
}

// SPEC P-12
func TestProcessesOutsideAreOutOfReach(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		limit sandbox.Limit
	}{
		{"trace a process outside", sandbox.Writes}, // all kinds prevent this
		{"write to the memory of a process outside", sandbox.Writes},
		{"read the environment of a process outside", sandbox.Writes},
		{"signal a process outside", sandbox.Signals},
	}
	for _, test := range tests {
		t.Run("without a sandbox/"+test.name, func(t *testing.T) {
			t.Parallel()
			if code, output := newPlace(t).strike(t, nil, test.name, "", strconv.Itoa(bystander(t))); code != 0 {
				t.Errorf("the attack proves nothing: it does not even work without a sandbox: %s", output)
			}
		})
	}
	eachVersion(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				code, output := newPlace(t).strike(t, s, test.name, "", strconv.Itoa(bystander(t)))
				if want := refused(s, test.limit); code != want {
					t.Errorf("exit code %d, want %d: %s", code, want, output)
				}
			})
		}
	})
}

// refused returns the exit code that an attack must have: 3 if s enforces the limit, else
// 0.
func refused(s *sandbox.Sandbox, limit sandbox.Limit) int {
	if s.Holds(limit) {
		return 3
	}
	return 0
}

// SPEC P-12
func TestDescriptorsAreNotInherited(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		if s.Kind() == sandbox.Bubblewrap {
			t.Skip("bwrap passes on what the caller opened for the child: os/exec opens nothing but standard input, output and error")
		}
		p := newPlace(t)
		p.furnish(t)
		file, err := os.OpenFile(p.out+"/file", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }() // nothing was written to it
		argv, err := s.Command(p.policy, []string{executable(t)})
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		command.Env = p.env(attackTask+"=write through a descriptor that was open", "TARGET=3")
		command.ExtraFiles = []*os.File{file}
		before := snapshot(t, p.out)
		output, err := command.CombinedOutput()
		if command.ProcessState.ExitCode() != 3 || snapshot(t, p.out) != before {
			t.Errorf("%v: %s: want no descriptor 3", err, output)
		}
	})
}

// SPEC P-12
func TestPrivilegesCannotBeHad(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, name := range []string{
			"get privileges back", "have more capabilities than over files", "make a block device", "make a raw socket", "trace the first process inside",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if strings.Contains(name, "the first process") && s.Kind() != sandbox.Namespaces {
					t.Skip("there is none, or it is bwrap's, which can do no more than the program")
				}
				if code, output := newPlace(t).strike(t, s, name, "", ""); code != 3 {
					t.Errorf("exit code %d, want it to be refused: %s", code, output)
				}
			})
		}
	})
}

// SPEC P-12
func TestDevicesCannotBeDriven(t *testing.T) {
	t.Parallel()
	var disk string
	files, _ := filepath.Glob("/dev/[vsxnl]*") // the pattern is valid
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice {
			if code, _ := newPlace(t).strike(t, nil, "drive a device", "", name); code == 0 {
				disk = name
				break
			}
		}
	}
	if disk == "" {
		t.Skip("NOT COVERED: there is no disk here that this user may look at")
	}
	eachVersion(t, func(t *testing.T, s *sandbox.Sandbox) {
		if code, output := newPlace(t).strike(t, s, "drive a device", "", disk); code != refused(s, sandbox.Devices) {
			t.Errorf("exit code %d: %s", code, output)
		}
	})
}

// With namespaces, a program has its own copies of resources that processes normally
// share, such as shared memory.
func TestWhatIsSharedOutsideIsNotShared(t *testing.T) {
	t.Parallel()
	name := "/dev/shm/" + uniqueName()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Skipf("NOT COVERED: this machine has no shared memory: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(name) })
	ipc, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		t.Fatal(err)
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		output := newPlace(t).sh(t, s, `readlink /proc/self/ns/ipc; ls /dev/pts; if [ -e "`+name+`" ]; then echo shared memory; fi`)
		own := !strings.Contains(output, ipc) && !strings.Contains(output, "shared memory") && strings.Contains(output, "]\nptmx\n")
		if want := s.Kind() != sandbox.Landlock; own != want {
			t.Errorf("its own: %v, want %v: %s", own, want, output)
		}
	})
}
