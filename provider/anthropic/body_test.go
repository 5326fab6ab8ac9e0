package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/internal/wiretest"
)

// A request must not copy the conversation: old messages have cached encodings. The test is
// not parallel because it counts the allocations of the whole process.
func TestAConversationIsNotCopied(t *testing.T) { //nolint:paralleltest // see above
	model := anthropic.New("m", &anthropic.Options{Key: "k", HTTPClient: answering(1)})
	req := wiretest.Long(2001)
	size := 0
	for _, m := range req.Messages {
		size += len(m.Text())
	}
	once := func() {
		if _, err := answer(t, model, req); err != nil {
			t.Fatal(err)
		}
	}
	once() // fills the cache of encodings
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	once()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(size)/4 {
		t.Errorf("a request of %d bytes allocated %d bytes, although most of it was encoded before", size, got)
	}
}

// again is a transport that reads a part of the body and then starts again. net/http does
// this when it finds that a connection was closed.
type again struct {
	http.RoundTripper

	bodies [][]byte
}

func (a *again) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.GetBody == nil {
		return nil, errors.New("the body cannot be read again")
	}
	if _, err := io.ReadFull(r.Body, make([]byte, 10)); err != nil {
		return nil, err
	}
	for range 2 {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		if int64(len(data)) != r.ContentLength {
			return nil, errors.New("the length is wrong")
		}
		a.bodies = append(a.bodies, data)
	}
	return a.RoundTripper.RoundTrip(r)
}

// The body must be readable again from its beginning, and the request must have a
// Content-Length.
func TestABodyCanBeSentAgain(t *testing.T) {
	t.Parallel()
	transport := &again{RoundTripper: answering(1).Transport}
	model := anthropic.New("m", &anthropic.Options{Key: "k", HTTPClient: &http.Client{Transport: transport}})
	if _, err := answer(t, model, wiretest.Long(11)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(transport.bodies[0], transport.bodies[1]) || !bytes.HasSuffix(transport.bodies[0], []byte(`]}]}`)) {
		t.Errorf("got %s and then %s", transport.bodies[0], transport.bodies[1])
	}
}
