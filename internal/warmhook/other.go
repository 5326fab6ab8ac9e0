//go:build !unix

package warmhook

import (
	"errors"
	"os"
)

// Start is the result of an attempt to reach a worker.
type Start struct {
	// Read says that standard input was read, and Stdin is its content.
	Read  bool
	Stdin []byte
}

// Dir returns the directory in which the search for the project starts.
func Dir(string) (string, error) { return os.Getwd() }

// Socket returns an error, because this operating system has no workers.
func Socket(string) (string, error) { return "", errors.ErrUnsupported }

// Place returns "", because this operating system has no workers.
func Place() string { return "" }

// CheckPlace returns an error, because this operating system has no workers.
func CheckPlace() error { return errors.ErrUnsupported }

// CheckClient returns an error, because this operating system has no workers.
func CheckClient(int) error { return errors.ErrUnsupported }

// Begin does nothing, because this operating system has no workers.
func Begin() Start { return Start{} }
