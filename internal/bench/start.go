package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func startPromises() []promise {
	return []promise{
		{"help-ms", 100, func() (float64, error) { return startTime("--help", 10, false) }},
		{"start-ms", 10, func() (float64, error) { return startTime("--version", 20, true) }},
	}
}

// startTime returns how long the program belay runs with this argument, in milliseconds. It
// is the best of several runs. If aboveFloor is true, startTime subtracts the time of a Go
// program that does nothing. The two programs run alternately.
func startTime(argument string, runs int, aboveFloor bool) (figure float64, err error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return 0, fmt.Errorf("scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, floor := filepath.Join(dir, "belay"), filepath.Join(dir, "floor")
	source := floor + ".go"
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return 0, fmt.Errorf("the floor: %w", err)
	}
	for _, args := range [][]string{{program, "github.com/belay-run/belay/cmd/belay"}, {floor, source}} {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", args[0], args[1]).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build: %w: %s", err, out)
		}
	}
	ours, below := math.Inf(1), math.Inf(1)
	for range runs {
		bare, err := runTime(floor)
		if err != nil {
			return 0, err
		}
		full, err := runTime(program, argument)
		if err != nil {
			return 0, err
		}
		ours, below = min(ours, full), min(below, bare)
	}
	if aboveFloor {
		ours -= below
	}
	return ours, nil
}

// runTime returns the milliseconds that a program runs.
func runTime(program string, args ...string) (float64, error) {
	start := time.Now()
	if err := exec.CommandContext(context.WithoutCancel(ctx), program, args...).Run(); err != nil {
		return 0, fmt.Errorf("%s %q: %w", filepath.Base(program), args, err)
	}
	return float64(time.Since(start).Microseconds()) / 1000, nil
}
