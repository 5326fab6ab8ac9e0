//go:build !linux

package sandbox_test

import (
	"errors"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// SPEC P-12
func TestElsewhereThereIsNone(t *testing.T) {
	t.Parallel()
	sandbox.Main()
	s := sandbox.Find(t.Context(), nil)
	if s.Kind() != sandbox.None || len(s.Describe().Holds) > 0 || len(s.Describe().Failed) != 3 {
		t.Errorf("description = %+v, want none, and three reasons", s.Describe())
	}
	for _, a := range s.Describe().Failed {
		if !errors.Is(a.Err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", a.Kind, a.Err)
		}
	}
	if argv, err := s.Command(sandbox.Policy{}, []string{"true"}); !errors.Is(err, sandbox.ErrNone) {
		t.Errorf("%v, %v: want ErrNone", argv, err)
	}
}
