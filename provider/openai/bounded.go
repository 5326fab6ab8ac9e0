package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/option"

	"github.com/belay-run/belay"
)

// mostAnswered bounds an answer, streamed or not: no response is as long, and a server
// that does not stop would fill the memory.
const mostAnswered = 256 << 20

var errEndless = fmt.Errorf("the answer is longer than %d MiB", mostAnswered>>20)

// bounded is the body of an answer that ends with an error where it is too long. What is
// read of it and leads to no chunk, such as a ping, is a sign of life.
type bounded struct {
	io.ReadCloser

	left int64
	to   *listener
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errEndless
	}
	if b.to.unheard && !b.to.tell(belay.Chunk{}, nil) {
		return 0, errLeft
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.to.unheard = n > 0
	return n, err //nolint:wrapcheck // a reader hands on what it gets
}

// listener takes the chunks of a stream. It gets nothing more once it has left.
type listener struct {
	yield func(belay.Chunk, error) bool
	left  bool
	// unheard is set when something was read and no chunk has followed.
	unheard bool
}

// tell passes on a chunk or an error, and reports whether to continue.
func (l *listener) tell(chunk belay.Chunk, err error) bool {
	l.unheard = false
	l.left = l.left || !l.yield(chunk, err)
	return !l.left
}

// errLeft says that nobody wants the rest of a stream.
var errLeft = errors.New("nobody listens any more")

// mostRefused bounds what is read of a refusal, which the SDK reads to its end.
const mostRefused = 1 << 20

// boundRefusal cuts off a refusal that is too long: its beginning says enough.
func boundRefusal(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	answer, err := next(r)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, mostRefused), answer.Body}
	}
	return answer, err
}
