package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// mostPause is the longest pause before a restart.
const mostPause = 30 * time.Second

// The pause before a restart doubles up to the limit and then stays there. A first pause
// above the limit is cut to the limit.
//
// SPEC E-09
func TestPausesGrowAndAreBounded(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]time.Duration{"by default": 100 * time.Millisecond, "very short": time.Microsecond, "very long": 1000 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				starts := make(chan time.Time)
				server := mcptool.Server{Name: "s", Command: "x", Prepare: func(ctx context.Context, _ []string) ([]string, error) {
					select {
					case starts <- time.Now():
					case <-ctx.Done():
					}
					return nil, errors.New("not now")
				}}
				opts := &mcptool.Options{Wait: -1, Backoff: first}
				if name == "by default" {
					opts.Backoff = 0
				}
				open(t, opts, server)
				want, last := min(first, mostPause), <-starts
				for n := range 40 {
					at := <-starts
					if pause := at.Sub(last); pause != want {
						t.Errorf("pause %d is %s, want %s", n+1, pause, want)
					}
					want, last = min(2*want, mostPause), at
				}
				if want != mostPause {
					t.Errorf("the bound was not reached: %s", want)
				}
			})
		})
	}
}

// If a server answered a call or was ready for long, the pause before its restart is as
// short as the first pause. The pause grows if the server fails slowly or ends soon after
// it was ready.
//
// SPEC E-09
func TestWhoLivedWellIsStartedAgainSoon(t *testing.T) {
	t.Parallel()
	web := &onOff{handler: answering(func(w http.ResponseWriter, tool string, id json.RawMessage) {
		if tool == "refuse" {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, id)
			return
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"answered"}]}}`, id)
	}, "answer", "refuse")}
	first := 100 * time.Millisecond
	lives := []struct {
		name  string
		slow  time.Duration // time until the start ends
		fails bool          // whether the start fails
		ready time.Duration
		call  string
		pause time.Duration // the pause after this run of the server
	}{
		{name: "the first fails", fails: true, pause: first},
		{name: "so does the second", fails: true, pause: 2 * first},
		{name: "one that fails late has not lived well", slow: 2 * mostPause, fails: true, pause: 4 * first},
		{name: "nor one that is soon gone", slow: 2 * mostPause, ready: mostPause / 2, pause: 8 * first},
		{name: "one that was ready for long has", ready: mostPause + time.Second, pause: first},
		{name: "deaths count from there on", ready: mostPause / 2, pause: 2 * first},
		{name: "one that answered a call has lived well", ready: mostPause / 2, call: "s__answer", pause: first},
		{name: "deaths count again", fails: true, pause: 2 * first},
		{name: "to refuse is an answer, too", call: "s__refuse", pause: first},
		{name: "and deaths count again", fails: true, pause: 2 * first},
	}
	synctest.Test(t, func(t *testing.T) {
		starts, failing := make(chan time.Time), make(chan error)
		server := mcptool.Server{Name: "s", URL: "http://127.0.0.1/mcp", Prepare: func(ctx context.Context, _ []string) ([]string, error) {
			select {
			case starts <- time.Now():
				return nil, <-failing
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		e := open(t, &mcptool.Options{Wait: -1, Backoff: first, Transport: web}, server) // no real network: a fake clock does not work with sockets
		<-starts
		for _, life := range lives {
			<-time.After(life.slow)
			if life.fails {
				failing <- errors.New("not now")
			} else {
				failing <- nil
				await(t, e, "s", inState(mcptool.StateReady))
				if life.call != "" {
					if r := call(t, e, life.call, `{}`); r.Class == belay.ClassUnavailable {
						t.Errorf("%s: result = %+v", life.name, r)
					}
				}
				<-time.After(life.ready)
				web.off = true
				if r := call(t, e, "s__answer", `{}`); r.Class != belay.ClassUnavailable {
					t.Errorf("%s: it does not die: %+v", life.name, r)
				}
				web.off = false
			}
			died := time.Now()
			if pause := (<-starts).Sub(died); pause != life.pause {
				t.Errorf("%s: the pause is %s, want %s", life.name, pause, life.pause)
			}
		}
		failing <- errors.New("enough")
	})
}

// onOff is a transport without a network, which can be switched off.
type onOff struct {
	handler http.Handler
	off     bool
}

func (o *onOff) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.off {
		return nil, syscall.ECONNREFUSED
	}
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// answering is an HTTP server without sessions. It has the given tools, and f answers
// their calls.
func answering(f func(w http.ResponseWriter, tool string, id json.RawMessage), tools ...string) http.Handler {
	var listed []map[string]any
	for _, name := range tools {
		listed = append(listed, map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}})
	}
	results := map[string]any{
		"initialize": map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "web", "version": "0"}},
		"tools/list": map[string]any{"tools": listed},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		result, known := results[m.Method]
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "tools/call":
			f(w, m.Params.Name, m.ID)
		case known:
			_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
		}
	})
}
