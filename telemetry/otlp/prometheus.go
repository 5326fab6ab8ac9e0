package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// ServeHTTP writes the metrics in the text format of Prometheus. It needs Options.Scraped.
func (p *Providers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var page bytes.Buffer
	if err := p.writeText(r.Context(), &page); err != nil {
		http.Error(w, "the metrics could not be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // the client may have left
}

// writeText writes the metrics. A callback that fails leaves out its own metrics only.
func (p *Providers) writeText(ctx context.Context, to io.Writer) error {
	var all metricdata.ResourceMetrics
	if p.scrape == nil {
		return fmt.Errorf("no metrics are kept: set Options.Scraped") //nolint:perfsprint // an error without a value
	}
	err := p.scrape(ctx, &all)
	if err != nil && len(all.ScopeMetrics) == 0 {
		return fmt.Errorf("collect: %w", err)
	}
	text := &exposition{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			text.metric(m)
		}
	}
	_, err = to.Write(text.Bytes())
	return err //nolint:wrapcheck // the caller's writer
}

// exposition is a page in the text format of Prometheus, version 0.0.4.
type exposition struct{ bytes.Buffer }

// PrometheusName returns the name of a metric in Prometheus: dots become underscores, and the
// unit and "total" are appended, as the exporters of OpenTelemetry do it.
func PrometheusName(m metricdata.Metrics) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == ':' {
			return r
		}
		return '_'
	}, m.Name)
	unit := m.Unit
	switch {
	case unit == "s":
		unit = "seconds"
	case strings.HasPrefix(unit, "{"):
		unit = "" // a note and no unit
	}
	if unit != "" {
		name += "_" + unit
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			name += "_total"
		}
	case metricdata.Sum[float64]:
		if data.IsMonotonic {
			name += "_total"
		}
	}
	return name
}

func (x *exposition) metric(m metricdata.Metrics) {
	name := PrometheusName(m)
	head := func(kind string) {
		fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(m.Description), name, kind)
	}
	switch data := m.Data.(type) {
	case metricdata.Gauge[int64]:
		head("gauge")
		numbers(x, name, data.DataPoints)
	case metricdata.Gauge[float64]:
		head("gauge")
		numbers(x, name, data.DataPoints)
	case metricdata.Sum[int64]:
		head(kindOf(data.IsMonotonic))
		numbers(x, name, data.DataPoints)
	case metricdata.Sum[float64]:
		head(kindOf(data.IsMonotonic))
		numbers(x, name, data.DataPoints)
	case metricdata.Histogram[float64]:
		head("histogram")
		for _, p := range data.DataPoints {
			x.histogram(name, p)
		}
	}
}

func kindOf(monotonic bool) string {
	if monotonic {
		return "counter"
	}
	return "gauge"
}

func numbers[N int64 | float64](x *exposition, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		x.line(name, p.Attributes, "", float64(p.Value))
	}
}

func (x *exposition) histogram(name string, p metricdata.HistogramDataPoint[float64]) {
	total := uint64(0)
	for i, n := range p.BucketCounts {
		total += n
		bound := math.Inf(1)
		if i < len(p.Bounds) {
			bound = p.Bounds[i]
		}
		x.line(name+"_bucket", p.Attributes, number(bound), float64(total))
	}
	x.line(name+"_sum", p.Attributes, "", p.Sum)
	x.line(name+"_count", p.Attributes, "", float64(p.Count))
}

// line writes one value. bound is the value of the label le, if it is not empty.
func (x *exposition) line(name string, attrs attribute.Set, bound string, value float64) {
	var labels []string
	for i := attrs.Iter(); i.Next(); {
		a := i.Attribute()
		labels = append(labels, label(string(a.Key))+`="`+escaped(a.Value.String())+`"`)
	}
	if bound != "" {
		labels = append(labels, `le="`+bound+`"`)
	}
	x.WriteString(name)
	if len(labels) > 0 {
		x.WriteString("{" + strings.Join(labels, ",") + "}")
	}
	x.WriteString(" " + number(value) + "\n")
}

func label(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, key)
}

func escaped(value string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(value, "\uFFFD"))
}

func number(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
