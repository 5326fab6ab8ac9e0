package wire

import (
	"fmt"
	"io"
	"net/http"

	"github.com/belay-run/belay"
)

// The limits on what is read from a server. Without them a server that never stops sending
// would fill the memory.
const (
	maxAnswer  = 256 << 20 // bytes of an answer, streamed or not
	maxRefusal = 1 << 20   // bytes of an answer that refuses a request
	maxList    = 16 << 20  // bytes of a list of models; OpenRouter has the longest
)

// ErrTooLong reports that an answer exceeds the limit.
var ErrTooLong = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)

// Accept prepares an answer with a status below 400 for reading. It limits the length of
// the body and tells the listener when data arrives that leads to no chunk. If the answer
// is not a model's response, Accept closes the body and returns why.
func Accept(answer *http.Response, to *Listener) error {
	if err := NotAResponse(answer); err != nil {
		_ = answer.Body.Close() // nobody reads it
		return err
	}
	answer.Body = &limitedBody{answer.Body, maxAnswer, to}
	return nil
}

// limitedBody is the body of an answer. Reading it fails with [ErrTooLong] at the limit.
// When data was read and no chunk followed, as for a ping, the next read first sends an
// empty chunk: it shows that the service is alive.
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
