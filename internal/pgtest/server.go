package pgtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options are a server's settings. A nil pointer is valid.
type Options struct {
	// Durable makes the server wait for the disk, like a server in production. The default
	// is faster, and safe for tests that kill processes: the operating system keeps what a
	// killed process has written.
	Durable bool
}

// Server is a private PostgreSQL server of this process.
type Server struct {
	dir  string
	opts Options

	program string // path of the program postgres
	running *exec.Cmd
	alive   io.Closer     // closing it stops the server; it is also closed when this process ends
	ended   chan struct{} // closed when the server has ended

	dropping sync.WaitGroup // counts the databases that are being removed
}

// owner is the user that owns the databases.
const owner = "belay"

// patience is the timeout of every operation, so that a test cannot hang.
const patience = time.Minute

// Start starts a server.
func Start(opts *Options) (_ *Server, err error) {
	s := &Server{}
	if opts != nil {
		s.opts = *opts
	}
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	if s.program, err = program("postgres"); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(s.parent(), "belay-pg-"); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	if err = give(s.dir); err == nil {
		err = s.initialize(initdb)
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), s.Stop())
	}
	return s, nil
}

// parent returns the directory in which the server's directory is created. Copying a
// database is ten times as fast in memory.
func (s *Server) parent() string {
	if s.opts.Durable {
		return ""
	}
	return memory()
}

// program finds a program of PostgreSQL. If Debian has several versions, program returns
// the newest.
func program(name string) (string, error) {
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("pgtest: there is no %s in PATH or in /usr/lib/postgresql: run make database, or install PostgreSQL", name)
	}
	return slices.MaxFunc(found, func(a, b string) int { // version 9 is older than 15
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}), nil
}

func (s *Server) initialize(initdb string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, initdb, "--pgdata", s.Data(), "--username", owner, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync") //nolint:gosec // the program that was found
	cmd.Dir = s.dir
	if err := unprivileged(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// keeper is a shell script that starts the server and stops it when the pipe at descriptor
// 3 is closed. This process has the other end of the pipe. So the server stops when this
// process ends, however it ends.
const keeper = `"$@" & server=$!
(read -r line; kill -INT $server 2>/dev/null) <&3 &
wait $server`

// start starts the server and waits until it answers.
func (s *Server) start() error {
	settings := []string{
		"listen_addresses=", "unix_socket_directories=" + s.dir, "max_connections=200", "shared_buffers=64MB", "max_wal_size=256MB",
		"log_min_messages=fatal",
	}
	if !s.opts.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-c", keeper, "keeper", s.program, "-D", s.Data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", args...) //nolint:gosec // the program that was found
	cmd.Dir = s.dir
	if err := unprivileged(cmd); err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(s.dir, "said"))
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }() // the server has its own descriptor
	cmd.Stdout, cmd.Stderr = said, said
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{theirs}
	err = cmd.Start()
	if closed := theirs.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	s.running, s.alive, s.ended = cmd, ours, make(chan struct{})
	go attend(cmd, s.ended) // ends when the server ends
	if err := s.answers(); err != nil {
		words, _ := os.ReadFile(said.Name()) // if reading fails, err is still reported
		return errors.Join(fmt.Errorf("postgres: %w\n%s", err, words), s.halt())
	}
	return nil
}

// attend waits until the server has ended. The exit status does not matter.
func attend(cmd *exec.Cmd, ended chan<- struct{}) {
	_ = cmd.Wait()
	close(ended)
}

func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx) //nolint:wrapcheck // Start adds context
		}
		select {
		case <-often.C:
		case <-s.ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		}
	}
}

// halt stops the server and waits until it has ended.
func (s *Server) halt() error {
	if s.running == nil {
		return nil
	}
	err := s.alive.Close()
	<-s.ended
	s.running = nil
	return err //nolint:wrapcheck // the caller adds context
}

// Stop stops the server and removes its directory.
func (s *Server) Stop() error {
	s.dropping.Wait()
	if err := errors.Join(s.halt(), os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return nil
}

// Restart stops the server, calls meanwhile (unless it is nil), and starts the server again
// on the same data. All connections are closed.
func (s *Server) Restart(meanwhile func()) error {
	s.dropping.Wait()
	err := s.halt()
	if meanwhile != nil {
		meanwhile()
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		return fmt.Errorf("pgtest: restart: %w", err)
	}
	return nil
}

// Data returns the server's data directory. It contains the databases in base and the
// write-ahead log in pg_wal.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// DSN returns the data source name of a database of the server.
func (s *Server) DSN(database string) string {
	return "postgres:///" + url.PathEscape(database) + "?" + url.Values{"host": {s.dir}, "user": {owner}}.Encode()
}

// Quiet waits until all databases of ended tests are removed.
func (s *Server) Quiet() { s.dropping.Wait() }

// Create makes a database from a template and returns its DSN. The template must have no
// open connections. Any name is valid.
func (s *Server) Create(ctx context.Context, name, template string) (string, error) {
	return s.DSN(name), s.run(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE "+pgx.Identifier{template}.Sanitize()+" STRATEGY file_copy")
}

// Drop removes a database and closes its connections.
func (s *Server) Drop(ctx context.Context, name string) error {
	return s.run(ctx, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

func (s *Server) run(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return nil
}

// Database makes a database for a test and returns its DSN. The database is removed when
// the test ends.
func (s *Server) Database(t testing.TB, template string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := "test_" + strings.ToLower(rand.Text())
	dsn, err := s.Create(ctx, name, template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.dropping.Go(func() { // Stop waits for it; the test does not
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = s.Drop(ctx, name) // Stop removes a database that is left
		})
	})
	return dsn
}
