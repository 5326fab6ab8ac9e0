package repotest_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root directory of the repository, because their file names
// are relative to it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
