package permit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/belay-run/belay/permit"
)

// A floor explains its decision about a call without running the call.
func ExampleFloor_Explain() {
	project, err := os.MkdirTemp("", "project")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(project) //nolint:errcheck // a temporary directory
	rule, err := permit.ParseRule("deny shell(git push)")
	if err != nil {
		panic(err)
	}
	floor, err := permit.New(project, &permit.Options{Mode: permit.Build, Rules: []permit.Rule{rule}, Sandboxed: true})
	if err != nil {
		panic(err)
	}
	for _, command := range []string{"go test ./...", `X=rm; $X -rf build`, "git add . && git push -f", "rm -rf /"} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			panic(err)
		}
		e := floor.Explain(context.Background(), "shell", input)
		decision := string(e.Decision)
		if decision == "" {
			decision = "pass"
		}
		fmt.Printf("%-25s zone %d %-9s  %s", command, e.Zone, e.Zone, decision)
		if e.By != "" {
			fmt.Printf(" by %s", e.By)
		}
		fmt.Println()
	}
	// Output:
	// go test ./...             zone 2 build      pass
	// X=rm; $X -rf build        zone 1 workspace  ask by protection destructive.files
	// git add . && git push -f  zone 4 external   deny by rule deny shell(git push)
	// rm -rf /                  zone 6 never      deny by zone 6
}
