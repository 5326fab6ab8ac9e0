package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parse parses a DSN. Its errors contain no part of the DSN, because in an invalid DSN any
// part may be the password.
func parse(dsn string) (*pgxpool.Config, error) {
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok && strings.HasPrefix(scheme, "postgres") {
		host, path, _ := strings.Cut(rest, "/")
		path, _, _ = strings.Cut(path, "?")
		if strings.Contains(host, ":") && !strings.Contains(host, "@") && strings.Contains(path, "@") {
			return nil, errors.New("cannot parse the DSN: there is an @ after the host: if the password contains a /, write %2F; if the database name contains an @, write %40")
		}
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err == nil {
		return config, nil
	}
	what := "the DSN is neither a URL nor a list of keywords"
	if found, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		what = strings.TrimPrefix(found.Error(), pgconn.NewParseConfigError(found.ConnString, "", nil).Error())
		if cause := found.Unwrap(); cause != nil {
			what = strings.TrimSuffix(what, " ("+cause.Error()+")")
		}
	}
	return nil, fmt.Errorf("cannot parse the DSN: %s: write a URL, such as postgres://user@host:5432/database, or keywords, such as host=… dbname=…; "+
		"in a URL, escape / @ : ? # %% in the password (write / as %%2F); in keywords, put '…' around values with spaces", what)
}

// patient makes a connection fail if the server does not answer within atMost. Then it
// calls silent, if that is not nil.
func patient(config *pgconn.Config, atMost time.Duration, silent func()) {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = atMost
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		socket, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &impatient{Conn: socket, atMost: atMost, silent: silent}, nil
	}
}

// impatient is a connection with a timeout for answers. The driver reads only after a
// request, so a read that takes too long means that the server does not answer. A context
// for each request would need a goroutine for each request.
type impatient struct {
	net.Conn
	atMost time.Duration
	silent func()

	mu       sync.Mutex
	deadline time.Time // deadline that the caller has set, zero if there is none
}

// Read reads with the timeout.
func (c *impatient) Read(to []byte) (int, error) {
	if err := c.limit(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(to)
	return n, c.given(err)
}

// Write writes with the timeout.
func (c *impatient) Write(from []byte) (int, error) {
	if err := c.limit(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(from)
	return n, c.given(err)
}

// SetDeadline makes reads and writes fail at the given time, or at the timeout if that is
// earlier.
func (c *impatient) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.Conn.SetDeadline(at) //nolint:wrapcheck // as if it were not between
}

// limit sets the earlier one of the timeout and the caller's deadline.
func (c *impatient) limit(set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now().Add(c.atMost)
	if !c.deadline.IsZero() && c.deadline.Before(at) {
		at = c.deadline
	}
	return set(at)
}

// given closes a connection that has timed out.
func (c *impatient) given(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.mu.Lock()
	asked := !c.deadline.IsZero()
	c.mu.Unlock()
	if asked { // the caller's deadline has passed, and not the timeout
		return err
	}
	_ = c.Conn.Close() // the connection cannot be used any more
	if c.silent != nil {
		c.silent()
	}
	return fmt.Errorf("the server did not answer within %s: %w", c.atMost, err)
}

// apart opens a connection that is not in a pool and has no timeout for answers.
func (s *Store) apart(ctx context.Context) (conn *pgx.Conn, done func(), err error) {
	conn, err = pgx.ConnectConfig(ctx, s.plain.Copy())
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller adds context
	}
	return conn, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}, nil
}
