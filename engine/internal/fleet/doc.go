// Package fleet holds the tests of workers that are processes of their own, on a
// PostgreSQL server: they are killed, stopped and cut off, and what they were at must
// be ended by others.
package fleet
