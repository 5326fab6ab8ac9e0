package console

import (
	"io"
	"net/http"
	"sync"

	"github.com/belay-run/belay/client"
)

// client returns a client of the API for a token. Its requests go to the handler of the API,
// without a connection. For the API they come from the address of the browser.
func (c *Console) client(r *http.Request, secret string) (*client.Client, error) {
	return client.New("http://localhost", secret, &client.Options{HTTP: &http.Client{Transport: &inProcess{api: c.api, from: r}}})
}

// inProcess is a transport that calls a handler.
type inProcess struct {
	api  http.Handler
	from *http.Request // the request of the browser
}

// RoundTrip implements http.RoundTripper. The handler runs until it returns, or until the body of
// the response is closed.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI = in.URL.RequestURI()
	in.RemoteAddr = t.from.RemoteAddr
	if lines := t.from.Header.Values("X-Forwarded-For"); len(lines) > 0 {
		in.Header["X-Forwarded-For"] = lines
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	read, write := io.Pipe()
	w := &pipeWriter{header: make(http.Header), body: write, begun: make(chan struct{})}
	go func() { // ends when the handler returns
		defer func() {
			p := recover()
			w.WriteHeader(http.StatusInternalServerError) // if there was none
			_ = write.CloseWithError(panicked(p))
		}()
		t.api.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK) // if there was none
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		_ = read.Close()
		return nil, r.Context().Err() // package client compares it
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: read, ContentLength: -1, Request: r,
	}, nil
}

// panicked returns the error with which the body ends after a panic of the handler.
func panicked(p any) error {
	if p != nil {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// pipeWriter is the http.ResponseWriter of a handler in this process.
type pipeWriter struct {
	header http.Header
	body   *io.PipeWriter

	once   sync.Once
	begun  chan struct{} // closed when status and sent are set
	status int
	sent   http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *pipeWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data) //nolint:wrapcheck // as net/http does
}

// Flush implements http.Flusher. Nothing is kept back.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }
