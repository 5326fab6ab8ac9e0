package openai

import (
	"fmt"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/option"
)

// mostAnswered bounds an answer, streamed or not: no response is as long, and a server
// that does not stop would fill the memory.
const mostAnswered = 256 << 20

var errEndless = fmt.Errorf("the answer is longer than %d MiB", mostAnswered>>20)

// bounded is the body of an answer that ends with an error where it is too long.
type bounded struct {
	io.ReadCloser

	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errEndless
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err //nolint:wrapcheck // a reader hands on what it gets
}

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
