package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/belay-run/belay/provider/internal/wire"
)

// endpointAt starts a server and returns an endpoint whose base path on this server is
// /base.
func endpointAt(t *testing.T, handle http.HandlerFunc) *wire.Endpoint {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	return wire.NewEndpoint(server.Client(), base, http.Header{"X-Key": {"k"}})
}

func TestARequestArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	service := endpointAt(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, s := range []string{r.Method, r.URL.RequestURI(), r.Header.Get("X-Key"), r.Header.Get("Content-Type"), r.Header.Get("User-Agent"), string(body)} {
			_, _ = io.WriteString(w, s+" ")
		}
	})
	body := wire.NewBody(2)
	body.Add([]byte("{"))
	body.Add([]byte("}"))
	for _, test := range []struct {
		rule string
		send func() (*http.Response, error)
		want string
	}{
		{"a body with a query", func() (*http.Response, error) { return service.Post(t.Context(), "models/m:go?alt=sse", body) }, "POST /base/models/m:go?alt=sse k application/json belay {} "},
		{"no body", func() (*http.Response, error) { return service.Fetch(t.Context(), "models") }, "GET /base/models k  belay  "},
	} {
		answer, err := test.send()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(got) != test.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", test.rule, got, err, test.want)
		}
	}
}

func TestARefusalIsAnError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		body   string
		want   int // length of RefusalError.Body; -1 means that the answer is no refusal
	}{
		{http.StatusBadRequest, "no", 2},
		{http.StatusInternalServerError, "", 0},
		{http.StatusTeapot, strings.Repeat("x", 2<<20), 1 << 20},
		{http.StatusOK, "yes", -1},
		{http.StatusFound, "moved", -1},
	} {
		service := endpointAt(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-ID", "7")
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		answer, err := service.Fetch(t.Context(), "x")
		if answer != nil {
			_ = answer.Body.Close()
		}
		refusal, refused := errors.AsType[*wire.RefusalError](err)
		switch {
		case refused != (test.want >= 0) || refused == (answer != nil):
			t.Errorf("%d: got %v, %v, want a refusal: %v", test.status, answer, err, test.want >= 0)
		case refused && (refusal.Status != test.status || len(refusal.Body) != test.want || refusal.Header.Get("X-Request-ID") != "7" || !strings.Contains(refusal.Error(), http.StatusText(test.status))):
			t.Errorf("%d: got %v with %d bytes, want %d bytes", test.status, refusal, len(refusal.Body), test.want)
		}
	}
}
