// Package pgtest starts a private PostgreSQL server for tests.
//
// # Usage
//
// One server serves a test process, and each test has a database of its own, made
// from a template, which is quick:
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
// reach it. It refuses to run as root, so root runs it as the user postgres, or
// else nobody. It ends with [Server.Stop], and when the test process ends in any
// other way, even by SIGKILL.
//
// The programs initdb and postgres are looked for in PATH and where Debian has
// them. Without them Start fails: a test that needs a database is never skipped.
//
// # Concurrency
//
// A Server is safe for concurrent use, but for Stop and Restart.
package pgtest
