// Package otlptest has a strict collector for tests: it speaks OTLP over HTTP on loopback,
// decodes protobuf, and fails the test for what the specification does not allow.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver is a collector. Call Lock before you read its fields, and Unlock after.
type Receiver struct {
	*httptest.Server

	// Spans, Metrics (by name), Logs and Resources are what was received.
	Spans     []*tracepb.Span
	Metrics   map[string]*metricspb.Metric
	Logs      []*logspb.LogRecord
	Resources []*resourcepb.Resource
	// Bodies has everything that was received, unpacked, to search for secrets.
	Bodies []byte
	// Header is the header of the last request.
	Header http.Header

	mu       sync.Mutex
	t        testing.TB
	answer   func(w http.ResponseWriter, r *http.Request) bool
	received chan struct{} // has an element when something was received
}

// New starts a collector. It is stopped when the test ends. answer may be nil. If it returns
// true, it has answered a request, which is then not decoded.
func New(t testing.TB, answer func(w http.ResponseWriter, r *http.Request) bool) *Receiver {
	t.Helper()
	r := &Receiver{t: t, Metrics: make(map[string]*metricspb.Metric), answer: answer, received: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// Lock waits until no request is being taken, and holds further ones back.
func (r *Receiver) Lock() { r.mu.Lock() }

// Unlock lets requests in again.
func (r *Receiver) Unlock() { r.mu.Unlock() }

// Named returns a span with this name, or nil.
func (r *Receiver) Named(name string) *tracepb.Span {
	for _, s := range r.Spans {
		if s.GetName() == name {
			return s
		}
	}
	return nil
}

// Await waits until enough was received.
func (r *Receiver) Await(enough func() bool) {
	r.t.Helper()
	late := time.After(time.Minute)
	for {
		r.Lock()
		done := enough()
		r.Unlock()
		if done {
			return
		}
		select {
		case <-r.received:
		case <-late:
			r.t.Fatal("the collector did not receive what the test waits for")
		}
	}
}

// ServeHTTP takes a request of an exporter.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if r.answer != nil && r.answer(w, q) {
		return
	}
	r.Lock()
	defer r.Unlock()
	r.Header = q.Header
	defer func() {
		select {
		case r.received <- struct{}{}:
		default:
		}
	}()
	if err := r.take(q); err != nil {
		r.t.Errorf("the collector got an invalid request: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *Receiver) take(q *http.Request) error {
	if q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s with Content-Type %q", q.Method, q.Header.Get("Content-Type"))
	}
	body := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(q.Body)
		if err != nil {
			return err //nolint:wrapcheck // ServeHTTP adds context
		}
		body = unpacked
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	r.Bodies = append(r.Bodies, data...)
	switch q.URL.Path {
	case "/v1/traces":
		return r.takeTraces(data)
	case "/v1/metrics":
		return r.takeMetrics(data)
	case "/v1/logs":
		return r.takeLogs(data)
	default:
		return fmt.Errorf("unknown path %q", q.URL.Path)
	}
}

// decode decodes a message. A field that the specification does not have is an error.
func decode(data []byte, into proto.Message) error {
	if err := proto.Unmarshal(data, into); err != nil {
		return err //nolint:wrapcheck // ServeHTTP adds context
	}
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(into)
	if err == nil && len(again) != len(data) {
		err = fmt.Errorf("the message has %d bytes, and %d when it is encoded again", len(data), len(again))
	}
	if err == nil && len(into.ProtoReflect().GetUnknown()) > 0 {
		err = errors.New("the message has unknown fields")
	}
	return err
}

func (r *Receiver) takeTraces(data []byte) error {
	var all tracepb.TracesData // the same on the wire as an ExportTraceServiceRequest
	if err := decode(data, &all); err != nil {
		return err
	}
	for _, rs := range all.GetResourceSpans() {
		if err := r.checkResource(rs.GetResource()); err != nil {
			return err
		}
		for _, ss := range rs.GetScopeSpans() {
			if ss.GetScope().GetName() == "" {
				return errors.New("a scope without a name")
			}
			for _, s := range ss.GetSpans() {
				if err := checkSpan(s); err != nil {
					return fmt.Errorf("span %q: %w", s.GetName(), err)
				}
				r.Spans = append(r.Spans, s)
			}
		}
	}
	return nil
}

func checkSpan(s *tracepb.Span) error {
	switch {
	case len(s.GetTraceId()) != 16 || len(s.GetSpanId()) != 8:
		return fmt.Errorf("its ids have %d and %d bytes", len(s.GetTraceId()), len(s.GetSpanId()))
	case len(s.GetParentSpanId()) != 0 && len(s.GetParentSpanId()) != 8:
		return fmt.Errorf("the id of its parent has %d bytes", len(s.GetParentSpanId()))
	case s.GetName() == "" || s.GetKind() == tracepb.Span_SPAN_KIND_UNSPECIFIED:
		return errors.New("it has no name or no kind")
	case s.GetStartTimeUnixNano() == 0 || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano():
		return fmt.Errorf("it lasts from %d to %d", s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano())
	case s.GetFlags()&0x100 == 0 || s.GetFlags()&1 == 0:
		return fmt.Errorf("its flags are %#x", s.GetFlags())
	}
	for _, l := range s.GetLinks() {
		if len(l.GetTraceId()) != 16 || len(l.GetSpanId()) != 8 {
			return errors.New("a link has no ids")
		}
	}
	return checkAttributes(s.GetAttributes())
}

func checkAttributes(all []*commonpb.KeyValue) error {
	seen := make(map[string]bool)
	for _, a := range all {
		if a.GetKey() == "" || seen[a.GetKey()] || a.GetValue().GetValue() == nil {
			return fmt.Errorf("the attribute %q is empty or there twice", a.GetKey())
		}
		seen[a.GetKey()] = true
	}
	return nil
}

func (r *Receiver) checkResource(about *resourcepb.Resource) error {
	r.Resources = append(r.Resources, about)
	if Attribute(about.GetAttributes(), "service.name") == "" {
		return errors.New("the resource has no service.name")
	}
	return checkAttributes(about.GetAttributes())
}

func (r *Receiver) takeMetrics(data []byte) error {
	var all metricspb.MetricsData
	if err := decode(data, &all); err != nil {
		return err
	}
	for _, rm := range all.GetResourceMetrics() {
		if err := r.checkResource(rm.GetResource()); err != nil {
			return err
		}
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				if m.GetName() == "" || m.GetData() == nil {
					return fmt.Errorf("metric %q has no name or no data", m.GetName())
				}
				for _, p := range m.GetHistogram().GetDataPoints() {
					total := uint64(0)
					for _, n := range p.GetBucketCounts() {
						total += n
					}
					if total != p.GetCount() || len(p.GetBucketCounts()) != len(p.GetExplicitBounds())+1 {
						return fmt.Errorf("metric %q: the buckets do not fit the count", m.GetName())
					}
				}
				r.Metrics[m.GetName()] = m
			}
		}
	}
	return nil
}

func (r *Receiver) takeLogs(data []byte) error {
	var all logspb.LogsData
	if err := decode(data, &all); err != nil {
		return err
	}
	for _, rl := range all.GetResourceLogs() {
		if err := r.checkResource(rl.GetResource()); err != nil {
			return err
		}
		for _, sl := range rl.GetScopeLogs() {
			r.Logs = append(r.Logs, sl.GetLogRecords()...)
		}
	}
	return nil
}

// Attribute returns an attribute as text, or "".
func Attribute(all []*commonpb.KeyValue, key string) string {
	for _, a := range all {
		if a.GetKey() == key {
			switch v := a.GetValue().GetValue().(type) {
			case *commonpb.AnyValue_StringValue:
				return v.StringValue
			case *commonpb.AnyValue_IntValue:
				return fmt.Sprint(v.IntValue)
			default:
				return a.GetValue().String()
			}
		}
	}
	return ""
}

// Tree checks that the received spans are one trace with one root, and returns how many
// spans there are of each name.
func (r *Receiver) Tree(trace string) map[string]int {
	r.t.Helper()
	r.Lock()
	defer r.Unlock()
	byID := make(map[string]*tracepb.Span)
	names := make(map[string]int)
	for _, s := range r.Spans {
		if got := hex.EncodeToString(s.GetTraceId()); got != trace {
			r.t.Errorf("span %q is in trace %s, want %s", s.GetName(), got, trace)
		}
		if other := byID[string(s.GetSpanId())]; other != nil {
			r.t.Errorf("the spans %q and %q have the same id", s.GetName(), other.GetName())
		}
		byID[string(s.GetSpanId())] = s
		names[s.GetName()]++
	}
	var roots []string
	for _, s := range r.Spans {
		switch parent := string(s.GetParentSpanId()); {
		case parent == "":
			roots = append(roots, s.GetName())
		case byID[parent] == nil:
			r.t.Errorf("the parent of %q, %x, was not exported", s.GetName(), parent)
		}
	}
	if len(roots) != 1 || !strings.HasPrefix(roots[0], "invoke_agent ") {
		r.t.Errorf("the roots are %q, want one agent", roots)
	}
	return names
}
