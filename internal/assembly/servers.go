package assembly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/space"
)

// ReadMCP reads the MCP files that the program names, and adds the servers that the program
// declares itself. It does not read those of the
// machine, the user, the project and the spaces: the places contain those files.
func (a *Assembler) ReadMCP() (servers []mcptool.Server, warnings []*mcptool.FaultError, err error) {
	var problems []error
	named := make(map[string]bool)
	for _, file := range a.MCP {
		if whole, err := filepath.Abs(file); err == nil {
			if named[whole] {
				continue // the same file was named twice
			}
			named[whole] = true
		}
		read, err := mcptool.Load(file)
		problems = append(problems, err)
		if read != nil {
			servers, warnings = append(servers, read.Servers...), append(warnings, read.Warnings...)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, warnings, mistake("%w", err)
	}
	return append(servers, a.Servers...), warnings, nil
}

// MCPServers returns the servers that may run: those of the wanted places, and those that
// the program names. The notes list servers that must not run.
func (a *Assembler) MCPServers(p *Places, wanted func(*space.Space) bool) ([]mcptool.Server, []space.Note, error) {
	var all []mcptool.Server
	var notes []space.Note
	for _, place := range p.All {
		if !wanted(place) {
			continue
		}
		servers, why, err := p.Host.Servers(place)
		if err != nil {
			return nil, nil, mistake("%w", err)
		}
		all, notes = append(all, servers...), append(notes, why...)
	}
	named, _, err := a.ReadMCP()
	return append(all, named...), notes, err
}

// OpenMCP starts MCP servers.
func (a *Assembler) OpenMCP(ctx context.Context, s *config.Loaded, servers []mcptool.Server, wait time.Duration) (*mcptool.Extension, error) {
	return a.openMCP(ctx, s, servers, wait, a.logger())
}

// TryMCP starts one MCP server. The logger gets what the server prints and logs.
func (a *Assembler) TryMCP(ctx context.Context, s *config.Loaded, server mcptool.Server, wait time.Duration, logger *slog.Logger) (*mcptool.Extension, error) {
	return a.openMCP(ctx, s, []mcptool.Server{server}, wait, logger)
}

// MCPLogins returns the user's logins to MCP servers, or nil if the user has no directory for
// settings. The floor protects the directory: see keyGuard.
func MCPLogins(s *config.Loaded) *mcptool.Logins {
	dir := TokenDir(s)
	if dir == "" {
		return nil
	}
	return &mcptool.Logins{Dir: filepath.Join(dir, "mcp"), Transport: transportOf(s)}
}

func (a *Assembler) openMCP(ctx context.Context, s *config.Loaded, servers []mcptool.Server, wait time.Duration, logger *slog.Logger) (*mcptool.Extension, error) {
	e, err := mcptool.New(ctx, servers, &mcptool.Options{Dir: s.Project, Environ: a.environ(), Logger: logger, Wait: wait, Transport: transportOf(s), Logins: MCPLogins(s)})
	if err != nil {
		return nil, mistake("%w", err)
	}
	return e, nil
}

// useMCP starts the MCP servers of the operator. installPlaces starts those of the project
// and of spaces.
func (a *Assembler) useMCP(ctx context.Context, w *Assembled) error {
	servers, _, err := a.MCPServers(w.Places, ofOperator)
	if err != nil {
		return err
	}
	if w.Servers, err = a.OpenMCP(ctx, w.Settings, servers, 0); err != nil {
		return err
	}
	w.OnClose(func() error { return w.Servers.Close(context.WithoutCancel(ctx)) })
	return nil
}

// ofOperator reports whether a place belongs to the machine or the user.
func ofOperator(s *space.Space) bool { return s.Origin.Kind == hook.OriginOperator }

// tellServers reports servers that are not ready, and tools that are left out.
func (a *Assembler) tellServers(e *mcptool.Extension) {
	for _, status := range e.Servers() {
		for _, line := range Shortcomings(&status) {
			a.caution(line)
		}
	}
}

// required returns an error if a required server is not ready.
func required(e *mcptool.Extension) error {
	if err := e.Missing(); err != nil {
		return &Error{Err: err, Hint: "`belay mcp check` shows the problem. To start without the server, remove `required` from the file that declares it"}
	}
	return nil
}

// Shortcomings returns lines about what an agent does not get from a server.
func Shortcomings(s *mcptool.Status) []string {
	var lines []string
	if line := NotReady(s); line != "" {
		lines = append(lines, line)
	}
	for _, left := range s.Left {
		lines = append(lines, fmt.Sprintf("mcp server %s: left out: %s", visible.OneLine(s.Server.Name), visible.OneLine(left.Error())))
	}
	for _, pattern := range s.Unmatched {
		lines = append(lines, fmt.Sprintf("mcp server %s: tools: none of its tools matches %q", visible.OneLine(s.Server.Name), pattern))
	}
	return lines
}

// NotReady returns a line about a server that is not ready, or "". A disabled server counts
// as ready.
func NotReady(s *mcptool.Status) string {
	switch {
	case s.State == mcptool.StateReady, s.State == mcptool.StateDisabled:
		return ""
	case s.Err != nil:
		return fmt.Sprintf("mcp server %s is not available: %s", visible.OneLine(s.Server.Name), visible.OneLine(s.Err.Error()))
	default:
		return fmt.Sprintf("mcp server %s is still starting: its tools are added when it is ready", visible.OneLine(s.Server.Name))
	}
}
