package sandbox_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// userTask is set when root runs the tests again as an ordinary user.
const userTask = "BELAY_SANDBOX_USER"

// asUser reports whether root runs these tests as an ordinary user. Some tests then do
// less, because root has already run them.
func asUser() bool { return os.Getenv(userTask) != "" }

// Root needs no user namespace, but other users do. So root runs all tests again as an
// ordinary user.
//
// SPEC P-12
func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		if s := found[sandbox.Namespaces](); s.Kind() == sandbox.Namespaces && !s.UsesUsers() {
			t.Error("an ordinary user has namespaces without a user namespace")
		}
		return // this process is not root: it runs all tests anyway
	}
	if testing.Short() {
		t.Skip("NOT COVERED: an ordinary user, with -short")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "belay-user-") //nolint:usetesting // what is above that is for root alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(dir, "test")
	source, err := os.Open(executable(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }() // the file is only read
	install(t, source, binary)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary, "-test.v", "-test.short", "-test.timeout=5m")
	command.Dir = dir
	command.Env = append(os.Environ(), userTask+"=1", "TMPDIR="+dir, "HOME="+dir)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, failures(string(output)))
	}
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "NOT COVERED") {
			t.Logf("as an ordinary user: %s", strings.TrimSpace(line))
		}
	}
	if !strings.Contains(string(output), "--- PASS: TestNothingOutsideCanBeChanged") {
		t.Errorf("the tests did not run:\n%s", output)
	}
}

// failures returns the output of tests without the lines about passed tests.
func failures(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- PASS") && !strings.HasPrefix(trimmed, "--- SKIP") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// install writes a program with a separate process. The reason: if this process wrote the
// file, a child of another test could still have it open, and then the file cannot be
// executed.
func install(t *testing.T, from io.Reader, to string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", `cat > "$1" && chmod 755 "$1"`, "sh", to)
	command.Stdin = from
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}
