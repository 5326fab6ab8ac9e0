package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// Everyday programs work in a sandbox, with the smallest policy that they need.
func TestWorkGoesOn(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, script, output string }{
		{"writing", `echo a > a; mkdir -p x/y; mv a x/y/b; cp -r x z; rm -r x; ln -s z/y/b l; cat l; ln z/y/b h; chmod 600 h; touch -d @1 h; : > h`, "a\n"},
		{"moving from directory to directory", `mkdir a b; echo x > a/f; mv a/f b/f; ln b/f a/g; mv a b/a; cat b/a/g`, "x\n"},
		{"temporary files", `f=$(mktemp); echo x > "$f"; cat "$f"; rm "$f"`, "x\n"},
		{"reading what is outside", `head -c 4 /etc/passwd >/dev/null; cat "$OUT/../out/readable"; ls / >/dev/null`, "text\n"},
		{"devices", `echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; ! echo x > /dev/full 2>/dev/null`, "3\n3\n"},
		{"standard output by name", `echo a > /dev/stdout; echo b > /dev/stderr; echo c > /proc/self/fd/1; echo d | tee /dev/stderr >/dev/null`, "a\nb\nc\nd\n"},
		{"pipes", `seq 1000 | tail -n 1; mkfifo p; echo x > p & cat p; wait`, "1000\nx\n"},
		{"here-documents", "cat <<E\nx\nE\n", "x\n"},
		{"shared memory", `echo x > /dev/shm/belay-sandbox-test-$$; cat /dev/shm/belay-sandbox-test-$$; rm /dev/shm/belay-sandbox-test-$$`, "x\n"},
		{"background jobs", `sleep 0.01 & wait $!; echo $?; (exit 3) & wait $! || echo $?`, "0\n3\n"},
		{"signals", `trap 'echo usr' USR1; kill -USR1 $$; sh -c 'kill -TERM $$' 2>/dev/null || echo $?`, "usr\n143\n"},
		{"the group's own signals", `trap 'echo term' TERM; kill -TERM 0; echo on`, "term\non\n"},
		{"looking at processes", `test -e /proc/$$/status; test "$(cat /proc/self/comm)" = cat; cut -d' ' -f4 /proc/self/stat > parent; test "$(cat parent)" = $$; echo ok`, "ok\n"},
		{"an own session", `test "$(cut -d' ' -f6 /proc/$$/stat)" -gt 0; test "$(cut -d' ' -f5 /proc/$$/stat)" -gt 0; echo ok`, "ok\n"},
		{"executing what was written", "printf '#!/bin/sh\\necho hi\\n' > x; chmod +x x; ./x", "hi\n"},
		{"locks", `exec 9> lock; flock 9; flock -n lock true || echo locked`, "locked\n"},
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				write(t, p.out+"/readable", "text\n")
				if output := p.sh(t, s, test.script); output != test.output {
					t.Errorf("output = %q, want %q", output, test.output)
				}
			})
		}
	})
}

func TestGitWorks(t *testing.T) {
	t.Parallel()
	needProgram(t, "git")
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		const identity = `export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y; `
		p.sh(t, s, identity+`git init -q -b main .; echo a > a; git add a; git commit -q -m one`)
		// From now on, .git exists and can be protected.
		p.policy.Protect = []string{p.in + "/.git/hooks", p.in + "/.git/config"}
		output := p.sh(t, s, identity+`echo b > b; git add b; git commit -q -m two; git checkout -q -b side HEAD~1; echo c > c; git add -A
			git commit -q -m three; git checkout -q main; git merge -q -m merge side; git gc -q; git stash list; git worktree add -q ../in/tree side 2>&1
			git log --format=%s | sort; git status --porcelain --ignored`)
		if want := "merge\none\nthree\ntwo\n?? tree/\n"; output != want {
			t.Errorf("output = %q, want %q", output, want)
		}
	})
}

func TestGoWorks(t *testing.T) {
	t.Parallel()
	needProgram(t, "go")
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		write(t, p.in+"/project/go.mod", "module x\n")
		write(t, p.in+"/project/x.go", "package main\n\nfunc main() { println(\"hi\") }\n")
		root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		change := func(c *proc.Command) {
			c.Dir = p.in + "/project"
			c.Env = append(c.Env, "GOROOT="+strings.TrimSpace(string(root)), "GOPROXY=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off")
		}
		// Compile only: building a program would first compile the Go runtime, which is
		// slow.
		exit, output := p.runWith(t, s, change, "sh", "-c", `go list -f '{{.Name}}' . && go fmt . && go tool compile -p main -o x.o x.go && test -s x.o`)
		if exit.Code != 0 || output != "main\n" {
			t.Errorf("exit = %+v: %s", exit, output)
		}
	})
}

// SPEC P-12
func TestTheProgramSeesWhatItWouldSee(t *testing.T) {
	t.Parallel()
	const script = `pwd; id -u; id -g; id -G; umask; ulimit -n; ulimit -c; env | LC_ALL=C sort | grep -v -e ^PWD -e ^_ -e ^SHLVL; echo "$0 $*"
		grep -e SigIgn -e SigBlk /proc/self/status; stat -c %u "$IN"`
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		argv := []string{"sh", "-c", script, "a name", "one", "", "two words", "\xff"}
		out := proc.NewCap(1 << 20)
		if _, err := proc.Run(t.Context(), &proc.Command{Argv: argv, Dir: p.in, Env: p.env(), Stdout: out}); err != nil {
			t.Fatal(err)
		}
		_, output := p.run(t, s, argv...)
		want := string(out.Bytes())
		if s.UsesUsers() || s.Kind() == sandbox.Bubblewrap && os.Getuid() != 0 {
			want, output = withoutGroups(want), withoutGroups(output)
		}
		if output != want {
			t.Errorf("output:\n%s\nwithout a sandbox:\n%s", output, want)
		}
	})
}

// The program has the caller's limit of open files, not the one that the Go runtime sets.
func TestTheLimitOfOpenFilesIsKept(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		argv, err := s.Command(p.policy, []string{"sh", "-c", "ulimit -Sn"})
		if err != nil {
			t.Fatal(err)
		}
		if argv[0] == "/proc/self/exe" {
			argv[0] = executable(t)
		}
		command := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -Sn 123; exec "$@"`, "sh"}, argv...)...)
		command.Env = p.env()
		if output, err := command.CombinedOutput(); err != nil || string(output) != "123\n" {
			t.Errorf("%v: %q, want the limit that was set", err, output)
		}
	})
}

// withoutGroups removes the line with supplementary groups. The line differs in a user
// namespace, where other groups look like nobody's.
func withoutGroups(output string) string {
	lines := strings.SplitAfter(output, "\n")
	return strings.Join(append(lines[:3:3], lines[4:]...), "")
}

func TestInputAndOutput(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		t.Run("standard input", func(t *testing.T) {
			t.Parallel()
			input := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			_, output := p.runWith(t, s, func(c *proc.Command) { c.Stdin = input }, "cat")
			if output != string(input) {
				t.Errorf("%d bytes came back of %d", len(output), len(input))
			}
		})
		t.Run("large output", func(t *testing.T) {
			t.Parallel()
			const size = 64 << 20
			out := proc.NewWindow(1 << 10)
			exit, _ := p.runWith(t, s, func(c *proc.Command) { c.Stdout = out }, "sh", "-c", "head -c "+strconv.Itoa(size)+" /dev/zero")
			head, forgotten, tail := out.Ends()
			if got := int64(len(head)) + forgotten + int64(len(tail)); exit.Code != 0 || got != size {
				t.Errorf("exit = %+v, %d bytes, want %d", exit, got, size)
			}
		})
		t.Run("output ends when the program closes it", func(t *testing.T) {
			t.Parallel()
			argv, err := s.Command(p.policy, []string{"sh", "-c", "exec >&- 2>&-; while [ ! -e closed ]; do sleep 0.01; done"})
			if err != nil {
				t.Fatal(err)
			}
			if s.Kind() == sandbox.Bubblewrap {
				t.Skip("bwrap holds it until the program ends")
			}
			command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			command.Dir, command.Env = p.in, p.env()
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			if n, err := out.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%d bytes, %v: want the end", n, err)
			}
			write(t, p.in+"/closed", "")
			if err := command.Wait(); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestTerminalsWork(t *testing.T) {
	t.Parallel()
	needProgram(t, "script")
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		exit, output := p.run(t, s, "script", "-qec", "tty >/dev/null && test -t 0 && stty size >/dev/null && echo terminal > /dev/tty", "/dev/null")
		if s.Kind() == sandbox.Landlock && strings.Contains(output, "failed to create pseudo-terminal") {
			t.Skipf("NOT COVERED: this machine's terminals are root's alone: %s", output)
		}
		if exit.Code != 0 || strings.TrimSpace(output) != "terminal" {
			t.Errorf("exit = %+v: %q", exit, output)
		}
	})
}

// SPEC P-12
func TestNobodyTypesIntoTheTerminalOfTheCaller(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("NOT COVERED: this machine has no terminals: %v", err)
		}
		defer func() { _ = ptmx.Close() }() // nothing was written
		fd := int(ptmx.Fd())
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			t.Fatal(err)
		}
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		if err != nil {
			t.Fatal(err)
		}
		tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("NOT COVERED: this machine has no terminals: %v", err)
		}
		defer func() { _ = tty.Close() }() // nothing was written
		argv, err := s.Command(p.policy, []string{executable(t)})
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		command.Env = p.env(attackTask + "=type into a terminal")
		command.Stdin = tty
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
		if output, _ := command.CombinedOutput(); command.ProcessState.ExitCode() != 3 {
			t.Errorf("%v: want it to be refused: %s", command.ProcessState, output)
		}
	})
}
