//go:build linux

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/belay-run/belay/sandbox"
)

// The command in this example can change the project, but not its configuration, and
// nothing outside.
func Example() {
	project, err := os.MkdirTemp("", "project")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(project) }()
	config := filepath.Join(project, "belay.yaml")
	if err := os.WriteFile(config, []byte("mode: strict\n"), 0o600); err != nil {
		panic(err)
	}

	// The main function must call sandbox.Main first. Here TestMain has called it.
	ctx := context.Background()
	box := sandbox.Find(ctx, nil)
	policy := sandbox.Policy{Write: []string{project}, Protect: []string{config}}
	argv, err := box.Command(policy, []string{"sh", "-c", `
		echo hello > notes.md && echo "the project: changed"
		echo "mode: permissive" > belay.yaml 2>/dev/null || echo "its configuration: refused"
		echo hello > ../notes.md 2>/dev/null || echo "outside: refused"
	`})
	if err != nil {
		panic(err)
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = project
	output, err := command.Output()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s", output)
	// Output:
	// the project: changed
	// its configuration: refused
	// outside: refused
}

// Which limits are enforced depends on the machine.
func ExampleSandbox_Holds() {
	box := sandbox.Find(context.Background(), &sandbox.Options{Kinds: []sandbox.Kind{sandbox.Landlock}})
	for _, limit := range []sandbox.Limit{sandbox.Writes, sandbox.Protection} {
		if box.Holds(limit) {
			fmt.Println("held:", limit.Text())
		} else {
			fmt.Println("not held:", limit.Text())
		}
	}
	// Output:
	// held: nothing outside the writable directories can be created, written, moved, linked or removed
	// not held: protected files in writable directories cannot be changed, moved or replaced
}
