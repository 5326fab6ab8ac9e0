package webtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/belay-run/belay"
)

// fetchIn is the input of web_fetch.
type fetchIn struct {
	URL   string `json:"url" minLength:"1" maxLength:"2000" jsonschema:"The address, such as https://example.com/page."`
	Start int    `json:"start,omitempty" minimum:"0" jsonschema:"Continue a long page at this character. The result of the previous part says which."`
}

// userAgent names this program to web servers.
const userAgent = "belay (+https://github.com/belay-run/belay)"

// errRedirect ends a request that leads to another address.
var errRedirect = errors.New("the page redirects")

// samePage follows a redirect only to the same scheme, host and path, with or without a slash at
// its end. The authorizer has seen only this address.
func samePage(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > 5 || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme || strings.TrimSuffix(next.URL.EscapedPath(), "/") != strings.TrimSuffix(first.EscapedPath(), "/") {
		return http.ErrUseLastResponse
	}
	return nil
}

func (e *Extension) fetch(ctx context.Context, in fetchIn) (belay.Result, error) {
	address, err := url.Parse(in.URL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return belay.Failed(belay.ClassInvalid, fmt.Sprintf("%q is not the address of a web page: it must begin with https:// or http://.", in.URL)), nil //nolint:nilerr // the result tells
	}
	if address.User != nil {
		return belay.Failed(belay.ClassInvalid, "The address contains a user name or a password: leave it out."), nil
	}
	address.Fragment = ""
	page, err := e.get(ctx, address)
	if ctx.Err() != nil {
		return belay.Result{}, context.Cause(ctx)
	}
	if err != nil {
		return belay.Failed(belay.ClassFailed, fmt.Sprintf("%s cannot be read: %v.", address, reason(err))), nil
	}
	return belay.Result{Text: page.part(in.Start, e.opts.MaxCharacters)}, nil
}

// reason returns the part of an HTTP error that says what happened, without the address.
func reason(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// get requests a page.
func (e *Extension) get(ctx context.Context, address *url.URL) (*page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("its address is invalid: %w", err)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "text/markdown, text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, */*;q=0.1")
	response, err := e.client.Do(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // fetch takes its reason out
	}
	defer func() { _ = response.Body.Close() }() // ignore errors: the body was only read
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		return nil, fmt.Errorf("%w: call %s with %s if you want to read that page", errRedirect, FetchTool, to)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	return e.read(response)
}

// read reads the body of a response.
func (e *Extension) read(response *http.Response) (*page, error) {
	kind, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		kind = "text/plain"
	}
	if !isText(kind) {
		return nil, fmt.Errorf("it is %s, and %s reads only text", kind, FetchTool)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, e.opts.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	p := &page{address: response.Request.URL}
	if p.cut = int64(len(body)) > e.opts.MaxBytes; p.cut {
		body = body[:e.opts.MaxBytes]
	}
	if body, err = decode(body, params["charset"], p.cut); err != nil {
		return nil, err
	}
	if kind == "text/html" || kind == "application/xhtml+xml" {
		err = p.convert(body)
		return p, err
	}
	p.text = string(body)
	return p, nil
}

// isText reports whether a media type is text.
func isText(kind string) bool {
	of, sub, _ := strings.Cut(kind, "/")
	return of == "text" || strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml") ||
		of == "application" && (sub == "json" || sub == "xml" || sub == "javascript" || sub == "yaml" || sub == "x-yaml" || sub == "x-ndjson" || sub == "toml")
}

// decode returns the text of a body in UTF-8. The charset latin-1 is read as Windows-1252, as
// browsers do.
func decode(body []byte, charset string, cut bool) ([]byte, error) {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8", "us-ascii":
		if cut { // the last character may be incomplete
			for range utf8.UTFMax - 1 {
				if last, size := utf8.DecodeLastRune(body); last != utf8.RuneError || size != 1 {
					break
				}
				body = body[:len(body)-1]
			}
		}
		if utf8.Valid(body) {
			return body, nil
		}
		if charset != "" {
			return []byte(strings.ToValidUTF8(string(body), "\uFFFD")), nil
		}
	case "iso-8859-1", "latin1", "windows-1252", "cp1252":
	default:
		return nil, fmt.Errorf("its charset is %.40q, which %s cannot read", charset, FetchTool)
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(body)
	if err != nil {
		return nil, fmt.Errorf("its text cannot be decoded: %w", err)
	}
	return text, nil
}
