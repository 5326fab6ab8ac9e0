package wire

import (
	"io"
	"net/http"
)

// Body is the body of a request, kept as a list of pieces. Most pieces are the stored
// encodings of old messages, so nothing is copied until the body is sent.
type Body struct {
	pieces [][]byte
	size   int64
}

// NewBody returns an empty body with room for a number of pieces.
func NewBody(pieces int) *Body { return &Body{pieces: make([][]byte, 0, pieces)} }

// Add appends a piece. The body keeps it, so the caller must not change it afterwards.
func (b *Body) Add(piece []byte) {
	b.pieces = append(b.pieces, piece)
	b.size += int64(len(piece))
}

// Attach makes b the body of a request. The request can be sent again from the start,
// which net/http does when it finds that a reused connection was closed.
func (b *Body) Attach(r *http.Request) {
	r.ContentLength = b.size
	r.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil }
	r.Body = b.reader()
}

func (b *Body) reader() io.ReadCloser { return &bodyReader{left: b.pieces} }

// bodyReader reads a body. Close does nothing, so calling it twice or during a read is safe.
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
