package webhook_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/channel/internal/channeltest"
	"github.com/belay-run/belay/channel/webhook"
	"github.com/belay-run/belay/declare"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hush"

// receiver takes calls, and answers with these statuses first.
func receiver(t *testing.T, statuses ...int) (url string, calls chan webhook.Call) {
	t.Helper()
	calls = make(chan webhook.Call, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the call is %s with %v, %v", r.Method, r.Header, err)
		}
		if want := declare.Sign(secret, r.Header.Get(declare.TimestampHeader), body); r.Header.Get(declare.SignatureHeader) != want {
			t.Errorf("the signature is %s, want %s", r.Header.Get(declare.SignatureHeader), want)
		}
		if len(statuses) > 0 {
			w.Header().Set("Retry-After", "3")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
			return
		}
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.DisallowUnknownFields()
		var c webhook.Call
		if err := dec.Decode(&c); err != nil {
			t.Error(err)
		}
		calls <- c
	}))
	t.Cleanup(func() { server.Close(); http.DefaultClient.CloseIdleConnections() })
	return server.URL, calls
}

// A webhook gets signed calls about an approval: when it is asked, and when it is decided. A
// repeated call has the same id.
//
// SPEC N-01
func TestCalls(t *testing.T) {
	t.Parallel()
	url, calls := receiver(t, http.StatusInternalServerError)
	p := channeltest.New(t)
	approval := p.Ask("s", "shell", `{"command": "git push"}`)
	ch, err := webhook.New(&webhook.Options{URL: url, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	p.Run("pager", ch, "nobody")
	asked := <-calls
	want := webhook.Call{
		Type: webhook.TypeRequested, ID: asked.ID, Approval: approval.ID, Session: "s", Title: "shell needs approval", Detail: "$ git push", Reason: "it changes things",
		Link: channeltest.Link(approval.ID), Expires: asked.Expires,
	}
	if diff := cmp.Diff(want, asked); diff != "" || asked.ID == "" {
		t.Error(diff)
	}
	p.Decide(&approval, false, "token ci")
	want.Type, want.Outcome = webhook.TypeDecided, "Denied by token ci"
	if diff := cmp.Diff(want, <-calls); diff != "" {
		t.Error(diff)
	}
}

// Errors say what the server answered. Redirects are not followed, because they would take the
// call elsewhere.
func TestErrors(t *testing.T) {
	t.Parallel()
	url, calls := receiver(t, http.StatusFound, http.StatusTooManyRequests)
	ch, err := webhook.New(&webhook.Options{URL: url, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Test(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "status 302") {
		t.Errorf("a redirect gives %v", err)
	}
	var again *channel.RetryError
	if err := ch.Test(t.Context(), "x"); !errors.As(err, &again) || again.After != 3*time.Second {
		t.Errorf("a limited rate gives %v", err)
	}
	if err := ch.Test(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
	if got := <-calls; got.Type != webhook.TypeTest || got.Title != "hello" {
		t.Errorf("the test is %+v", got)
	}
	for _, o := range []*webhook.Options{nil, {URL: url}, {Secret: secret}, {URL: "ftp://x", Secret: secret}} {
		if _, err := webhook.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
