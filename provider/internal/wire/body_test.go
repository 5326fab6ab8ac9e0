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
	r := &http.Request{Header: http.Header{}}
	body.Attach(r)
	if r.ContentLength != int64(len(want)) {
		t.Errorf("got length %d, want %d", r.ContentLength, len(want))
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
}
