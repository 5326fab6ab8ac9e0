// Command http is a service for many users: each user has sessions, posts messages and watches
// events, also after a lost connection. On SIGTERM it finishes its turns and stops.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/sqlite"
)

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the address to listen on")
	file := flag.String("db", "http.db", "the SQLite file that keeps the sessions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err == nil {
		fmt.Fprintf(os.Stdout, "Open http://%s and log in as ann (apple) or bob (pear).\n", listener.Addr())
		err = run(ctx, listener, *file, model())
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// docs:begin run

// run serves until ctx is done, which is what SIGTERM does. Then it takes no more turns, and
// waits for those that run.
func run(ctx context.Context, listener net.Listener, file string, model belay.Model) error {
	store, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	agent, err := belay.New(model, &belay.Options{
		Store: store, Tools: []belay.Tool{clock}, RefuseBusy: true,
		ReleaseIdle: true, // keep no idle session in memory
	})
	if err != nil {
		return err
	}
	users := map[string]string{"ann": "apple", "bob": "pear"}
	server := &http.Server{Handler: (&service{agent, store, users}).handler(), ReadHeaderTimeout: 10 * time.Second}
	served, closed := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return errors.Join(err, agent.Close(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	go func() { closed <- agent.Close(drain) }() // waits for the turns, and then ends the event streams
	err = server.Shutdown(drain)                 // waits for the requests: turns and event streams
	if err != nil {
		_ = server.Close() // they take too long: this aborts the turns
	}
	return errors.Join(err, <-closed)
}

// docs:end run
