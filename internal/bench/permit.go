package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/belay-run/belay/permit"
)

// permitPromises are the promises about the floor.
func permitPromises() []promise {
	return []promise{
		{"permit-file", 2, inProject(fileCall)},
		{"permit-shell", 4, inProject(shellCall)},
		{"permit-1000-rules", 3, inProject(manyRules)},
	}
}

// inProject returns a function that calls measure with a new project directory.
func inProject(measure func(dir string) (float64, error)) func() (float64, error) {
	return func() (figure float64, err error) {
		dir, err := os.MkdirTemp("", "belay-bench-")
		if err != nil {
			return 0, fmt.Errorf("scratch directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if err := os.MkdirAll(filepath.Join(dir, "internal", "server"), 0o700); err != nil {
			return 0, fmt.Errorf("scratch directory: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "internal", "server", "handler.go"), []byte("package server\n"), 0o600); err != nil {
			return 0, fmt.Errorf("scratch directory: %w", err)
		}
		return measure(dir)
	}
}

func newFloor(dir string, rules int) (*permit.Floor, error) {
	opts := &permit.Options{Mode: permit.Build, Sandboxed: true}
	for i := range rules {
		text := []string{
			"deny shell(tool%d *)", "ask shell(git verb%d *)", "deny write(dir%d/**)", "ask read(**/secret%d.txt)", "allow shell(run%d --fast *)",
			"deny tool%d", "ask fetch(https://host%d.example.com/*)", "deny *(path:vault%d/**)", "deny read(**/*.ext%d)", "allow custom%d(target=test*)",
		}[i%10]
		rule, err := permit.ParseRule(fmt.Sprintf(text, i))
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(text, "ask fetch") {
			rule.Pattern = "url:" + rule.Pattern
		}
		opts.Rules = append(opts.Rules, rule)
	}
	return permit.New(dir, opts)
}

// fileCall returns the time to check a call of a file tool, divided by the time of the least
// check: decode the input, and ask the kernel once about the file. Before, this was the time
// in microseconds. It was 3.9 to 6.2 on one machine, because system calls take longer when
// the machine is busy.
func fileCall(dir string) (float64, error) {
	floor, err := newFloor(dir, 10)
	if err != nil {
		return 0, err
	}
	input := json.RawMessage(`{"path": "internal/server/handler.go", "offset": 1, "limit": 200}`)
	return ratio(func(n int) {
		for range n {
			floor.Explain(ctx, "read", input)
		}
	}, func(n int) {
		for range n {
			var in struct {
				Path string `json:"path"`
			}
			must(json.Unmarshal(input, &in))
			_, err := os.Lstat(filepath.Join(dir, in.Path))
			must(err)
		}
	}), nil
}

// typical are typical commands of coding agents.
var typical = []string{
	`go test ./internal/server/... 2>&1 | tail -20`,
	`cd internal/server && grep -rn "func Handle" --include='*.go' . | head -50`,
	`git add -A && git commit -m "server: handle the empty body"`,
	`for f in handler.go server.go; do wc -l "internal/server/$f"; done`,
}

// shellCall returns the time to check typical commands divided by the time to parse them.
func shellCall(dir string) (float64, error) {
	floor, err := newFloor(dir, 10)
	if err != nil {
		return 0, err
	}
	var inputs []json.RawMessage
	for _, command := range typical {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			return 0, fmt.Errorf("input: %w", err)
		}
		inputs = append(inputs, input)
	}
	return ratio(func(n int) {
		for i := range n {
			floor.Explain(ctx, "shell", inputs[i%len(inputs)])
		}
	}, func(n int) {
		for i := range n {
			parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
			if _, err := parser.Parse(strings.NewReader(typical[i%len(typical)]), ""); err != nil {
				panic(err)
			}
		}
	}), nil
}

// manyRules returns the cost of a check with 1,000 rules divided by the cost with 10. It
// measures a command and a file call, and returns the larger figure.
func manyRules(dir string) (float64, error) {
	few, err := newFloor(dir, 10)
	if err != nil {
		return 0, err
	}
	many, err := newFloor(dir, 1000)
	if err != nil {
		return 0, err
	}
	worst := 0.0
	for tool, input := range map[string]json.RawMessage{
		"read":  json.RawMessage(`{"path": "internal/server/handler.go"}`),
		"shell": json.RawMessage(`{"command": "git status --short && ls internal"}`),
	} {
		judge := func(floor *permit.Floor) func(n int) {
			return func(n int) {
				for range n {
					floor.Explain(ctx, tool, input)
				}
			}
		}
		worst = max(worst, ratio(judge(many), judge(few)))
	}
	return worst, nil
}
