// Package crash holds the tests that kill processes on a PostgreSQL store at every
// point. They are apart from the store's other tests, which the race detector watches.
package crash
