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

// parse reads a DSN. What is wrong with it is told in words of ours and of pgx that
// hold nothing of it: where a DSN cannot be read, nobody knows which part of it is the
// password.
func parse(dsn string) (*pgxpool.Config, error) {
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok && strings.HasPrefix(scheme, "postgres") {
		host, path, _ := strings.Cut(rest, "/")
		path, _, _ = strings.Cut(path, "?")
		if strings.Contains(host, ":") && !strings.Contains(host, "@") && strings.Contains(path, "@") {
			return nil, errors.New("cannot parse the DSN: there is an @ behind its host: spell a / of the password %2F, and an @ of the database's name %40")
		}
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err == nil {
		return config, nil
	}
	what := "it is neither"
	if found, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		what = strings.TrimPrefix(found.Error(), pgconn.NewParseConfigError(found.ConnString, "", nil).Error())
		if cause := found.Unwrap(); cause != nil {
			what = strings.TrimSuffix(what, " ("+cause.Error()+")")
		}
	}
	return nil, fmt.Errorf("cannot parse the DSN: %s (it is a URL, such as postgres://user@host:5432/database, in which a password's own / @ : ? # %% are spelled as %%2F is, "+
		"or words, such as host=… dbname=…, with '…' around what has spaces)", what)
}

// patient has connections of a configuration fail when the server says nothing for so
// long although it was asked something. silent, if there is one, is told.
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

// impatient is a connection on which no answer is waited for longer than so long. Only
// who has asked something reads from a connection, so silence there is no answer. A
// context for each question would do the same, and cost a goroutine each.
type impatient struct {
	net.Conn
	atMost time.Duration
	silent func()

	mu       sync.Mutex
	deadline time.Time // that was asked for, zero for none
}

// Read reads, for so long.
func (c *impatient) Read(to []byte) (int, error) {
	if err := c.limit(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(to)
	return n, c.given(err)
}

// Write writes, for so long.
func (c *impatient) Write(from []byte) (int, error) {
	if err := c.limit(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(from)
	return n, c.given(err)
}

// SetDeadline has reading and writing fail at a time, or before.
func (c *impatient) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.Conn.SetDeadline(at) //nolint:wrapcheck // as if it were not between
}

// limit sets the deadline that comes first.
func (c *impatient) limit(set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now().Add(c.atMost)
	if !c.deadline.IsZero() && c.deadline.Before(at) {
		at = c.deadline
	}
	return set(at)
}

// given ends a connection that was silent for too long: nobody waits for its last words.
func (c *impatient) given(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.mu.Lock()
	asked := !c.deadline.IsZero()
	c.mu.Unlock()
	if asked { // somebody has given up, or wants to know whether anything has come
		return err
	}
	_ = c.Conn.Close() // it is of no use
	if c.silent != nil {
		c.silent()
	}
	return fmt.Errorf("the server was silent for %s: %w", c.atMost, err)
}

// apart makes a connection that is not one of the pool's, and on which the server may
// take its time.
func (s *Store) apart(ctx context.Context) (conn *pgx.Conn, done func(), err error) {
	conn, err = pgx.ConnectConfig(ctx, s.plain.Copy())
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller says what for
	}
	return conn, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}, nil
}
