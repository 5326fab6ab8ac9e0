package space_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/space"
)

// A space is installed into an agent, reloaded after a change, and unloaded.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "space")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(root) }() // the directory is temporary
	dir := filepath.Join(root, "acme")
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	write("manifest.json", `{"id": "acme"}`)
	write("hooks/rules.yaml", "hooks:\n  - id: no-prod\n    phase: tool.pre\n    match: {tools: [deploy]}\n    action: {deny: not on Fridays}\n")
	model := belaytest.Script(
		belaytest.Calls("deploy", `{}`), belaytest.Says("It is Friday."),
		belaytest.Calls("deploy", `{}`), belaytest.Says("Still not."),
	)
	deploy := belaytest.NewTool("deploy", "deployed")
	show := func(agent *belay.Agent, session string) {
		if _, err := agent.Session(session).Turn(ctx, "deploy"); err != nil {
			panic(err)
		}
		for message, err := range agent.Session(session).Messages(ctx) {
			if err != nil {
				panic(err)
			}
			for _, part := range message.Parts {
				if part.Result != nil {
					line, _, _ := strings.Cut(part.Result.Text, "\n")
					fmt.Println(line)
				}
			}
		}
	}

	// docs:begin install
	trust := space.OpenTrust(filepath.Join(root, "trust"))
	host := space.NewHost(&space.Options{Trust: trust})
	agent, err := belay.New(model, &belay.Options{
		Tools:   []belay.Tool{deploy},
		Runtime: &hook.RuntimeOptions{Grants: host.Grants},
	})
	if err != nil {
		panic(err)
	}
	loaded, err := space.Load(dir, hook.OriginSpace)
	if err != nil {
		panic(err) // every mistake, with file and line
	}
	lease, err := host.Install(ctx, loaded, &space.Target{Hooks: agent.Hooks()})
	if err != nil {
		panic(err)
	}
	for _, note := range lease.Notes() {
		fmt.Println(note.ID, "does not run:", note.Reason)
	}
	// docs:end install

	show(agent, "friday")
	write("hooks/rules.yaml", "hooks:\n  - id: no-prod\n    phase: tool.pre\n    match: {tools: [deploy]}\n    action: {deny: not on Mondays either}\n")

	// docs:begin reload
	if err := lease.Reload(ctx); err != nil {
		panic(err) // the old one stays
	}
	// docs:end reload

	show(agent, "monday")
	if err := lease.Unload(ctx); err != nil {
		panic(err)
	}
	if err := agent.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// Denied by "acme/no-prod": not on Fridays
	// Denied by "acme/no-prod": not on Mondays either
}
