package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The example runs without a network: the service is on this machine. The model gets the
// errors of the service.
func Example() {
	main()
	// Output:
	// subagent_invoked translator Good morning
	// subagent_completed translator success
	//   {"subagent":"translator","content":"Guten Morgen"}
	// subagent_invoked translator Good evening
	// subagent_completed translator error
	//   subagent "translator": the service answered 404 Not Found: no such phrase
	// Good morning is Guten Morgen. For good evening the service has no words.
}

// If the service does not answer and the parent's turn is cancelled, the request ends.
func TestProxyHeedsACancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil { // read the body, so that the server notices the end of the connection
			t.Error(err)
		}
		cancel()
		<-r.Context().Done()
		close(gone)
	}))
	defer service.Close()
	for _, err := range (proxy{service.URL}).Run(ctx, "x") {
		if err == nil {
			t.Error("a service that did not answer has answered")
		}
	}
	<-gone
}
