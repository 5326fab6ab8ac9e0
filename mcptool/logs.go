package mcptool

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// severities are the levels of log messages in the protocol, as levels of slog.
var severities = map[mcp.LoggingLevel]slog.Level{ //nolint:staticcheck // deprecated in the newest protocol, but most servers use it
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "notice": slog.LevelInfo, "warning": slog.LevelWarn,
	"error": slog.LevelError, "critical": slog.LevelError, "alert": slog.LevelError, "emergency": slog.LevelError,
}

// requestLogs asks the server for the log messages that the logger records. It does not wait
// for the answer, because a server may ignore the request.
func (f *life) requestLogs(logger *slog.Logger) {
	info := f.session.InitializeResult()
	if info.Capabilities == nil || info.Capabilities.Logging == nil || info.ProtocolVersion > lastInitialize {
		return // a server of a newer protocol sends no log messages unless a call asks for them
	}
	var level mcp.LoggingLevel //nolint:staticcheck // likewise
	switch {
	case logger.Enabled(f.ctx, slog.LevelDebug):
		level = "debug"
	case logger.Enabled(f.ctx, slog.LevelInfo):
		level = "info"
	case logger.Enabled(f.ctx, slog.LevelWarn):
		level = "warning"
	default:
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	go func() { // ends with the session, or after the timeout
		defer cancel()
		_ = f.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level}) //nolint:staticcheck // the server works without this request too
	}()
}

// message logs a log message of the server.
func (l *lines) message(m *mcp.LoggingMessageParams) { //nolint:staticcheck // likewise
	text, isText := m.Data.(string)
	if !isText {
		data, err := json.Marshal(m.Data)
		if err != nil {
			return
		}
		text = string(data)
	}
	if text = strings.ToValidUTF8(strings.TrimSpace(text), "?"); text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged >= mostLogged {
		return
	}
	text = l.clean(text[:min(len(text), looked)])
	level, known := severities[m.Level]
	if !known {
		level = slog.LevelInfo
	}
	l.logger.Log(context.Background(), level, "mcp server log", "server", l.server, "logger", cutText(l.spec.hide(m.Logger), 100), "message", text)
	l.count(text)
}
