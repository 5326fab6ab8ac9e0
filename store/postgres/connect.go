package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belay-run/belay/store/internal/table"
)

// connect creates the connection pools. They open connections when they are first used.
func (s *Store) connect(ctx context.Context, dsn string) error {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	conn := config.ConnConfig
	s.id, s.name = rand.Text(), conn.Database+" at "+address(conn.Host, conn.Port)
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "belay"
	}
	// If a process is stopped in the middle of a transaction, the server must release its
	// locks.
	conn.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(max(s.lease()/2, time.Second).Milliseconds(), 10)
	config.AfterConnect = durable
	config.PingTimeout = cmp.Or(config.PingTimeout, s.opts.Timeout/2)
	switch {
	case s.opts.MaxConns > 0:
		config.MaxConns = int32(min(s.opts.MaxConns, 1<<15))
	case !strings.Contains(dsn, "pool_max_conns"):
		config.MaxConns = 16
	}
	s.plain = conn.Copy()
	s.plain.ConnectTimeout = cmp.Or(s.plain.ConnectTimeout, s.opts.Timeout)
	pulse := config.Copy()
	// Heartbeats use one connection. The limit is higher, because a closed connection
	// counts for a while.
	pulse.MaxConns, pulse.MinConns, pulse.MinIdleConns = 8, 0, 0
	pulse.ConnConfig = s.plain.Copy()
	// If one connection times out, the pool closes all others, too. A network that has
	// dropped one connection has usually dropped all of them.
	patient(&conn.Config, s.opts.Timeout, func() { s.pool.Reset() })
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err //nolint:wrapcheck // Open adds context
	}
	if s.pulse, err = pgxpool.NewWithConfig(ctx, pulse); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	s.db = stdlib.OpenDBFromPool(s.pool)
	s.read = table.New(s.bind(s.db))
	return s.openQueue()
}

// durable turns synchronous_commit on if it is off. Then a commit is on the disk when the
// server confirms it.
func durable(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err //nolint:wrapcheck // Open adds context
}

func address(host string, port uint16) string {
	if strings.HasPrefix(host, "/") { // a Unix socket
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func (s *Store) bind(db table.DBTX) bound { return bound{db, s} }
