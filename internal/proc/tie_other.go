//go:build !linux

package proc

// holdThread does nothing: on this system no child is tied to a thread.
func holdThread() (letGo func()) { return func() {} }
