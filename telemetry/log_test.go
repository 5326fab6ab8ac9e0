package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/belay-run/belay/telemetry"
)

// logged keeps the attributes of log records.
type logged struct{ records []string }

func (l *logged) Export(_ context.Context, records []sdklog.Record) error {
	for i := range records {
		text := records[i].Body().String()
		records[i].WalkAttributes(func(a attribute.KeyValue) bool {
			text += fmt.Sprintf(" %s=%s", a.Key, a.Value)
			return true
		})
		l.records = append(l.records, text)
	}
	return nil
}

func (*logged) Shutdown(context.Context) error   { return nil }
func (*logged) ForceFlush(context.Context) error { return nil }

// login resolves to a group with a password.
type login struct{}

func (login) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", "ann"), slog.Any("password", hidden{}))
}

// hidden resolves to a secret.
type hidden struct{}

func (hidden) LogValue() slog.Value { return slog.StringValue("hunter2") }

// An attribute, or a group, that is called like a secret is sent without its value, wherever it is.
// The log of the program has it.
//
// SPEC O-01
func TestLogsAreSentWithoutSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		log  func(*slog.Logger)
		want string // what is sent
	}{
		"an attribute":           {func(l *slog.Logger) { l.Info("a", "password", "hunter2") }, "a password=[REDACTED]"},
		"with two words":         {func(l *slog.Logger) { l.Info("a", "api_key", "hunter2 and more") }, "a api_key=[REDACTED]"},
		"a number":               {func(l *slog.Logger) { l.Info("a", "pin_pass", 4711) }, "a pin_pass=[REDACTED]"},
		"with With":              {func(l *slog.Logger) { l.With("token", "hunter2").Info("a") }, "a token=[REDACTED]"},
		"in a group":             {func(l *slog.Logger) { l.Info("a", slog.Group("db", "host", "h", "password", "hunter2")) }, `a db={"host":"h","password":"[REDACTED]"}`},
		"in two groups":          {func(l *slog.Logger) { l.Info("a", slog.Group("x", slog.Group("y", "secret", "hunter2"))) }, `a x={"y":{"secret":"[REDACTED]"}}`},
		"a group that is secret": {func(l *slog.Logger) { l.Info("a", slog.Group("credentials", "value", "hunter2", "n", 1)) }, `a credentials={"n":"[REDACTED]","value":"[REDACTED]"}`},
		"in such a group": {func(l *slog.Logger) {
			l.WithGroup("credentials").WithGroup("x").With("b", "hunter2").Info("a", "c", "hunter2")
		}, `a x={"b":"[REDACTED]","c":"[REDACTED]"}`},
		"a LogValuer":           {func(l *slog.Logger) { l.Info("a", "login", login{}) }, `a login={"password":"[REDACTED]","user":"ann"}`},
		"a LogValuer with With": {func(l *slog.Logger) { l.With("key", hidden{}).Info("a") }, "a key=[REDACTED]"},
		"a struct":              {func(l *slog.Logger) { l.Info("a", "login", struct{ User, Password string }{"ann", "hunter2 and more"}) }, `a login={"User":"ann","Password":"[REDACTED]"}`},
		"a map in a list":       {func(l *slog.Logger) { l.Info("a", "all", []any{map[string]string{"token": "hunter2"}}) }, `a all=[{"token":"[REDACTED]"}]`},
		"an error":              {func(l *slog.Logger) { l.Info("a", "error", errors.New("TOKEN=hunter2 is wrong")) }, "a error=TOKEN=[REDACTED] is wrong"},
		"a message":             {func(l *slog.Logger) { l.Info("TOKEN=hunter2") }, "TOKEN=[REDACTED]"},
		"no secret":             {func(l *slog.Logger) { l.Info("a", "max_tokens", 4096, "phase", "tool.pre", "stored", true) }, "a max_tokens=4096 phase=tool.pre stored=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, own := &logged{}, &bytes.Buffer{}
			provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(sent)))
			c.log(slog.New(telemetry.LogHandler(slog.NewTextHandler(own, nil), provider)))
			if len(sent.records) != 1 || sent.records[0] != c.want {
				t.Errorf("it is sent as %q, want %q", sent.records, c.want)
			}
			if name != "no secret" && !strings.Contains(own.String(), "hunter2") && !strings.Contains(own.String(), "4711") {
				t.Errorf("the log of the program has lost it: %s", own)
			}
		})
	}
}
