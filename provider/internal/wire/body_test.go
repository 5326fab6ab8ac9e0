package wire_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/belay-run/belay/provider/internal/wire"
)

func TestABodyIsReadWholeAndAgain(t *testing.T) {
	t.Parallel()
	body := wire.NewBody(1)
	for _, piece := range []string{"one ", "", "two ", "three"} {
		body.Add([]byte(piece))
	}
	const want = "one two three"
	answer, err := body.Send(&http.Request{Header: http.Header{}}, func(r *http.Request) (*http.Response, error) { //nolint:bodyclose // there is no connection to close
		if r.ContentLength != int64(len(want)) || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got length %d and type %q, want %d and JSON", r.ContentLength, r.Header.Get("Content-Type"), len(want))
		}
		if err := iotest.TestReader(r.Body, []byte(want)); err != nil {
			t.Error(err)
		}
		for range 2 {
			again, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(iotest.OneByteReader(again)); err != nil || !bytes.Equal(got, []byte(want)) {
				t.Errorf("got %q, %v when reading again, want %q", got, err, want)
			}
		}
		return &http.Response{StatusCode: http.StatusOK}, nil
	})
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("got %v, %v, want the answer of the next middleware", answer, err)
	}
}
