//go:build !linux

package proc

// holdThread does nothing: no child is tied to a thread here.
func holdThread() (letGo func()) { return func() {} }
