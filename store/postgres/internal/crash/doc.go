// Package crash contains the tests that kill processes at every point while they use a
// PostgreSQL store. They are separate from the store's other tests, which run with the
// race detector.
package crash
