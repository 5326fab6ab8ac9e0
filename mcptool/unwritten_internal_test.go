package mcptool

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// If a program has closed its input, the error is how the program ends. A program that does
// not end leaves the error of the write.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leaves bool          // the caller does not wait
		ends   time.Duration // 0: never
		want   error
	}{
		"it ends a little later":   {false, time.Second, io.ErrClosedPipe},
		"it does not end":          {false, 0, syscall.EPIPE},
		"it ends, but much later":  {false, time.Minute, syscall.EPIPE},
		"the caller does not wait": {true, time.Minute, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &pipe{over: make(chan struct{})}
				if test.ends > 0 {
					defer time.AfterFunc(test.ends, func() { close(p.over) }).Stop()
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.leaves {
					cancel()
				}
				if err := p.unwritten(ctx, syscall.EPIPE); !errors.Is(err, test.want) {
					t.Errorf("the error is %v, want %v", err, test.want)
				}
			})
		})
	}
}
