package serve

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/belay-run/belay/hook/codes"
)

// usages counts what each token uses. One client must not take everything from the others.
type usages struct {
	rate    rate.Limit // requests in a second
	streams int        // open streams

	mu  sync.Mutex
	all map[string]*tokenUsage // by the hash of the token
}

// tokenUsage is what one token uses.
type tokenUsage struct {
	requests *rate.Limiter
	streams  int
}

// mostUsages limits the memory: tokens that are rotated again and again leave entries.
const mostUsages = 10_000

func newUsages(requests float64, streams int) *usages {
	return &usages{rate: rate.Limit(requests), streams: streams, all: make(map[string]*tokenUsage)}
}

// of returns the usage of a token. The caller holds u.mu.
func (u *usages) of(token *Token) *tokenUsage {
	one := u.all[token.Hash]
	if one != nil {
		return one
	}
	if len(u.all) >= mostUsages {
		for hash, old := range u.all {
			if old.streams == 0 {
				delete(u.all, hash)
			}
		}
	}
	// A client may send the requests of two seconds at once, such as a page that loads.
	one = &tokenUsage{requests: rate.NewLimiter(u.rate, int(2*u.rate)+1)}
	u.all[token.Hash] = one
	return one
}

// request counts a request. It returns a problem if the token has sent too many.
func (u *usages) request(token *Token, now time.Time) *Problem {
	u.mu.Lock()
	defer u.mu.Unlock()
	reserved := u.of(token).requests.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait <= 0 {
		return nil
	}
	reserved.CancelAt(now) // a refused request does not count
	p := problem(http.StatusTooManyRequests, codes.RequestRate, "the token %q has sent more than %g requests in a second: wait for %s", token.Name, float64(u.rate), wait.Round(time.Millisecond))
	p.retry = int(wait.Seconds()) + 1
	return p
}

// openStream counts a stream. It returns a problem if the token has too many. Otherwise call
// done when the stream has ended.
func (u *usages) openStream(token *Token) (done func(), p *Problem) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.of(token)
	if one.streams >= u.streams {
		p := problem(http.StatusTooManyRequests, codes.RequestRate, "the token %q has %d open streams and requests that wait for a turn, which is the maximum: close some", token.Name, one.streams)
		p.retry = int(retryAfter.Seconds())
		return nil, p
	}
	one.streams++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		one.streams--
	}, nil
}

// hold counts a request that keeps its connection for as long as a turn takes. It counts as a
// stream. The context ends when the token is revoked. Call done when the request has ended.
func (s *Server) hold(ctx context.Context, token *Token) (held context.Context, done func(), err error) {
	closed, p := s.usages.openStream(token)
	if p != nil {
		return nil, nil, p
	}
	held, stop := s.untilRevoked(ctx, token)
	return held, func() { stop(); closed() }, nil
}

// untilRevoked returns a context that ends when a token is revoked or rotated. Its cause is
// the error for the client. Call stop when the context is no longer needed.
func (s *Server) untilRevoked(ctx context.Context, token *Token) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() { // ends with the context
		defer close(ended)
		tick := time.NewTicker(s.opts.Ping)
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			if err := s.isValid(token); err != nil {
				cancel(err)
				return
			}
		}
	}()
	return watched, func() { cancel(nil); <-ended }
}

// isValid returns an error if a token was revoked or rotated after it was found, or if the
// server cannot tell.
func (s *Server) isValid(token *Token) error {
	if token.Hash == "" { // the user who started the process has no token
		return nil
	}
	known, err := s.opts.Tokens.named(token.Name)
	switch {
	case errors.Is(err, ErrNoToken):
		return problem(http.StatusUnauthorized, codes.AuthRequired, "the token %q was revoked: ask the operator of the server for another one", token.Name)
	case err != nil:
		return err
	case known.Hash != token.Hash:
		return problem(http.StatusUnauthorized, codes.AuthRequired, "the token %q was rotated: use its new secret", token.Name)
	}
	return nil
}
