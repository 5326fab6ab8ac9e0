package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// Options are the settings of a Client.
type Options struct {
	// HTTP sends the requests. Set it to use your own proxy or certificates. It must have no
	// Timeout, because streams stay open. If it has no CheckRedirect, it follows no redirects,
	// so that the token is sent to this server only. Defaults to a client with the settings of
	// http.DefaultClient.
	HTTP *http.Client
	// Reconnect is how long a stream tries to connect again after its connection is lost.
	// Then the stream ends with an error. Defaults to one minute.
	Reconnect time.Duration
}

// Client sends requests to a server. Make one with [New].
type Client struct {
	base      string // without a slash at the end
	token     string
	http      http.Client
	reconnect time.Duration
}

const (
	// requestTimeout is how long the server may take to answer. It does not apply to streams
	// and to turns with wait=end.
	requestTimeout = time.Minute
	// mostBody is the maximum size of a response, and of one event.
	mostBody = 64 << 20
	// mostProblem is the maximum size of a problem document.
	mostProblem = 64 << 10
	// mostTries is how often a request is sent that only reads or has an idempotency key.
	mostTries = 4
	// firstPause is the pause before the second try. Each further pause is twice as long.
	firstPause = 100 * time.Millisecond
	// longestPause is the longest pause between two tries. A server that asks for more gets
	// no second try.
	longestPause = 30 * time.Second
)

// New returns a client for the server at an address, such as https://belay.example.com or
// http://127.0.0.1:7717. opts may be nil.
func New(address, token string, opts *Options) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of a server: write https://HOST or http://HOST:PORT", hidden(u, address))
	}
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token is empty or has characters that no token has: `belay token create` makes one")
	}
	c := &Client{base: strings.TrimRight(u.String(), "/"), token: token, reconnect: time.Minute}
	if opts != nil {
		c.reconnect = cmp.Or(opts.Reconnect, c.reconnect)
		if opts.HTTP != nil {
			c.http = *opts.HTTP
		}
	}
	if c.http.CheckRedirect == nil {
		c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c, nil
}

// hidden returns an address without its password.
func hidden(u *url.URL, address string) string {
	if u != nil {
		return u.Redacted()
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return "…" + address[at:]
	}
	return address
}

// lostError says that a request or its response was lost on the way.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// call sends the input of an operation, and returns its result.
func call[Out any](ctx context.Context, c *Client, method, path string, in any) (Out, error) {
	var out Out
	send, err := encode(method, path, in)
	if err != nil {
		return out, err
	}
	if !send.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	for try := 1; ; try++ {
		err := c.once(ctx, send, &out)
		pause, again := repeats(send, try, err)
		if !again || !rest(ctx, pause) {
			return out, err
		}
	}
}

// repeats reports whether to send a request again, and after which pause.
func repeats(send *outgoing, try int, err error) (time.Duration, bool) {
	if err == nil || send.method != http.MethodGet && send.key == "" || try == mostTries {
		return 0, false
	}
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return cmp.Or(p.RetryAfter, pauseOf(try, firstPause)), busy(p) && p.RetryAfter <= longestPause
	}
	_, lost := errors.AsType[*lostError](err)
	return pauseOf(try, firstPause), lost
}

// busy reports whether the server asks to try again later.
func busy(p *api.Problem) bool {
	return p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable
}

// pauseOf returns the pause after a try. It is random, so that many clients do not return at
// the same time.
func pauseOf(try int, first time.Duration) time.Duration {
	pause := min(first<<min(try-1, 16), longestPause)
	return pause/2 + rand.N(pause/2+1)
}

// rest waits. It reports false if ctx ends first.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once sends a request once, and decodes the response into out.
func (c *Client) once(ctx context.Context, send *outgoing, out any) error {
	response, err := c.send(ctx, send, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // ignore errors: everything is read
	if response.StatusCode == http.StatusNoContent {
		return nil
	}
	media, wantsMedia := out.(*belay.Media)
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !wantsMedia {
		return fmt.Errorf("%s %s: the response is not JSON: is %s the address of a Belay server?", send.method, send.path, c.base)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, mostBody+1))
	switch {
	case err != nil:
		return &lostError{fmt.Errorf("%s %s: %w", send.method, send.path, err)}
	case len(data) > mostBody:
		return fmt.Errorf("%s %s: the response has more than %d bytes: ask for less with limit", send.method, send.path, mostBody)
	}
	if wantsMedia {
		*media = belay.Media{MIME: kind, Data: data}
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: cannot decode the response: %w", send.method, send.path, err)
	}
	return nil
}

// send sends a request. It returns a response with a status of success, or an error.
func (c *Client) send(ctx context.Context, send *outgoing, header http.Header) (*http.Response, error) {
	address := c.base + send.path
	if len(send.query) > 0 {
		address += "?" + send.query.Encode()
	}
	var body io.Reader
	if send.body != nil {
		body = bytes.NewReader(send.body)
	}
	request, err := http.NewRequestWithContext(ctx, send.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", send.method, send.path, err)
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("User-Agent", "belay")
	if send.key != "" {
		request.Header.Set("Idempotency-Key", send.key)
	}
	if send.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", send.method, send.path, context.Cause(ctx))
		}
		if of, ok := errors.AsType[*url.Error](err); ok { // its text repeats the address
			err = of.Err
		}
		return nil, &lostError{fmt.Errorf("cannot reach the server at %s: %w", c.base, err)}
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer func() { _ = response.Body.Close() }() // ignore errors: the answer is an error already
		return nil, problemOf(response)
	}
	return response, nil
}

// problemOf reads the problem document of a response.
func problemOf(response *http.Response) *api.Problem {
	p := &api.Problem{}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	data, err := io.ReadAll(io.LimitReader(response.Body, mostProblem))
	if kind != "application/problem+json" || err != nil || json.Unmarshal(data, p) != nil || p.Detail == "" {
		*p = api.Problem{Detail: fmt.Sprintf("the server answered %s, without a reason: check the address, and the proxy in front of the server", response.Status)}
		if to := response.Header.Get("Location"); to != "" && response.StatusCode < 400 {
			p.Detail = fmt.Sprintf("the server answered %s and names the address %s: use that address", response.Status, to)
		}
	}
	p.Status = response.StatusCode
	p.Title = cmp.Or(p.Title, http.StatusText(p.Status))
	p.RetryAfter = retryAfter(response.Header.Get("Retry-After"), time.Now())
	return p
}

// retryAfter reads the header Retry-After: a number of seconds, or a time.
func retryAfter(word string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(word); err == nil && seconds > 0 && seconds < 1<<30 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(word); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
