package wire

import (
	"io"
	"net/http"
)

// Body is a request body, stored as a list of byte slices. Most of the slices are cached
// encodings of old messages. Body does not copy them.
type Body struct {
	pieces [][]byte
	size   int64
}

// NewBody returns an empty body with capacity for the given number of pieces.
func NewBody(pieces int) *Body { return &Body{pieces: make([][]byte, 0, pieces)} }

// Add appends a piece. The caller must not change the piece afterwards.
func (b *Body) Add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	b.size += int64(len(piece))
}

// Attach makes b the body of r. net/http can read the body again from the start. It does
// this when a reused connection turns out to be closed.
func (b *Body) Attach(r *http.Request) {
	r.ContentLength = b.size
	r.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil }
	r.Body = b.reader()
}

func (b *Body) reader() io.ReadCloser { return &bodyReader{left: b.pieces} }

// bodyReader reads a body once. Close does nothing, so it is safe to call Close at any time.
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
