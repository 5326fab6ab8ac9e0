//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Main makes this program able to contain others. Call it as the first thing that main
// does, and in tests as the first thing that TestMain does. It returns at once, unless
// the process was started to run a program in a sandbox, which it is on Linux alone.
func Main() {}

// try finds nothing here.
func try(context.Context, Kind) (*Sandbox, error) {
	return nil, fmt.Errorf("it is there for Linux, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// command is never asked for.
func (s *Sandbox) command(Policy, string, []string) ([]string, error) { return nil, ErrNone }
