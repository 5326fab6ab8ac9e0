//go:build !linux

package proc

// holdThread has nothing to hold: no child is tied to a thread here.
func holdThread() (letGo func()) { return func() {} }
