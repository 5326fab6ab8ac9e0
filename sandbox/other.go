//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Main lets this program run other programs in a sandbox. Call it at the very beginning
// of main, and of TestMain in tests. On this operating system it does nothing.
func Main() {}

// try always fails, because only Linux has sandboxes.
func try(context.Context, Kind) (*Sandbox, error) {
	return nil, fmt.Errorf("it is only available on Linux, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// command is never called, because try always fails.
func (s *Sandbox) command(Policy, string, []string) ([]string, error) { return nil, ErrNone }
