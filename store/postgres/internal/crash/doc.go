// Package crash contains tests that kill processes at every point while they use a
// PostgreSQL store. They are in a separate package, because the store's other tests run
// with the race detector.
package crash
