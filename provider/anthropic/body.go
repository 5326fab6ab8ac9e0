package anthropic

import (
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"
)

// body is the body of a request, in the pieces that it consists of: most of them
// are what old messages were encoded to, and are not copied but when they are sent.
type body struct {
	pieces [][]byte
	size   int64
}

func (b *body) add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	b.size += int64(len(piece))
}

// fill makes it the body of a request that the SDK is about to send. The SDK itself
// knows bodies of one piece, and readers whose length it does not know.
func (b *body) fill(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = b.size
	r.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil } // for a connection that turns out to be closed
	r.Body = b.reader()
	return next(r)
}

// reader returns a reader of the whole of it.
func (b *body) reader() io.ReadCloser { return &bodyReader{left: b.pieces} }

// bodyReader reads a body. Closing it changes nothing.
type bodyReader struct {
	left  [][]byte
	piece []byte
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.piece) == 0 {
			if len(r.left) == 0 {
				break
			}
			r.piece, r.left = r.left[0], r.left[1:]
		}
		copied := copy(p[n:], r.piece)
		r.piece, n = r.piece[copied:], n+copied
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }
