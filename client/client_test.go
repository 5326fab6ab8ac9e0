package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/serve/api"
)

// operation is one operation in the OpenAPI document.
type operation struct {
	ID         string   `json:"operationId"` //nolint:tagliatelle // OpenAPI names it
	Tags       []string `json:"tags"`
	Parameters []struct {
		Name     string `json:"name"`
		In       string `json:"in"`
		Required bool   `json:"required"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]struct {
			Schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
				Required   []string                   `json:"required"`
			} `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"` //nolint:tagliatelle // OpenAPI names it
}

// readOperations reads the operations of the server, by method and path.
func readOperations(t *testing.T) map[string]operation {
	t.Helper()
	data, err := os.ReadFile("../serve/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]operation)
	for path, methods := range document.Paths {
		for method, op := range methods {
			all[strings.ToUpper(method)+" "+path] = op
		}
	}
	return all
}

// calls has a call of the client for each operation, with every field set.
var calls = map[string]func(context.Context, *client.Client) error{
	"countApprovals": func(ctx context.Context, c *client.Client) error {
		_, err := c.CountApprovals(ctx)
		return err
	},
	"readMedia": func(ctx context.Context, c *client.Client) error {
		_, err := c.ReadMedia(ctx, api.ReadMedia{Session: "x", Message: 1, Media: 1})
		return err
	},
	"createSession": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateSession(ctx, api.CreateSession{ID: "x", Title: "x", Labels: map[string]string{"x": "y"}})
		return err
	},
	"listSessions": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListSessions(ctx, api.ListSessions{Prefix: "x", Label: map[string]string{"x": "y"}, Open: true, State: "idle", Agent: "x", Text: "x", Since: time.Now(), Children: true, Limit: 1, After: "x"})
		return err
	},
	"readSession": func(ctx context.Context, c *client.Client) error { _, err := c.ReadSession(ctx, "x"); return err },
	"updateSession": func(ctx context.Context, c *client.Client) error {
		_, err := c.UpdateSession(ctx, api.UpdateSession{Session: "x", Title: new(string), Labels: map[string]string{"x": ""}})
		return err
	},
	"deleteSession": func(ctx context.Context, c *client.Client) error { return c.DeleteSession(ctx, "x") },
	"forkSession": func(ctx context.Context, c *client.Client) error {
		_, err := c.ForkSession(ctx, api.ForkSession{Session: "x", At: 1})
		return err
	},
	"listMessages": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListMessages(ctx, api.ListMessages{Session: "x", After: 1, Newest: true, Before: 1, Limit: 1, NoMedia: true})
		return err
	},
	"sessionEvents": func(ctx context.Context, c *client.Client) error { return first(c.Events(ctx, "x", "1")) },
	"allEvents":     func(ctx context.Context, c *client.Client) error { return first(c.AllEvents(ctx, "1")) },
	"startTurn": func(ctx context.Context, c *client.Client) error {
		_, err := c.StartTurn(ctx, api.StartTurn{Session: "x", Text: "x", Files: []api.File{{Name: "x", MIME: "x", Data: []byte("x")}}, Agent: "x", Model: "x", Wait: api.WaitEnd})
		return err
	},
	"listQueue":  func(ctx context.Context, c *client.Client) error { _, err := c.ListQueue(ctx, "x"); return err },
	"abortTurn":  func(ctx context.Context, c *client.Client) error { _, err := c.AbortTurn(ctx, "x", "x"); return err },
	"resumeTurn": func(ctx context.Context, c *client.Client) error { _, err := c.ResumeTurn(ctx, "x"); return err },
	"listTurns": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListTurns(ctx, api.ListTurns{Session: "x", Before: 1, Limit: 1})
		return err
	},
	"readTimeline": func(ctx context.Context, c *client.Client) error {
		_, err := c.ReadTimeline(ctx, api.ReadTimeline{Session: "x", Turn: "y", At: 1})
		return err
	},
	"hookStats": func(ctx context.Context, c *client.Client) error {
		_, err := c.HookStats(ctx, api.HookStats{Since: time.Now(), Limit: 1})
		return err
	},
	"listJobs": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListJobs(ctx, api.ListJobs{State: "waiting", Kind: "x", Session: "x", Limit: 1, After: "1"})
		return err
	},
	"retryJob":  func(ctx context.Context, c *client.Client) error { _, err := c.RetryJob(ctx, "x"); return err },
	"cancelJob": func(ctx context.Context, c *client.Client) error { _, err := c.CancelJob(ctx, "x"); return err },
	"listApprovals": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListApprovals(ctx, api.ListApprovals{Session: "x", All: true, Undecided: true, Limit: 1, After: "x"})
		return err
	},
	"readApproval": func(ctx context.Context, c *client.Client) error { _, err := c.ReadApproval(ctx, "x"); return err },
	"decideApproval": func(ctx context.Context, c *client.Client) error {
		_, err := c.DecideApproval(ctx, api.DecideApproval{Approval: "x", Hash: "x", Scope: "pattern", Pattern: "x", Reason: "x", Answer: new(string)})
		return err
	},
	"listGrants": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListGrants(ctx, api.ListGrants{Session: "x", Limit: 1, After: "x"})
		return err
	},
	"revokeGrant":  func(ctx context.Context, c *client.Client) error { return c.RevokeGrant(ctx, "x", "y") },
	"withdrawTurn": func(ctx context.Context, c *client.Client) error { return c.WithdrawTurn(ctx, "x", "y") },
	"listRuns": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListRuns(ctx, api.ListRuns{Session: "x", Turn: "x", Phase: "x", Subscription: "x", State: []string{"x", "y"}, Since: time.Now(), Until: time.Now(), All: true, Limit: 1})
		return err
	},
	"runEvents": func(ctx context.Context, c *client.Client) error {
		return first(c.RunEvents(ctx, api.RunEvents{After: "1", Session: "x", All: true}, time.Time{}))
	},
	"readRun":    func(ctx context.Context, c *client.Client) error { _, err := c.ReadRun(ctx, "x", "y"); return err },
	"explainRun": func(ctx context.Context, c *client.Client) error { _, err := c.ExplainRun(ctx, "x", "y"); return err },
	"listHooks":  func(ctx context.Context, c *client.Client) error { _, err := c.ListHooks(ctx); return err },
	"planHooks": func(ctx context.Context, c *client.Client) error {
		_, err := c.PlanHooks(ctx, api.PlanHooks{Phase: "x", Agent: "x"})
		return err
	},
	"hookGraph": func(ctx context.Context, c *client.Client) error {
		_, err := c.HookGraph(ctx, api.PlanHooks{Phase: "x", Agent: "x"})
		return err
	},
	"hookTrust":   func(ctx context.Context, c *client.Client) error { _, err := c.HookTrust(ctx); return err },
	"readWorkers": func(ctx context.Context, c *client.Client) error { _, err := c.ReadWorkers(ctx); return err },
	"listSkills":  func(ctx context.Context, c *client.Client) error { _, err := c.ListSkills(ctx); return err },
	"listAgents":  func(ctx context.Context, c *client.Client) error { _, err := c.ListAgents(ctx); return err },
	"listModels":  func(ctx context.Context, c *client.Client) error { _, err := c.ListModels(ctx); return err },
	"readUsage": func(ctx context.Context, c *client.Client) error {
		_, err := c.ReadUsage(ctx, api.ReadUsage{Label: map[string]string{"x": "y"}, Since: time.Now(), Until: time.Now(), By: "day"})
		return err
	},
	"askAudit": func(ctx context.Context, c *client.Client) error {
		_, err := c.AskAudit(ctx, api.AskAudit{Question: "x", Since: time.Now(), Session: "x", Label: map[string]string{"x": "y"}, By: "day", Limit: 1})
		return err
	},
	"backtest": func(ctx context.Context, c *client.Client) error {
		_, err := c.Backtest(ctx, api.Backtest{Mode: "x", Rules: "x", Since: time.Now(), Session: "x", Label: map[string]string{"x": "y"}, Limit: 1})
		return err
	},
	"readSelf": func(ctx context.Context, c *client.Client) error { _, err := c.ReadSelf(ctx); return err },
}

// first returns the error of the first value of a stream.
func first[V any](all func(yield func(V, error) bool)) error {
	for _, err := range all {
		return err
	}
	return nil
}

// Every operation of the server has a method, which sends every parameter and every field where
// the server expects it, and nothing else.
//
// SPEC V-04
func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	operations := readOperations(t)
	maps.DeleteFunc(operations, func(_ string, op operation) bool { return slices.Contains(op.Tags, "openai") }) // for the clients of OpenAI
	for at, op := range operations {
		call, ok := calls[op.ID]
		if !ok {
			t.Errorf("the client has no method for %s (%s): add one, and a call of it to this test", op.ID, at)
			continue
		}
		t.Run(op.ID, func(t *testing.T) {
			t.Parallel()
			answer := answer{status: 200, body: "{}"}
			if strings.HasSuffix(op.ID, "Events") {
				answer = stream("event: turn_start", "data: {}", "")
			}
			c, server := dial(t, time.Nanosecond, answer)
			if err := call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			sent := server.requests[0]
			method, pattern, _ := strings.Cut(at, " ")
			u, err := url.ParseRequestURI(sent.uri)
			if err != nil {
				t.Fatal(err)
			}
			want := regexp.MustCompile(`^/prefix` + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(pattern, `[xy1]`) + `$`)
			if sent.method != method || !want.MatchString(u.Path) {
				t.Errorf("it sends %s %s, want %s", sent.method, u.Path, at)
			}
			var parameters []string
			for _, p := range op.Parameters {
				if p.In == "query" && (p.Name != "after" || sent.last == "") { // a stream sends it as a header
					parameters = append(parameters, p.Name)
				}
			}
			if diff := cmp.Diff(sorted(parameters), sorted(keys(u.Query()))); diff != "" {
				t.Errorf("the query parameters: %s", diff)
			}
			var fields []string
			if op.Body != nil {
				fields = keys(op.Body.Content["application/json"].Schema.Properties)
			}
			body := make(map[string]any)
			if sent.body != "" {
				if err := json.Unmarshal([]byte(sent.body), &body); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(sorted(fields), sorted(keys(body))); diff != "" {
				t.Errorf("the fields of the body: %s", diff)
			}
		})
	}
	if len(calls) != len(operations) {
		t.Errorf("the test calls %d methods, and the server has %d operations", len(calls), len(operations))
	}
}

func keys[V any, M ~map[string]V](all M) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	return names
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }

// Fields with their zero value are left out, so that the server uses its defaults. Ids in the
// path are escaped, and cannot name another operation.
//
// SPEC V-04
func TestRequestsAreEncoded(t *testing.T) {
	t.Parallel()
	c, server := dial(t, 0, answer{status: 200, body: "{}"})
	ctx := t.Context()
	text := ""
	for _, call := range []func() error{
		func() error { _, err := c.ListSessions(ctx, api.ListSessions{}); return err },
		func() error { _, err := c.ReadSession(ctx, "parent/a b?c#d"); return err },
		func() error { _, err := c.StartTurn(ctx, api.StartTurn{Session: "a/b", Text: "hi"}); return err },
		func() error {
			_, err := c.DecideApproval(ctx, api.DecideApproval{Approval: "ap-1", Hash: "h"})
			return err
		},
		func() error {
			_, err := c.UpdateSession(ctx, api.UpdateSession{Session: "s", Title: &text})
			return err
		},
		func() error { _, err := c.ForkSession(ctx, api.ForkSession{Session: "s"}); return err },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range server.requests {
		got = append(got, strings.TrimSpace(r.method+" "+r.uri+" "+r.body))
	}
	if diff := cmp.Diff([]string{
		"GET /prefix/v1/sessions",
		"GET /prefix/v1/sessions/parent%2Fa%20b%3Fc%23d",
		`POST /prefix/v1/sessions/a%2Fb/turns {"text":"hi"}`,
		`POST /prefix/v1/approvals/ap-1/decision {"allow":false,"hash":"h"}`,
		`PATCH /prefix/v1/sessions/s {"title":""}`,
		`POST /prefix/v1/sessions/s/fork {}`,
	}, got); diff != "" {
		t.Error(diff)
	}
	for _, id := range []string{"", ".", ".."} {
		before := len(server.requests)
		_, read := c.ReadSession(ctx, id)
		_, started := c.StartTurn(ctx, api.StartTurn{Session: id, Text: "hi"})
		if read == nil || started == nil || first(c.Events(ctx, id, "")) == nil || len(server.requests) != before {
			t.Errorf("the id %q is sent", id)
		}
	}
}

// Problem documents become errors that errors.Is and errors.As understand.
//
// SPEC V-04, V-08
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer answer
		is     []error
		isNot  []error
	}{
		{problem(404, "request.not_found", ""), []error{belay.ErrNotFound}, []error{api.ErrConflict, api.ErrDenied, belay.ErrHeld}},
		{problem(409, "session.held", ""), []error{belay.ErrHeld, belay.ErrBusy, api.ErrConflict}, []error{belay.ErrNotFound, belay.ErrDecided}},
		{problem(409, "approval.decided", ""), []error{belay.ErrDecided, api.ErrConflict}, []error{belay.ErrHeld}},
		{problem(409, "turn.none", ""), []error{belay.ErrNoTurn, api.ErrConflict}, nil},
		{problem(401, "auth.required", ""), []error{api.ErrDenied}, []error{api.ErrConflict}},
		{problem(403, "auth.forbidden", ""), []error{api.ErrDenied}, []error{belay.ErrNotFound}},
		{problem(422, "request.invalid", "/text"), nil, []error{api.ErrConflict, api.ErrDenied, belay.ErrNotFound}},
	} {
		c, _ := dial(t, 0, test.answer)
		_, err := c.StartTurn(t.Context(), api.StartTurn{Session: "s", Text: "hi"})
		p, ok := errors.AsType[*api.Problem](err)
		if !ok || p.Status != test.answer.status || p.Code == "" || p.Detail != "the detail" || err.Error() != "the detail" || test.answer.status == 422 && p.Field != "/text" {
			t.Errorf("%d becomes %#v", test.answer.status, err)
		}
		for _, want := range test.is {
			if !errors.Is(err, want) {
				t.Errorf("%s is not %v", p.Code, want)
			}
		}
		for _, other := range test.isNot {
			if errors.Is(err, other) {
				t.Errorf("%s is %v", p.Code, other)
			}
		}
	}
}

// An answer that no Belay server sends is an error that says so. It is never taken for success.
//
// SPEC V-04
func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	html := map[string]string{"Content-Type": "text/html"}
	for _, test := range []struct {
		rule   string
		answer answer
		want   string
	}{
		{"a page is not a result", answer{status: 200, header: html, body: "<html>"}, "is https://belay.example.com/prefix the address of a Belay server?"},
		{"a proxy's error has its status", answer{status: 502, header: html, body: "<html>"}, "the server answered Bad Gateway, without a reason"},
		{"a redirect names the address", answer{status: 301, header: map[string]string{"Location": "https://other.example.com/"}}, "names the address https://other.example.com/: use that address"},
		{"broken JSON is an error", answer{status: 200, body: `{"id":`}, "cannot decode the response"},
		{"a huge response is cut off", answer{status: 200, body: strings.Repeat(" ", 64<<20) + "{}"}, "the response has more than 67108864 bytes"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			c, _ := dial(t, 0, test.answer)
			if _, err := c.CreateSession(t.Context(), api.CreateSession{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

// The token goes to the named server only: the client follows no redirect to another one.
//
// SPEC V-04, V-05
func TestTokenStaysWithTheServer(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server gets a request with the header %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := client.New(server.URL, "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadSelf(t.Context()); err == nil || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("the error is %v", err)
	}
}

// Mistakes in the address and the token are found before a request is sent. The errors do not
// show a password.
//
// SPEC V-04
func TestNew(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "belay.example.com", "ftp://belay.example.com", "https://", "https://ann:hunter2@belay.example.com", "https://belay.example.com/?x=y", "http://[::1", "://ann:hunter2@x"} {
		if c, err := client.New(address, "secret", nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the address %q gives %v, %v", address, c, err)
		}
	}
	for _, token := range []string{"", "two words", "line\n", "ünique"} {
		if _, err := client.New("https://belay.example.com", token, nil); err == nil {
			t.Errorf("the token %q is accepted", token)
		}
	}
}

// Requests that only read are sent again after a lost connection, and when the server asks to
// try again later. Other requests are sent once.
//
// SPEC V-04
func TestRepeatsOnlyReads(t *testing.T) {
	t.Parallel()
	fine := answer{status: 200, body: "{}"}
	busy, full := problem(503, "server.draining", ""), problem(429, "auth.rate_limited", "")
	busy.header["Retry-After"] = "7"
	far := problem(503, "server.draining", "")
	far.header["Retry-After"] = "3600"
	for _, test := range []struct {
		rule  string
		all   []answer
		tries int
		least time.Duration
		fails bool
	}{
		{"a refused connection is tried again", []answer{{err: errBroken}, {err: errBroken}, fine}, 3, 0, false},
		{"a broken response is read again", []answer{{status: 200, body: "{", broken: errBroken}, fine}, 2, 0, false},
		{"the client waits as long as the server asks", []answer{busy, fine}, 2, 7 * time.Second, false},
		{"429 is tried again", []answer{full, fine}, 2, 0, false},
		{"it gives up after four tries", []answer{{err: errBroken}}, 4, 0, true},
		{"it does not wait for an hour", []answer{far, fine}, 1, 0, true},
		{"a missing session is not asked for again", []answer{problem(404, "request.not_found", ""), fine}, 1, 0, true},
		{"an error of the server is final", []answer{problem(500, "server.failed", ""), fine}, 1, 0, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c, server := dial(t, 0, test.all...)
				_, err := c.ReadSelf(t.Context())
				if (err != nil) != test.fails || len(server.requests) != test.tries || time.Since(began) < test.least {
					t.Errorf("%d tries in %s: %v", len(server.requests), time.Since(began), err)
				}
				c, server = dial(t, 0, test.all...)
				_, err = c.StartTurn(t.Context(), api.StartTurn{Session: "s", Text: "hi"})
				if err == nil || len(server.requests) != 1 {
					t.Errorf("a turn is started %d times: %v", len(server.requests), err)
				}
			})
		})
	}
}

// A message with a key is sent again if its answer is lost, with the same key. Without a key it is
// sent once.
//
// SPEC V-04
func TestMessagesWithAKeyAreSentAgain(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"k": 2, "": 1} {
		t.Run("key "+key, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, server := dial(t, 0, answer{status: 200, body: "{", broken: errBroken}, answer{status: 202, body: `{"id": "turn-1"}`})
				started, err := c.StartTurn(t.Context(), api.StartTurn{Session: "x", Text: "hello", Key: key})
				if (err == nil) != (want == 2) || len(server.requests) != want || err == nil && started.ID != "turn-1" {
					t.Errorf("%d requests, %+v, %v", len(server.requests), started, err)
				}
				for _, r := range server.requests {
					if r.key != key || strings.Contains(r.body, "key") {
						t.Errorf("the request has the key %q and the body %s", r.key, r.body)
					}
				}
			})
		})
	}
}

// A server that does not answer does not block a request for ever. A turn with wait=end may
// take as long as it needs.
//
// SPEC V-04
func TestTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := dial(t, 0, answer{status: 200, silent: true})
		if _, err := c.CreateSession(t.Context(), api.CreateSession{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		began := time.Now()
		_, err := c.StartTurn(ctx, api.StartTurn{Session: "s", Text: "hi", Wait: api.WaitEnd})
		if took := time.Since(began); took != 24*time.Hour {
			t.Errorf("the turn is given up after %s: %v", took, err)
		}
	})
}
