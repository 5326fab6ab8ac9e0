package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/serve/api"
)

// watch reads the events of a session until the stream ends. It returns them as position and
// kind, and errors as text.
func watch(ctx context.Context, c *client.Client, after string) (events []string, last error) {
	for e, err := range c.Events(ctx, "s", after) {
		if m, ok := errors.AsType[*belay.MissedError](err); ok {
			events = append(events, fmt.Sprint("missed ", m.Missed))
			continue
		}
		if err != nil {
			return events, err
		}
		events = append(events, e.Position+" "+string(e.Kind)+" "+e.Text)
	}
	return events, nil
}

// A stream continues after the last event when the connection is lost, waits as long as the
// server asks, and reports what it missed. The problem at the end is its error.
//
// SPEC V-03, V-04
func TestEventsContinue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cut := stream(": connected", "", "id: 1", "event: turn_start", `data: {"type":"turn_start"}`, "", "retry: 3000", "", "id: 1", "event: text_delta", `data: {"type":"text_delta",`, `data: "text":"hi"}`, "", "id: 2", "event: model_resp")
		cut.broken = errBroken
		busy := problem(503, "server.draining", "")
		busy.header["Retry-After"] = "9"
		rest := stream("event: missed", `data: {"missed":2}`, "", "id: 2\r", "event: model_response\r", `data: {"type":"model_response"}`+"\r", "\r", "id: 2-end-1-end_turn", "event: turn_end", `data: {"type":"turn_end"}`, "")
		over := stream("event: problem", `data: {"status":401,"code":"auth.required","detail":"the token was revoked or rotated"}`, "")
		c, server := dial(t, 0, cut, answer{err: errBroken}, busy, rest, over)
		events, err := watch(t.Context(), c, "0")
		if diff := cmp.Diff([]string{"1 turn_start ", "1 text_delta hi", "missed 2", "2 model_response ", "2-end-1-end_turn turn_end "}, events); diff != "" {
			t.Error(diff)
		}
		if !errors.Is(err, api.ErrDenied) || err.Error() != "the token was revoked or rotated" {
			t.Errorf("the error is %v", err)
		}
		var last []string
		for _, r := range server.requests {
			last = append(last, r.last)
		}
		if diff := cmp.Diff([]string{"0", "1", "1", "1", "2-end-1-end_turn"}, last); diff != "" {
			t.Errorf("Last-Event-ID: %s", diff)
		}
		if pause := server.requests[1].at.Sub(server.requests[0].at); pause < 1500*time.Millisecond || pause > 3*time.Second {
			t.Errorf("it connects again after %s, and the server asks for 3s", pause)
		}
		if pause := server.requests[3].at.Sub(server.requests[2].at); pause != 9*time.Second {
			t.Errorf("it connects again after %s, and the server asks for 9s", pause)
		}
	})
}

// A silent connection is dead, because the server sends a comment every 15 seconds. The stream
// connects again.
//
// SPEC V-03, V-04
func TestSilentStreamsConnectAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := stream("id: 7", "event: turn_start", "data: {}", "")
		silent.silent = true
		c, server := dial(t, 0, silent, problem(404, "request.not_found", ""))
		events, err := watch(t.Context(), c, "")
		if len(events) != 1 || !errors.Is(err, belay.ErrNotFound) || len(server.requests) != 2 || server.requests[1].last != "7" {
			t.Errorf("events %q, requests %+v, error %v", events, server.requests, err)
		}
	})
}

// A stream does not try for ever: not if the server never answered, and after a lost connection
// only as long as the options say. It ends without an error when its context ends.
//
// SPEC V-04
func TestStreamsGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, server := dial(t, time.Hour, answer{err: errBroken})
		if _, err := watch(t.Context(), c, ""); !errors.Is(err, errBroken) || len(server.requests) != 4 {
			t.Errorf("a server that does not run: %d tries, %v", len(server.requests), err)
		}
		began := time.Now()
		c, server = dial(t, 10*time.Minute, stream("event: turn_start", "data: {}", ""), answer{err: errBroken})
		_, err := watch(t.Context(), c, "")
		if took := time.Since(began); !errors.Is(err, errBroken) || took < 10*time.Minute || took > 11*time.Minute || len(server.requests) > 100 {
			t.Errorf("a server that is gone: %d tries in %s, %v", len(server.requests), took, err)
		}
		c, server = dial(t, time.Minute, stream("event: problem", `data: {"status":500,"detail":"the server failed"}`, ""))
		if _, err := watch(t.Context(), c, ""); err == nil || err.Error() != "the server failed" || len(server.requests) < 2 || len(server.requests) > 100 {
			t.Errorf("a server that fails: %d tries, %v", len(server.requests), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		quiet := stream("event: turn_start", "data: {}", "")
		quiet.silent = true
		c, _ = dial(t, 0, quiet)
		if events, err := watch(ctx, c, ""); err != nil || len(events) == 0 {
			t.Errorf("the context has ended: %q, %v", events, err)
		}
	})
}

// The stream of everything begins with a snapshot. The stream of hook runs lists earlier records
// once, and continues after a lost connection with the id of the last record.
//
// SPEC V-03, V-04
func TestOtherStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := problem(404, "request.not_found", "")
		c, _ := dial(t, 0, stream("id: 5", "event: snapshot", `data: {"sessions":[{"session":"a"}],"approvals":[]}`, "", "id: 6", "event: turn_end", `data: {"session":"b","reason":"end_turn"}`, ""), over)
		var got []string
		for change, err := range c.AllEvents(t.Context(), "") {
			if err != nil {
				break
			}
			line := change.ID + " " + change.Kind + " " + change.Session
			if change.Snapshot != nil {
				line += change.Snapshot.Sessions[0].Session
			}
			got = append(got, line)
		}
		run := func(id, at string) string { return `{"id":"` + id + `","started":"2026-11-18T10:00:0` + at + `Z"}` }
		c, server := dial(t, 0,
			stream("id: 7", "event: position", "data: {}", ""),
			answer{status: 200, body: `{"runs":[` + run("r2", "2") + "," + run("r1", "1") + `]}`},
			stream("id: 7", "event: position", "data: {}", "", "id: 9", "event: run", "data: "+run("r3", "3"), ""), stream(""), over)
		for r, err := range c.RunEvents(t.Context(), api.RunEvents{}, time.Date(2026, 11, 18, 10, 0, 1, 0, time.UTC)) {
			if err != nil {
				break
			}
			got = append(got, r.ID)
		}
		if diff := cmp.Diff([]string{"5 snapshot a", "6 turn_end b", "r1", "r2", "r3"}, got); diff != "" {
			t.Error(diff)
		}
		if uri := server.requests[1].uri; !strings.Contains(uri, "since=2026-11-18T10%3A00%3A01Z") {
			t.Errorf("the earlier records are asked for with %s", uri)
		}
		for i, want := range map[int]string{0: "", 2: "7", 3: "9"} {
			if last := server.requests[i].last; last != want {
				t.Errorf("connection %d continues after %q, want %q", i, last, want)
			}
		}
	})
}

// Whatever a server sends, a stream ends, and no event is larger than the limit.
func FuzzEvents(f *testing.F) {
	f.Add("id: 1\nevent: turn_start\ndata: {}\n\n")
	f.Add("retry: -1\nretry: 99999999999999999999\nid: \x00\n: comment\ndata\ndata:\n\nevent: missed\ndata: {}\n\n")
	f.Add("event: problem\ndata: {\n\n\r\n\r")
	f.Fuzz(func(t *testing.T, text string) {
		synctest.Test(t, func(t *testing.T) {
			answer := stream(text)
			c, _ := dial(t, 0, answer, problem(404, "request.not_found", ""))
			if _, err := watch(t.Context(), c, ""); err == nil {
				t.Error("the stream ends without the error of the server")
			}
		})
	})
}
