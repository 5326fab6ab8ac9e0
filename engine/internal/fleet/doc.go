// Package fleet tests worker processes on a PostgreSQL server. The tests kill, stop and
// disconnect workers, and other workers must finish their turns.
package fleet
