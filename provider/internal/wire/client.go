package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Client returns a copy of an HTTP client that does not follow redirects: a redirect would
// send the API key to another address. If client is nil, Client copies [http.DefaultClient].
func Client(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// ParseURL parses Options.URL. Its errors show example as the form to write, and they never
// contain a password.
func ParseURL(address, example string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // e.Err does not contain the address, which may contain a password
		}
		return nil, fmt.Errorf("Options.URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("Options.URL: %q is not the address of a web server: write %s", u.Redacted(), example)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("Options.URL: %q has a query or a fragment: write %s", u.Redacted(), example)
	}
	return u, nil
}

// noKeyError means that a model has no API key.
type noKeyError struct{ variable string }

// NoKey returns the error for a missing API key. It names the environment variable to set.
func NoKey(variable string) error { return &noKeyError{variable} }

func (e *noKeyError) Error() string {
	return fmt.Sprintf("there is no API key: set %s or Options.Key", e.variable)
}
