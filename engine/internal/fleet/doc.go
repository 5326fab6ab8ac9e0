// Package fleet tests worker processes on a PostgreSQL server: they are killed,
// stopped and disconnected, and other workers must finish their turns.
package fleet
