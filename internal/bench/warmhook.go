package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// warmHookPromises are the promises about belay hook with its worker. The floor is a program
// that reads the same event and answers with JSON.
func warmHookPromises() []promise {
	return []promise{
		{"hook-warm-ms", 30, func() (float64, error) { ours, _, err := warmHook(); return ours, err }},
		{"hook-warm", 3, func() (float64, error) { ours, floor, err := warmHook(); return ours / floor, err }},
	}
}

const (
	hookEvent = `{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`
	bareHook  = `package main

import (
	"encoding/json"
	"os"
)

func main() {
	var event map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&event); err != nil {
		os.Exit(2)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"event": event["hook_event_name"]})
}
`
)

// warmHook returns how long belay hook runs with a worker, and how long the floor runs, in
// milliseconds. Both are the best of 30 runs, which alternate.
func warmHook() (ours, floor float64, err error) {
	dir, err := os.MkdirTemp("", "bw") // the path of a socket must be short
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, bare := filepath.Join(dir, "belay"), filepath.Join(dir, "bare")
	if err := errors.Join(os.WriteFile(bare+".go", []byte(bareHook), 0o600), os.MkdirAll(filepath.Join(dir, "p", ".belay"), 0o700), os.Mkdir(filepath.Join(dir, "r"), 0o700)); err != nil {
		return 0, 0, err
	}
	for _, args := range [][]string{{program, "github.com/belay-run/belay/cmd/belay"}, {bare, bare + ".go"}} {
		build := exec.CommandContext(ctx, "go", "build", "-o", args[0], args[1])
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("build: %w: %s", err, out)
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = filepath.Join(dir, "p")
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "r")}
		c.Stdin = strings.NewReader(hookEvent)
		return c
	}
	worker := command(program, "hook", "worker")
	if err := worker.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = worker.Process.Kill()
		_ = worker.Wait() // it was killed
	}()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(dir, "r", "belay", "hook-*.sock")); len(found) > 0 {
			break
		}
		if time.Since(begin) > 20*time.Second {
			return 0, 0, errors.New("the worker of belay hook does not listen")
		}
	}
	ours, floor = math.Inf(1), math.Inf(1)
	for range 30 {
		for _, one := range []struct {
			best *float64
			run  *exec.Cmd
		}{{&floor, command(bare)}, {&ours, command(program, "hook", "--agent", "claude-code")}} {
			begin := time.Now()
			if out, err := one.run.CombinedOutput(); err != nil {
				return 0, 0, fmt.Errorf("%s: %w: %s", one.run, err, out)
			}
			*one.best = min(*one.best, float64(time.Since(begin).Microseconds())/1000)
		}
	}
	return ours, floor, nil
}
