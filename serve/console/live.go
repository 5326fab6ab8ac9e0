package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
)

// A page follows changes with one stream, /live. The stream says what has changed, and
// console.js loads that part of the page again. So a page is right after every reconnect. Only
// the text that a model is writing comes in the stream itself.

// news is one event of the stream for console.js.
type news struct {
	// What is changed: approvals, turns, runs (of hooks, if the page asks), session (messages of
	// the session of the page), text (a part of an answer), thinking, note (what a hook says, or
	// why it failed), or login (the token is no longer valid).
	What string `json:"what"`
	Text string `json:"text,omitempty"`
	// Title is the first line of a note, and Bad says that a hook failed.
	Title string `json:"title,omitempty"`
	Bad   bool   `json:"bad,omitempty"`
	// Fresh says that an attempt of the model begins again: forget the text that came before.
	Fresh bool `json:"fresh,omitempty"`
}

const (
	livePing    = 15 * time.Second
	liveTimeout = 10 * time.Second // how long a browser may take to read an event
	// liveAge is how long a stream stays open. The browser then connects again, which finds a
	// token that was revoked.
	liveAge = 30 * time.Minute
	// liveRuns is how often the stream says at most that hooks have run. A turn has many runs.
	liveRuns = time.Second
)

// live sends news until the browser leaves.
func (c *Console) live(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), liveAge)
	defer cancel()
	defer context.AfterFunc(c.draining, cancel)()
	out := &newsWriter{w: w, control: http.NewResponseController(w), cancel: cancel}
	_ = out.control.SetReadDeadline(time.Time{}) // ignore errors: tests use writers without deadlines
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out.text("retry: 1000\n\n")
	secret, ok := c.seal.token(r)
	apiClient, err := c.client(r, secret)
	if !ok || err != nil {
		out.send(news{What: "login"})
		return
	}
	var followers sync.WaitGroup
	followers.Go(func() { // ends with ctx
		for change, err := range apiClient.AllEvents(ctx, "") {
			if err != nil {
				out.fail(err)
				return
			}
			switch change.Kind {
			case "approval_requested", "approval_decided":
				out.send(news{What: "approvals"})
			case "snapshot": // something may have changed while there was no stream
				out.send(news{What: "approvals"})
				out.send(news{What: "turns"})
			default:
				out.send(news{What: "turns"})
			}
		}
	})
	if session := r.URL.Query().Get("session"); session != "" {
		followers.Go(func() { // ends with ctx
			for e, err := range apiClient.Events(ctx, session, r.URL.Query().Get("after")) {
				if _, missed := errors.AsType[*belay.MissedError](err); missed {
					continue
				}
				if err != nil {
					out.fail(err)
					return
				}
				out.event(&e)
			}
		})
	}
	if which := r.URL.Query().Get("runs"); which != "" {
		followers.Go(func() { out.follow(ctx, apiClient, which == "all") }) // ends with ctx
	}
	ping := time.NewTicker(livePing)
	defer ping.Stop()
	for {
		select {
		case <-ping.C:
			out.text(": ping\n\n")
		case <-ctx.Done():
			followers.Wait()
			return
		}
	}
}

// newsWriter writes the stream.
type newsWriter struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	cancel  context.CancelFunc
}

// follow sends news when hooks have run. It collects the runs of a moment, and sends the news
// for the last of them too.
func (o *newsWriter) follow(ctx context.Context, from *client.Client, all bool) {
	ran := make(chan struct{}, 1) // full: there is something to send
	var sender sync.WaitGroup
	defer sender.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sender.Go(func() { // ends with ctx
		pause := time.NewTicker(liveRuns)
		defer pause.Stop()
		for {
			select {
			case <-ran:
				o.send(news{What: "runs"})
			case <-ctx.Done():
				return
			}
			select {
			case <-pause.C:
			case <-ctx.Done():
				return
			}
		}
	})
	for _, err := range from.RunEvents(ctx, api.RunEvents{All: all}, time.Time{}) {
		if _, missed := errors.AsType[*belay.MissedError](err); err != nil && !missed {
			o.fail(err)
			return
		}
		select {
		case ran <- struct{}{}:
		default:
		}
	}
}

// event sends what the page of a session must know of an event.
func (o *newsWriter) event(e *belay.Event) {
	switch e.Kind {
	case belay.EventTextDelta:
		if e.Depth == 0 {
			o.send(news{What: "text", Text: e.Text})
		}
	case belay.EventThinkingDelta:
		if e.Depth == 0 {
			o.send(news{What: "thinking", Text: e.Text})
		}
	case belay.EventError:
		if e.Retry {
			o.send(news{What: "text", Fresh: true})
		}
		o.send(news{What: "session"})
	case belay.EventHookOutput:
		o.send(news{What: "note", Title: visible.OneLine(e.By) + " says", Text: visible.Clean(e.Text)})
	case belay.EventHookFailed:
		o.hookFailed(e)
		o.send(news{What: "session"})
	case belay.EventTokenConsumption, belay.EventToolProgress:
	default:
		o.send(news{What: "session"})
	}
}

// hookFailed sends why a hook failed, with the end of its error output. No store has this text.
func (o *newsWriter) hookFailed(e *belay.Event) {
	if e.Diagnostic == nil {
		return
	}
	title, text, _ := strings.Cut(visible.HookFailure(e.By, e.Diagnostic.Phase, e.Diagnostic.Message, e.Text), "\n")
	o.send(news{What: "note", Bad: true, Title: strings.ToUpper(title[:1]) + title[1:], Text: text})
}

// fail ends the stream. The browser connects again, unless the token is no longer valid.
func (o *newsWriter) fail(err error) {
	switch {
	case errors.Is(err, api.ErrDenied):
		o.send(news{What: "login"})
	case errors.Is(err, belay.ErrNotFound):
		o.send(news{What: "gone"})
	}
	o.cancel()
}

func (o *newsWriter) send(n news) {
	data, err := json.Marshal(n)
	if err != nil {
		return
	}
	o.text(fmt.Sprintf("data: %s\n\n", data))
}

func (o *newsWriter) text(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.control.SetWriteDeadline(time.Now().Add(liveTimeout)) // ignore errors: tests use writers without deadlines
	_, err := o.w.Write([]byte(text))
	if err == nil {
		err = o.control.Flush()
	}
	if err != nil {
		o.cancel()
	}
}
