//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Main lets this program run others in a sandbox. Call it as the first thing that main
// does, and in tests as the first thing that TestMain does. It returns at once, unless
// the process was started to run a program in a sandbox, which happens only on Linux.
func Main() {}

// try finds nothing here.
func try(context.Context, Kind) (*Sandbox, error) {
	return nil, fmt.Errorf("it is only available on Linux, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// command is never called.
func (s *Sandbox) command(Policy, string, []string) ([]string, error) { return nil, ErrNone }
