package gemini_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay/provider/gemini"
)

// The header with the key is not one that net/http takes out when a redirect
// leads to another host.
func TestTheKeyDoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var reached atomic.Bool
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
			t.Cleanup(other.Close)
			front := httptest.NewServer(http.RedirectHandler(other.URL, status))
			t.Cleanup(front.Close)
			model := gemini.New("m", &gemini.Options{Key: "key-of-a-test", URL: front.URL})
			if _, err := answer(t, model, hello()); err == nil {
				t.Error("a redirect was taken for an answer")
			}
			if reached.Load() {
				t.Error("another host was sent the request")
			}
		})
	}
}
