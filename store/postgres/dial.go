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

// parse reads a DSN. Its errors contain no part of the DSN: if a DSN cannot be parsed,
// any part of it may be the password.
func parse(dsn string) (*pgxpool.Config, error) {
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok && strings.HasPrefix(scheme, "postgres") {
		host, path, _ := strings.Cut(rest, "/")
		path, _, _ = strings.Cut(path, "?")
		if strings.Contains(host, ":") && !strings.Contains(host, "@") && strings.Contains(path, "@") {
			return nil, errors.New("cannot parse the DSN: there is an @ after its host: write a / in the password as %2F, and an @ in the database name as %40")
		}
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err == nil {
		return config, nil
	}
	what := "it is neither a URL nor keywords"
	if found, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		what = strings.TrimPrefix(found.Error(), pgconn.NewParseConfigError(found.ConnString, "", nil).Error())
		if cause := found.Unwrap(); cause != nil {
			what = strings.TrimSuffix(what, " ("+cause.Error()+")")
		}
	}
	return nil, fmt.Errorf("cannot parse the DSN: %s (it is a URL, such as postgres://user@host:5432/database, in which / @ : ? # %% of a password are escaped, such as %%2F, "+
		"or keywords, such as host=… dbname=…, with '…' around values with spaces)", what)
}

// patient makes connections fail if the server does not answer a request within
// the timeout. It then calls silent, if set.
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

// impatient is a connection with a timeout for answers. A connection is only read
// after a request, so silence means no answer. A context per request would do the
// same, at the cost of a goroutine each.
type impatient struct {
	net.Conn
	atMost time.Duration
	silent func()

	mu       sync.Mutex
	deadline time.Time // deadline set by the caller, zero for none
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

// SetDeadline makes reads and writes fail at the given time or earlier.
func (c *impatient) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.Conn.SetDeadline(at) //nolint:wrapcheck // as if it were not between
}

// limit sets the earlier of the two deadlines.
func (c *impatient) limit(set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now().Add(c.atMost)
	if !c.deadline.IsZero() && c.deadline.Before(at) {
		at = c.deadline
	}
	return set(at)
}

// given closes a connection that timed out, without waiting.
func (c *impatient) given(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.mu.Lock()
	asked := !c.deadline.IsZero()
	c.mu.Unlock()
	if asked { // the caller's own deadline
		return err
	}
	_ = c.Conn.Close() // the connection is useless
	if c.silent != nil {
		c.silent()
	}
	return fmt.Errorf("the server was silent for %s: %w", c.atMost, err)
}

// apart opens a connection outside of the pools, without the timeout.
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
