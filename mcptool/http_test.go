package mcptool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// host is an HTTP server in a process of its own, so that a test can kill and restart it.
type host struct {
	t    *testing.T
	kind string
	addr string
	desk *desk
	kill func()
}

func newHost(t *testing.T, kind string) *host {
	t.Helper()
	h := &host{t: t, kind: kind, addr: "127.0.0.1:0", desk: newDesk(t)}
	h.up()
	t.Cleanup(func() { h.kill() })
	return h
}

// up starts the server. A restarted server has the same address as before.
func (h *host) up() {
	h.t.Helper()
	process := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^$")
	process.Env = append(os.Environ(), serverVariable+"="+h.kind, raceVariable+"="+noPause, addrVariable+"="+h.addr, rollVariable+"="+h.desk.addr)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.kill = sync.OnceFunc(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // the error only says that it was killed
		mcptool.Guarded().CloseIdleConnections()
	})
	h.addr = h.desk.next().text
}

func (h *host) config(name string) mcptool.Server {
	return mcptool.Server{Name: name, URL: "http://" + h.addr + "/mcp", Headers: map[string]string{"X-Token": "${WEB_TOKEN}"}}
}

// SPEC E-09
func TestHTTP(t *testing.T) { //nolint:paralleltest // idle connections of the process are closed
	for _, kind := range []string{"http", "http-stateless"} { //nolint:paralleltest // likewise
		t.Run(kind, func(t *testing.T) {
			h := newHost(t, kind)
			e := open(t, quick(mcptool.Options{Environ: []string{"WEB_TOKEN=tok-en"}}), h.config("web"))
			if s := e.Servers()[0]; s.State != mcptool.StateReady || len(s.Tools) == 0 {
				t.Fatalf("status = %+v", s)
			}
			if r := call(t, e, "web__echo", `{"text":"hello"}`); r.Text != "hello" {
				t.Errorf("result = %+v", r)
			}
			if r := call(t, e, "web__big", `{"n":1048576}`); len(r.Text) != 1<<20 {
				t.Errorf("a result of 1 MiB has %d bytes", len(r.Text))
			}
			if r := call(t, e, "web__fail", `{}`); r.Class != belay.ClassFailed || r.Text != "no such ticket" {
				t.Errorf("result = %+v", r)
			}
			if kind == "http" { // a stateless server cannot announce changes
				if r := call(t, e, "web__change", `{"text":"A tool that was added."}`); r.IsError {
					t.Errorf("result = %+v", r)
				}
				await(t, e, "web", func(mcptool.Status) bool { return contains(names(e), "web__extra") })
			}
			h.kill()
			if r := call(t, e, "web__echo", `{"text":"hello"}`); r.Class != belay.ClassUnavailable || strings.Contains(r.Text, "effect") {
				t.Errorf("without a server: result = %+v, want unavailable, and no doubt about an effect", r)
			}
			await(t, e, "web", inState(mcptool.StateDown))
			h.up()
			await(t, e, "web", inState(mcptool.StateReady))
			if r := call(t, e, "web__echo", `{"text":"back"}`); r.Text != "back" {
				t.Errorf("with a server again: result = %+v", r)
			}
			shut(t, e)
		})
	}
}

// SPEC E-09
func TestHTTPCancel(t *testing.T) { //nolint:paralleltest // see TestHTTP
	h, said := newHost(t, "http"), newDesk(t)
	e := open(t, quick(mcptool.Options{Environ: []string{"WEB_TOKEN=tok-en"}}), h.config("web"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	waiting := tool(t, e, "web__wait")
	go func() {
		_, err := waiting.Call(ctx, &belay.Invocation{Input: json.RawMessage(`{"text":"` + said.addr + `"}`)})
		done <- err
	}()
	said.next()
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled call has a result")
	}
	if l := said.next(); l.text != "cancelled" {
		t.Errorf("the tool said %q, want that it was cancelled", l.text)
	}
	shut(t, e)
}

func TestHTTPFaults(t *testing.T) { //nolint:paralleltest // see TestHTTP
	h := newHost(t, "http")
	elsewhere := httptest.NewServer(http.RedirectHandler("http://"+h.addr+"/mcp", http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	unknown, led := h.config("unknown"), h.config("led")
	unknown.Headers = nil
	led.URL = elsewhere.URL
	e := open(t, quick(mcptool.Options{Environ: []string{"WEB_TOKEN=tok-en"}, Backoff: time.Hour}), unknown, led,
		mcptool.Server{Name: "plain", URL: plain.URL}, mcptool.Server{Name: "endless", URL: endless.URL}, mcptool.Server{Name: "nobody", URL: "http://127.0.0.1:1/mcp"})
	want := map[string]string{
		"unknown": "add your credentials under headers", "led": "Belay does not follow redirects", "plain": "Not Found",
		"endless": "more than 16 MiB", "nobody": "refused",
	}
	for _, s := range e.Servers() {
		if s.State != mcptool.StateDown || s.Err == nil || !strings.Contains(s.Err.Error(), want[s.Server.Name]) {
			t.Errorf("server %s: %s %v, want %q in it", s.Server.Name, s.State, s.Err, want[s.Server.Name])
		}
	}
	shut(t, e)
	mcptool.Guarded().CloseIdleConnections()
}

// An event that is longer than the message limit fails before it fills the memory. The
// same is true for an error response with the content type of an event stream. Belay then
// reconnects to the server. Other servers are not affected.
//
// SPEC E-09
func TestHTTPEventsAreBounded(t *testing.T) { //nolint:paralleltest // what the process takes of memory is measured, and see TestHTTP
	const mib = 1 << 20
	piece := bytes.Repeat([]byte("x"), mib)
	long := answering(func(w http.ResponseWriter, tool string, id json.RawMessage) {
		size := 512 * mib // Belay must read only a small part of this body
		w.Header().Set("Content-Type", "text/event-stream")
		switch tool {
		case "fits":
			size = 15 * mib
		case "small":
			size = mib
		case "refuses":
			w.WriteHeader(http.StatusBadRequest)
		}
		event := func(size int, begins, ends string) {
			_, _ = fmt.Fprint(w, "data: "+begins)
			for left := size; left > 0; left -= len(piece) {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
			_, _ = fmt.Fprint(w, ends+"\n\n")
		}
		if tool == "fits" { // a stream may be longer than the limit for one event
			event(2*mib, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"`, `"}}`)
		}
		event(size, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id), `"}]}}`)
	}, "fits", "grows", "refuses", "small")
	web, other := httptest.NewServer(long), httptest.NewServer(long)
	defer web.Close()
	defer other.Close()
	starts := make(chan struct{}, 10)
	server := mcptool.Server{Name: "web", URL: web.URL, Prepare: func(context.Context, []string) ([]string, error) {
		starts <- struct{}{}
		return nil, nil
	}}
	log := new(records)
	e := open(t, quick(mcptool.Options{Logger: log.logger()}), server, mcptool.Server{Name: "other", URL: other.URL})
	<-starts
	for name, want := range map[string]string{"web__grows": "it sent a message of more than 16 MiB", "web__refuses": "Bad Request"} {
		await(t, e, "web", inState(mcptool.StateReady))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := call(t, e, name, `{}`)
		runtime.ReadMemStats(&after)
		if r.Class != belay.ClassUnavailable || !strings.Contains(r.Text, want) {
			t.Errorf("%s: result = %.300q, want %q", name, r.Text, want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 320*mib { // a body of 16 MiB is copied several times, in two buffers
			t.Errorf("%s: it took %d MiB of memory", name, took/mib)
		}
		select {
		case <-starts: // Belay connects to web again
		case <-time.After(patience):
			t.Fatalf("%s: the server is not reached again", name)
		}
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s: the log:\n%s", name, log)
		}
		if r := call(t, e, "other__small", `{}`); len(r.Text) != mib {
			t.Errorf("the other server: a result of %d bytes, want 1 MiB", len(r.Text))
		}
	}
	await(t, e, "web", inState(mcptool.StateReady))
	if r := call(t, e, "web__fits", `{}`); len(r.Text) != 15*mib { // once: the race detector looks at every byte
		t.Errorf("afterwards: a result of %d bytes, want 15 MiB", len(r.Text))
	}
	shut(t, e)
	mcptool.Guarded().CloseIdleConnections()
}
