package wire_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// zeros is a reader that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func answerOf(status int, contentType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}
}

func TestAnAnswerIsLimited(t *testing.T) {
	t.Parallel()
	answer := answerOf(http.StatusOK, "text/event-stream", zeros{}) //nolint:bodyclose // there is no connection to close
	if err := wire.Accept(answer, wire.NewListener(func(belay.Chunk, error) bool { return true })); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if n != 256<<20 || !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("got %d bytes and %v, want 256 MiB and ErrTooLong", n, err)
	}
}

// If data led to no chunk, the next read sends an empty chunk. If the consumer then stops,
// the read fails.
func TestDataWithoutAChunkIsASignOfLife(t *testing.T) {
	t.Parallel()
	chunks := 0
	to := wire.NewListener(func(chunk belay.Chunk, err error) bool {
		if chunk != (belay.Chunk{}) || err != nil {
			t.Errorf("got %v, %v, want an empty chunk", chunk, err)
		}
		chunks++
		return chunks < 3
	})
	answer := answerOf(http.StatusOK, "text/event-stream", iotest.OneByteReader(strings.NewReader("pings"))) //nolint:bodyclose // there is no connection to close
	if err := wire.Accept(answer, to); err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(answer.Body)
	if string(read) != "pin" || !errors.Is(err, wire.ErrStopped) || chunks != 3 {
		t.Errorf("got %q, %v after %d chunks, want three reads and ErrStopped", read, err, chunks)
	}
	if to.Send(belay.Chunk{Text: "late"}, nil) || chunks != 3 {
		t.Error("a consumer that has stopped was called again")
	}
}

func TestOnlyAModelsResponseIsAccepted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		kind   string
		want   string // a part of the error; empty if there is no error
	}{
		{200, "text/event-stream; charset=utf-8", ""},
		{200, "application/json", ""},
		{200, "application/x-ndjson", ""},
		{200, "text/plain", ""},
		{200, "application/octet-stream", ""},
		{200, "", ""},
		{200, "text/html; charset=utf-8", "answered text/html"},
		{302, "application/json", "answered Found"},
	} {
		err := wire.Accept(answerOf(test.status, test.kind, strings.NewReader("")), nil) //nolint:bodyclose // there is no connection to close
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d %q: got %v, want %q", test.status, test.kind, err, test.want)
		}
	}
}
