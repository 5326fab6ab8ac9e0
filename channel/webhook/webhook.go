package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/declare"
)

// Options are the settings of a channel.
type Options struct {
	// URL is where the requests go. It is required.
	URL string
	// Secret signs the requests. It is required.
	Secret string
	// Client sends the requests. Defaults to a client that follows no redirects.
	Client *http.Client
}

// The types of a Call.
const (
	TypeRequested = "approval_requested"
	TypeDecided   = "approval_decided"
	TypeTest      = "test"
)

// Call is the body of a request.
type Call struct {
	Type string `json:"type"`
	// ID is the same in both calls about an approval, and when a call is repeated.
	ID       string `json:"id"`
	Approval string `json:"approval,omitempty"`
	Session  string `json:"session,omitempty"`
	Title    string `json:"title"`
	// Detail is the command, the change or the question, in short.
	Detail   string   `json:"detail,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Question bool     `json:"question,omitempty"`
	Options  []string `json:"options,omitempty"`
	// Cut says that Detail does not show everything: show Link to people who decide.
	Cut bool `json:"cut,omitempty"`
	// Link is the address of the approval in the console.
	Link    string    `json:"link,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Outcome says how it was decided. Only approval_decided has it.
	Outcome string `json:"outcome,omitempty"`
}

// Channel is an address that gets approvals.
type Channel struct {
	opts Options
}

var _ channel.Channel = (*Channel)(nil)

// New returns a channel. It does not connect.
func New(opts *Options) (*Channel, error) {
	if opts == nil || opts.URL == "" || opts.Secret == "" {
		return nil, errors.New("webhook: URL or Secret is missing: set both")
	}
	if u, err := url.Parse(opts.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("webhook: URL is not the address of a web server")
	}
	c := &Channel{opts: *opts}
	if c.opts.Client == nil {
		c.opts.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c, nil
}

// Kind returns "webhook".
func (*Channel) Kind() string { return "webhook" }

func callOf(kind string, r *channel.Request, outcome string) *Call {
	return &Call{
		Type: kind, ID: r.Key, Approval: r.Approval, Session: r.Session, Title: r.Title, Detail: r.Detail, Reason: r.Reason, Question: r.Question, Options: r.Options, Cut: r.Cut,
		Link: r.Link, Expires: r.Expires, Outcome: outcome,
	}
}

// Send sends a request.
func (c *Channel) Send(ctx context.Context, r *channel.Request) (string, error) {
	return r.Key, c.post(ctx, callOf(TypeRequested, r, ""))
}

// Update sends how a request was decided.
func (c *Channel) Update(ctx context.Context, _ string, r *channel.Request, outcome string) error {
	return c.post(ctx, callOf(TypeDecided, r, outcome))
}

// Test sends a message that asks nothing.
func (c *Channel) Test(ctx context.Context, text string) error {
	return c.post(ctx, &Call{Type: TypeTest, ID: "test", Title: text})
}

// Receive returns nil: nobody can answer here.
func (*Channel) Receive(context.Context, *channel.Inbox) error { return nil }

// post sends one signed request.
func (c *Channel) post(ctx context.Context, call *Call) error {
	body, err := json.Marshal(call)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opts.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(declare.TimestampHeader, timestamp)
	r.Header.Set(declare.SignatureHeader, declare.Sign(c.opts.Secret, timestamp, body))
	resp, err := c.opts.Client.Do(r)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // ignore errors: the answer has no content, and the connection can be used again
	err = fmt.Errorf("webhook: the server answers with status %d", resp.StatusCode)
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if it is absent: the usual pause applies
		return &channel.RetryError{After: time.Duration(seconds) * time.Second, Err: err}
	default:
		return err
	}
}
