package repotest_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the rules in the root directory of the repository: they name
// files relative to it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
