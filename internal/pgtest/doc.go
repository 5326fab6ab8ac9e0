// Package pgtest starts a private PostgreSQL server for tests.
//
// # Usage
//
// A test process starts one server. Each test gets its own database, a quick copy of a
// template:
//
//	func TestMain(m *testing.M) {
//		server, err := pgtest.Start(nil)
//		...
//		code := m.Run()
//		_ = server.Stop()
//		os.Exit(code)
//	}
//
//	dsn := server.Database(t, "template0")
//
// The server listens only on a Unix socket in a temporary directory, so that other users
// cannot reach it. PostgreSQL refuses to run as root. If the tests run as root, the server
// runs as the user postgres or, if there is no such user, nobody. The server stops at
// [Server.Stop], and also when the test process ends in any other way, even by SIGKILL.
//
// Start looks for the programs initdb and postgres in PATH and in Debian's directories. If
// they are missing, Start fails: a test that needs a database is never skipped.
//
// # Concurrency
//
// A Server is safe for concurrent use, except for Stop and Restart.
package pgtest
