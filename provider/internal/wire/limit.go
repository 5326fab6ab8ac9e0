package wire

import (
	"fmt"
	"io"
	"net/http"

	"github.com/belay-run/belay"
)

// The limits on what Belay reads from a server. Without them, a server that never stops
// sending would fill the memory.
const (
	maxAnswer  = 256 << 20 // bytes of an answer, streamed or not
	maxRefusal = 1 << 20   // bytes of an answer that refuses a request
	maxList    = 16 << 20  // bytes of a list of models; OpenRouter's list is the longest known
)

// ErrTooLong means that an answer is longer than maxAnswer.
var ErrTooLong = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)

// Accept prepares an answer with a status below 400 for reading. It limits the length of the
// body. It also makes reading the body send empty chunks (see limitedBody). If the answer is
// not a model's response, Accept closes the body and returns an error.
func Accept(answer *http.Response, to *Listener) error {
	if err := NotAResponse(answer); err != nil {
		_ = answer.Body.Close()
		return err
	}
	answer.Body = &limitedBody{answer.Body, maxAnswer, to}
	return nil
}

// limitedBody is the body of an answer. Read fails with [ErrTooLong] at the limit. If the
// previous Read got data that led to no chunk, such as a ping, Read first sends an empty
// chunk. The empty chunk shows that the service is alive.
type limitedBody struct {
	io.ReadCloser

	left int64
	to   *Listener
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLong
	}
	if b.to.pending && !b.to.Send(belay.Chunk{}, nil) {
		return 0, ErrStopped
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.to.pending = n > 0
	return n, err //nolint:wrapcheck // a reader returns the error it gets
}
