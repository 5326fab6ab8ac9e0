//go:build unix && !linux

package warmhook

import "os"

// checkWorker refuses every worker: this system cannot say which program answers. So the command
// answers by itself.
func checkWorker(int) error { return os.ErrPermission }

// CheckClient relies on the directory of the socket, which only this user can enter.
func CheckClient(int) error { return nil }
