// Command support is a support bot: three typed tools, a gate that asks a person about
// refunds, approvals over HTTP that survive a restart, a fallback model, and structured
// output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the address to listen on")
	dir := flag.String("dir", ".", "the directory for the store and the ledger")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err == nil {
		fmt.Fprintf(os.Stdout, "Listening on http://%s\n", listener.Addr())
		err = run(ctx, listener, *dir)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// docs:begin run

func run(ctx context.Context, listener net.Listener, dir string) error {
	store, err := sqlite.Open(ctx, filepath.Join(dir, "support.db"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	shop := &shop{orders: demoOrders, ledger: filepath.Join(dir, "refunds.jsonl")}
	first, second := models()
	agent, err := belay.New(belay.Fallback(first, second), &belay.Options{
		Name: "support", Instructions: "You help customers of a shop. Find the order before you pay money back.",
		Store: store, Tools: shop.tools(), Hooks: []hook.Subscription{bigRefund},
		OnAsk:       belay.AskPark, // no request waits for a person
		ReleaseIdle: true, RefuseBusy: true,
	})
	if err != nil {
		return err
	}
	s := &service{agent: agent, store: store, approvers: map[string]string{"boss": "plum"}}
	if err := s.resumeOpen(ctx); err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return errors.Join(err, agent.Close(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(drain), agent.Close(drain))
}

// resumeOpen resumes the turns that a crash has interrupted, and those whose approval was decided
// while the service was down. Turns that still wait for a person stay parked.
func (s *service) resumeOpen(ctx context.Context) error {
	for info, err := range s.store.Sessions(ctx, belay.SessionFilter{Open: true}) {
		if err != nil {
			return err
		}
		if _, turn, err := belay.ResumeAnswer[Outcome](ctx, s.agent.Session(info.ID)); err != nil && !parked(turn) {
			slog.Error("cannot resume the turn", "session", info.ID, "error", err)
		}
	}
	return nil
}

// docs:end run
