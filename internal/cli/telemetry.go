package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/tracecontext"
	"github.com/belay-run/belay/telemetry"
	"github.com/belay-run/belay/telemetry/otlp"
)

// telemetryFlush is how long the end of a command may be delayed to send the last spans.
const telemetryFlush = 2 * time.Second

// observed is the telemetry of a command: what the variables OTEL_* ask for, and the metrics
// of "belay serve". Without such a variable nothing is made, except for "belay serve".
type observed struct {
	providers *otlp.Providers
	extension *telemetry.Telemetry
}

// observe makes the telemetry of the command, once. scraped says that the metrics can be read
// over HTTP. It returns nil if nothing is observed. A wrong variable is a warning: telemetry
// must not keep an agent from working.
func (a *app) observe(scraped bool) *observed {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.observed != nil || !scraped && !otlp.IsSet(a.environ) {
		return a.observed
	}
	made, err := a.newObserved(scraped)
	if err != nil {
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("telemetry is off: %v", err)))
		return nil
	}
	a.observed = made
	return made
}

func (a *app) newObserved(scraped bool) (*observed, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	var once sync.Once
	failed := func(err error) {
		a.logger().Warn("telemetry", "error", err)
		once.Do(func() { a.remarkf("%s", a.onErr.dim(fmt.Sprintf("telemetry could not be sent: %v", err))) })
	}
	providers, err := otlp.Open(&otlp.Options{Environ: a.environ, Version: version(), Scraped: scraped, Errors: failed})
	if err != nil {
		return nil, err
	}
	extension, err := telemetry.New(&telemetry.Options{
		TracerProvider: providers.Tracer, MeterProvider: providers.Meter, Content: settings.Telemetry.Content, URL: settings.Serve.URL,
	})
	if err != nil {
		return nil, err
	}
	return &observed{providers, extension}, nil
}

// extensions returns what every agent gets.
func (o *observed) extensions() []belay.Extension {
	if o == nil {
		return nil
	}
	return []belay.Extension{o.extension}
}

// logger returns a logger that adds the ids of spans to records, and sends them if a variable
// asks for it. given may be nil: it then returns nil, or a logger that only sends.
func (o *observed) logger(given *slog.Logger) *slog.Logger {
	if o == nil || given == nil && o.providers.Logger == nil {
		return given
	}
	next := slog.DiscardHandler
	if given != nil {
		next = given.Handler()
	}
	return slog.New(telemetry.LogHandler(next, o.providers.Logger))
}

// serving connects a server with the telemetry: its queue, its streams and its page of
// metrics.
func (o *observed) serving(store belay.TurnStore) (page http.Handler, lag func(time.Duration), err error) {
	if o == nil {
		return nil, nil, nil
	}
	if err := o.extension.ObserveQueue(store); err != nil {
		return nil, nil, err
	}
	lag, err = o.extension.StreamLag()
	return o.providers, lag, err
}

// traceOf returns the address of the trace of a turn in the trace viewer, or the trace's id if the
// settings name no viewer. It returns "" for turns of subagents: these belong to the trace of the turn
// that called them.
func traceOf(settings *config.Loaded, session, turn string) string {
	if turn == "" || inspect.IsChild(session) {
		return ""
	}
	id := tracecontext.Trace(session, turn)
	if settings.Telemetry.TraceURL != "" {
		return strings.ReplaceAll(settings.Telemetry.TraceURL, "{trace}", id)
	}
	return id
}

// endTelemetry sends what is left, within a bounded time.
func (a *app) endTelemetry() {
	a.mu.Lock()
	o := a.observed
	a.mu.Unlock()
	if o == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), telemetryFlush, fmt.Errorf("not everything was sent within %s", telemetryFlush))
	defer cancel()
	if err := o.providers.Shutdown(ctx); err != nil {
		a.logger().Warn("telemetry", "error", err)
	}
}
