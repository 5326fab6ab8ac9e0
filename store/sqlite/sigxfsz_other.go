//go:build !unix

package sqlite

// surviveLimit does nothing, because processes here have no file size limit.
func surviveLimit() {}
