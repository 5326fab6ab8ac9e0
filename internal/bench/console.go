package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/serve/api"
)

// consolePromises are the promises about the pages of the console.
func consolePromises() []promise {
	return []promise{
		{"console-sessions", 3, func() (float64, error) { return consolePage("/sessions", true) }},
		{"console-sessions-100k", 1.5, func() (float64, error) { return consolePage("/sessions", false) }},
		{"console-session", 3, func() (float64, error) { return consolePage("/sessions/long", true) }},
		{"console-session-5k", 1.5, func() (float64, error) { return consolePage("/sessions/long", false) }},
	}
}

// consolePage measures a page of the console, with 100,000 sessions of which one has 5,000
// messages. The floor is the same queries over the API alone, or else the same page with 100
// sessions and 100 messages.
func consolePage(path string, againstQueries bool) (figure float64, err error) {
	large, err := newConsole(100_000, 5000)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, large.close()) }()
	page := func(c *consoleBench) func(n int) {
		return func(n int) {
			for range n {
				must(c.page(path))
			}
		}
	}
	if !againstQueries {
		small, err := newConsole(100, 100)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, small.close()) }()
		return ratioOf(page(large), page(small), 4), nil
	}
	return ratioOf(page(large), func(n int) {
		for range n {
			must(large.queries(path))
		}
	}, 4), nil
}

// consoleBench is a server with a user who has logged in.
type consoleBench struct {
	*servedHost

	client *client.Client
	http   http.Client
	cookie *http.Cookie
}

func newConsole(sessions, messages int) (c *consoleBench, err error) {
	c = &consoleBench{}
	if c.servedHost, err = newServedHost(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.servedHost.close())
		}
	}()
	if err := c.fillSessions(sessions); err != nil {
		return nil, err
	}
	if err := c.fillMessages(messages); err != nil {
		return nil, err
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.client, err = client.New("http://"+c.addr, c.secret, &client.Options{HTTP: &http.Client{}}); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr+"/login", strings.NewReader(url.Values{"token": {c.secret}}.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if len(resp.Cookies()) != 1 {
		return nil, fmt.Errorf("the login answers %s", resp.Status)
	}
	c.cookie = resp.Cookies()[0]
	return c, nil
}

// fillMessages stores the session "long" with many messages, two for each turn.
func (c *consoleBench) fillMessages(count int) (err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.dir, ".belay", "belay.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state, title)
		VALUES ('long', 0, '', 1, 1800000000000000000, ?1, ?1, 0, 0, '', '{"turns":1,"last":"end_turn"}', 'a long session')`, count)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
		INSERT INTO messages (session, seq, body)
		SELECT 'long', n, '{"seq":' || n || ',"turn":"t' || ((n + 1) / 2) || '","role":"' || CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END || '","kind":"' || CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END ||
			'","parts":[{"type":"text","text":"Some **words** about the number ' || n || ', and a list:\n\n- one\n- two"}],"time":"2026-11-18T10:00:00Z"}' FROM numbers`, count)
	return err
}

// page loads a page.
func (c *consoleBench) page(path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+path, http.NoBody)
	if err != nil {
		return err
	}
	r.AddCookie(c.cookie)
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page %s answers %s: %s", path, resp.Status, data)
	}
	return err
}

// queries sends the requests of a page.
func (c *consoleBench) queries(path string) error {
	_, err := c.client.ReadSelf(ctx)
	if err == nil {
		_, err = c.client.ListApprovals(ctx, api.ListApprovals{Limit: 200})
	}
	if err != nil {
		return err
	}
	if path == "/sessions" {
		_, err = c.client.ListSessions(ctx, api.ListSessions{Limit: 50})
		if err == nil {
			_, err = c.client.ListModels(ctx)
		}
		return err
	}
	const session = "long"
	_, err = c.client.ReadSession(ctx, session)
	if err == nil {
		_, err = c.client.ListMessages(ctx, api.ListMessages{Session: session, Newest: true, Limit: 100})
	}
	var turns api.TurnList
	if err == nil {
		turns, err = c.client.ListTurns(ctx, api.ListTurns{Session: session, Limit: 20})
	}
	if err == nil {
		_, err = c.client.ListQueue(ctx, session)
	}
	if err == nil {
		_, err = c.client.ReadTimeline(ctx, api.ReadTimeline{Session: session, Turn: turns.Turns[0].ID})
	}
	return err
}
