package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"
)

// sender sends requests to a collector. It tries again while the collector is unavailable,
// within the time limit.
type sender struct {
	*target

	client *http.Client
}

func newSender(t *target) (*sender, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is the standard library's
	if t.tls != (tlsFiles{}) {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if t.tls.authority != "" {
			pem, err := os.ReadFile(t.tls.authority)
			if err != nil {
				return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
			}
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate in PEM", t.tls.authority)
			}
		}
		if t.tls.certificate != "" || t.tls.key != "" {
			pair, err := tls.LoadX509KeyPair(t.tls.certificate, t.tls.key)
			if err != nil {
				return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		transport.TLSClientConfig = config
	}
	return &sender{t, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers may have credentials
	}}, nil
}

// firstPause is the pause before the second attempt. It doubles for each more.
const firstPause = 300 * time.Millisecond

// mostAnswer is how much of an answer is read.
const mostAnswer = 64 << 10

// send posts an encoded request.
func (s *sender) send(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.compress {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(body)
		if err = errors.Join(err, w.Close()); err != nil {
			return fmt.Errorf("compress: %w", err)
		}
		body = packed.Bytes()
	}
	for pause := firstPause; ; pause *= 2 {
		wait, err := s.post(ctx, body)
		if err == nil || wait < 0 {
			return err
		}
		wait = max(wait, pause/2+rand.N(pause/2))
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// post makes one attempt. wait is negative if another attempt makes no sense.
func (s *sender) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return -1, fmt.Errorf("export: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "belay")
	if s.compress {
		request.Header.Set("Content-Encoding", "gzip")
	}
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	defer func() { _ = response.Body.Close() }()                          // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostAnswer)) // so that the connection can be used again
	switch code := response.StatusCode; code {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, fmt.Errorf("export: the collector answered %s", response.Status)
	default:
		return -1, fmt.Errorf("export: the collector answered %s", response.Status)
	}
}
