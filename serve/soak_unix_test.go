//go:build soak && unix

package serve_test

import (
	"testing"
	"time"
)

// The long form of TestStorm.
//
// SPEC V-03, V-07
func TestSoakServe(t *testing.T) { //nolint:paralleltest // it needs the machine for itself
	blow(t, storm{sessions: 12, lasts: 2 * time.Minute, pause: 1500 * time.Millisecond})
}
