package wire

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// DrainTime is how long to wait for the end of a stream after its last event.
const DrainTime = 250 * time.Millisecond

// IsWhole reports whether an answer is one JSON value and not a stream of events. Some
// gateways send one JSON value although the request asks for a stream.
func IsWhole(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// UnlessDone returns the error of the context if the context is done, because that error is
// why the attempt failed. Otherwise it returns err.
func UnlessDone(ctx context.Context, err error) error {
	done := ctx.Err()
	if done == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, done) {
		return fmt.Errorf("%w: %w", done, cause)
	}
	return done
}
