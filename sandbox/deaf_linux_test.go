package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// deaf is a program that does not call Main. It prints the sandbox that it finds. It also
// prints a line if it was started again as a sandbox child.
func deaf() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Marker {
		fmt.Println("its main was run") //nolint:forbidigo // the test reads it
		os.Exit(1)
	}
	s := sandbox.Find(context.Background(), nil)
	fmt.Println(s.Kind(), s.Describe().Failed) //nolint:forbidigo // likewise
	argv, err := s.Command(sandbox.Policy{}, []string{"sh", "-c", "echo contained"})
	if err != nil {
		fmt.Println(err) //nolint:forbidigo // likewise
		os.Exit(0)
	}
	command := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it ends by itself
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	_ = command.Run() // the test checks its output
	os.Exit(0)
}

// The package never restarts a program that does not call Main.
func TestAProgramThatDoesNotCallMain(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), executable(t), "-test.run=^$")
	command.Env = append(os.Environ(), deafTask+"=1")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if !strings.Contains(string(output), "does not call sandbox.Main") || strings.Contains(string(output), "its main was run") {
		t.Errorf("output = %s", output)
	}
	if found[sandbox.Bubblewrap]().Kind() == sandbox.Bubblewrap && (!strings.HasPrefix(string(output), "bubblewrap ") || !strings.Contains(string(output), "contained\n")) {
		t.Errorf("output = %s: want bubblewrap in its place", output)
	}
}
