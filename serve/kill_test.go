package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/store/postgres"
)

// These variables tell this test program to be a server, or a worker if it has no address.
// Without childDSN the store is the file of the project.
const (
	childDir  = "SERVE_TEST_DIR"
	childAddr = "SERVE_TEST_ADDR"
	childDSN  = "SERVE_TEST_DSN"
)

// takeover is how soon other processes take over the turns of a killed one.
const takeover = 2 * time.Second

// child serves a project, or runs its turns, until it is killed or gets SIGTERM. After
// SIGTERM nothing of it may be left.
func child(dir string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := beChild(ctx, dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "a process that has ended leaves goroutines:", err)
		os.Exit(1)
	}
}

func beChild(ctx context.Context, dir string) (err error) {
	gate := make(chan struct{})
	close(gate)
	opts := &host.Options{Dir: dir, UserDir: filepath.Join(dir, "user"), Environ: []string{}, Model: &model{gate: gate}, NoJobs: true}
	if dsn := os.Getenv(childDSN); dsn != "" {
		store, err := postgres.Open(ctx, dsn, &postgres.Options{Takeover: takeover, MaxConns: 8})
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		opts.Store = store
		opts.Settings = append(opts.Settings, host.Setting{Path: "mode", Value: "strict"})
	}
	h, err := host.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	addr := os.Getenv(childAddr)
	if addr == "" {
		return workAsChild(ctx, h)
	}
	workers := 4
	if opts.Store != nil {
		workers = 0
	}
	server, err := serve.New(h, &serve.Options{Tokens: serve.OpenTokens(filepath.Join(dir, "user", "belay", "tokens")), Workers: workers, Ping: time.Second, Rate: 1e6})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener)
}

// workAsChild runs turns until ctx ends.
func workAsChild(ctx context.Context, h *host.Host) error {
	worker, err := engine.New(h.Store().(engine.Store), h.Agent, &engine.Options{Grace: 2 * time.Second})
	if err != nil {
		return err
	}
	sharing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var shared sync.WaitGroup
	shared.Go(func() { h.Share(sharing) })
	err = worker.Run(ctx)
	stop()
	shared.Wait()
	return err
}

// beginChild starts a process of this test program.
func beginChild(t *testing.T, dir, addr, dsn string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childAddr+"="+addr, childDSN+"="+dsn)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// startChild starts a server process, and waits until it is ready.
func startChild(t *testing.T, dir, addr, dsn string) *exec.Cmd {
	t.Helper()
	cmd := beginChild(t, dir, addr, dsn)
	eventually(t, "the server is ready", func() bool {
		resp, err := http.Get("http://" + addr + "/readyz") //nolint:noctx // the test has its own deadline
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return cmd
}

// freeAddr returns an address on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Close() }()
	return free.Addr().String()
}

// The server is killed several times in the middle of turns that 50 clients follow. The
// clients reconnect with the last id that they have. In the end each has exactly the stored
// events: none is missing, and none came twice.
//
// SPEC V-03, V-07
func TestKilledServers(t *testing.T) {
	t.Parallel()
	const streams, kills = 50, 3
	dir := t.TempDir()
	secret, err := serve.OpenTokens(filepath.Join(dir, "user", "belay", "tokens")).Create("test", []serve.Role{serve.RoleAdmin}, nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	w := &world{t: t, dir: dir, url: "http://" + addr, secret: map[string]string{"test": secret}}
	server := startChild(t, dir, addr, "")
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		http.DefaultClient.CloseIdleConnections()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	sessions := make([]string, streams)
	for i := range sessions {
		sessions[i] = fmt.Sprintf("s%d", i)
		w.call("test", "POST", "/v1/sessions", map[string]any{"id": sessions[i]}, nil)
	}
	type client struct {
		mu       sync.Mutex
		got      []string
		sessions int // how often it connected
	}
	clients := make([]*client, streams)
	var following sync.WaitGroup
	for i, id := range sessions {
		c := &client{}
		clients[i] = c
		following.Go(func() {
			last := ""
			for ctx.Err() == nil {
				c.mu.Lock()
				c.sessions++
				c.mu.Unlock()
				_ = follow(ctx, w.url+"/v1/sessions/"+id+"/events", secret, last, func(e event) error { // the connection is lost with each kill
					if e.id != "" {
						last = e.id
					}
					if key := e.stored(); key != "" {
						c.mu.Lock()
						c.got = append(c.got, key)
						c.mu.Unlock()
					}
					return nil
				})
				select {
				case <-time.After(20 * time.Millisecond): // not a busy loop while the server is down
				case <-ctx.Done():
				}
			}
		})
	}
	const turns = 4
	for round := range kills + 1 {
		for _, id := range sessions {
			w.call("test", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "call list {}\ncall list {}\ntalk 20"}, nil)
		}
		if round == kills {
			break
		}
		eventually(t, "some client has an event of this round", func() bool {
			total := 0
			for _, c := range clients {
				c.mu.Lock()
				total += len(c.got)
				c.mu.Unlock()
			}
			return total > round*streams*4
		})
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = server.Wait()
		http.DefaultClient.CloseIdleConnections()
		server = startChild(t, dir, addr, "")
	}
	eventually(t, "all turns have ended", func() bool {
		for _, id := range sessions {
			var s struct {
				State string
				Turns int
			}
			w.call("test", "GET", "/v1/sessions/"+id, nil, &s)
			if s.State != "done" || s.Turns < turns {
				return false
			}
		}
		return true
	})
	for i, id := range sessions {
		want := w.everything("test", id, "0")
		c := clients[i]
		eventually(t, "client "+id+" has the last event", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.got) >= len(want)
		})
		c.mu.Lock()
		if diff := cmp.Diff(want, c.got); diff != "" || c.sessions <= kills {
			t.Errorf("client %s connected %d times, and its events differ from the stored ones:\n%s", id, c.sessions, diff)
		}
		c.mu.Unlock()
	}
	cancel()
	following.Wait()
}
