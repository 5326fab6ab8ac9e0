//go:build !unix

package sqlite

// surviveLimit does nothing where processes have no such limit.
func surviveLimit() {}
