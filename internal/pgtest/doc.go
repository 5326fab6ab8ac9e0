// Package pgtest starts a private PostgreSQL server for tests.
//
// # Usage
//
// A test process has one server, and each test has its own database, which is
// quickly copied from a template:
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
// The server has a temporary directory and a Unix socket in it; no one else can
// reach it. PostgreSQL does not run as root, so root starts it as the user
// postgres, or else nobody. It ends with [Server.Stop], and when the test process
// ends in any other way, even by SIGKILL.
//
// The programs initdb and postgres are searched in PATH and in Debian's
// directories. Without them Start fails: a test that needs a database is never
// skipped.
//
// # Concurrency
//
// A Server is safe for concurrent use, except for Stop and Restart.
package pgtest
