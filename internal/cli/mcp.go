package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
)

// mcpFiles are where MCP servers are declared: the user's own file, and those that the
// command line names. A file of the project is not among them: it says which programs are
// run, and nobody has said that it may.
func (a *app) mcpFiles(s *config.Loaded) []string {
	var files []string
	if s.UserDir != "" {
		own := filepath.Join(s.UserDir, "mcp.json")
		if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
			files = append(files, own)
		}
	}
	return append(files, a.mcp...)
}

// readMCP reads the files.
func (a *app) readMCP(s *config.Loaded) (servers []mcptool.Server, warnings []*mcptool.FaultError, err error) {
	var problems []error
	for _, file := range a.mcpFiles(s) {
		read, err := mcptool.Load(file)
		problems = append(problems, err)
		if read != nil {
			servers, warnings = append(servers, read.Servers...), append(warnings, read.Warnings...)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, warnings, usage("%w", err)
	}
	return servers, warnings, nil
}

// openMCP starts the MCP servers that there are. Without any there is no extension.
func (a *app) openMCP(ctx context.Context, s *config.Loaded, wait time.Duration) (*mcptool.Extension, error) {
	servers, _, err := a.readMCP(s)
	if err != nil || len(servers) == 0 {
		return nil, err
	}
	environ := a.environ
	if environ == nil {
		environ = os.Environ()
	}
	e, err := mcptool.New(ctx, servers, &mcptool.Options{Dir: s.Project, Environ: environ, Logger: a.logger(), Wait: wait})
	if err != nil {
		return nil, usage("%w", err)
	}
	return e, nil
}

// useMCP gives an agent the servers that there are, and says which are not ready.
func (a *app) useMCP(ctx context.Context, w *work) ([]belay.Extension, error) {
	e, err := a.openMCP(ctx, w.settings, 0)
	if e == nil || err != nil {
		return nil, err
	}
	w.closers = append(w.closers, func() error { return e.Close(context.WithoutCancel(ctx)) })
	for _, status := range e.Servers() {
		if line := notReady(&status); line != "" {
			a.remarkf("%s", a.onErr.yellow(line))
		}
	}
	return []belay.Extension{e}, nil
}

// notReady says how a server is that has no tools to offer yet, or nothing.
func notReady(s *mcptool.Status) string {
	switch {
	case s.State == mcptool.StateReady, s.State == mcptool.StateDisabled:
		return ""
	case s.Err != nil:
		return fmt.Sprintf("mcp server %s is not available: %s", oneLine(s.Server.Name), oneLine(s.Err.Error()))
	default:
		return fmt.Sprintf("mcp server %s is still starting: its tools come when it is ready", oneLine(s.Server.Name))
	}
}

func (a *app) mcpCommand() *cobra.Command {
	servers := parent(&cobra.Command{
		Use:   "mcp",
		Short: "List and check MCP servers",
		Long: "An MCP server is a program, or an address, that has tools for agents. They are declared in mcp.json in the user's\ndirectory of settings, in the form that many programs share, and in the files that --mcp names. A tool of a server is\n" +
			"called server__tool. What it may do by itself the floor says, as for every tool: see permit.tools in belay.yaml.",
		Example: `  belay mcp list
  belay mcp check --mcp servers.json
  belay run --mcp servers.json "look at the open tickets"`,
	})
	servers.AddCommand(a.listMCPCommand(), a.checkMCPCommand())
	return servers
}

// starting is how long list and check wait for servers.
const starting = time.Minute + 10*time.Second

// mcpLine is a server as it is listed.
type mcpLine struct {
	Name    string        `json:"name"`
	State   mcptool.State `json:"state"`
	Error   string        `json:"error,omitempty"`
	Title   string        `json:"title,omitempty"`
	Version string        `json:"version,omitempty"`
	File    string        `json:"file"`
	Line    int           `json:"line"`
	Tools   []mcpToolLine `json:"tools"`
	Left    []string      `json:"left_out,omitempty"`
}

// mcpToolLine is a tool as it is listed.
type mcpToolLine struct {
	Name        string `json:"name"`
	Original    string `json:"original"`
	Description string `json:"description,omitempty"`
	Zone        int    `json:"zone"`
	ReadOnly    bool   `json:"read_only,omitempty"`
	Destructive bool   `json:"destructive,omitempty"`
}

func (a *app) listMCPCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Start the MCP servers and list their tools",
		Long: "Starts the MCP servers that an agent here has, and lists their tools, each with the least zone of its calls: what the\nfloor makes of it without looking at an input. A tool that its server calls destructive is asked about, whatever its\n" +
			"zone.",
		Example: "  belay mcp list",
		Args:    arguments(0, 0, "mcp list takes none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMCP(cmd.Context(), func(settings *config.Loaded, all []mcptool.Status) error {
				floor, err := a.newFloor(cmd.Context(), settings, spillDir(settings))
				if err != nil {
					return err
				}
				var t table
				t.add("TOOL", "ZONE", "ITS SERVER SAYS", "WHAT FOR")
				for i := range all {
					line := mcpLineOf(cmd.Context(), floor, &all[i])
					for j := range line.Tools {
						tool := &line.Tools[j]
						t.add(tool.Name, fmt.Sprintf("%d %s", tool.Zone, permit.Zone(tool.Zone)), tool.hints(), short(oneLine(tool.Description), max(a.width-60, 30)))
					}
					if asJSON {
						if err := a.printJSON(line); err != nil {
							return err
						}
						continue
					}
					a.tellMCP(&all[i])
				}
				if asJSON || len(t.rows) == 1 {
					return nil
				}
				return t.write(a.out, a.onOut.dim)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// mcpLineOf is a server with its tools and their zones.
func mcpLineOf(ctx context.Context, floor *floor, s *mcptool.Status) *mcpLine {
	line := &mcpLine{Name: s.Server.Name, State: s.State, Title: s.Title, Version: s.Version, File: s.Server.File, Line: s.Server.Line, Tools: []mcpToolLine{}}
	if s.Err != nil {
		line.Error = s.Err.Error()
	}
	for _, left := range s.Left {
		line.Left = append(line.Left, left.Error())
	}
	for _, tool := range s.Tools {
		zone := floor.Explain(ctx, tool.Name, []byte("{}")).Zone
		line.Tools = append(line.Tools, mcpToolLine{tool.Name, tool.Original, tool.Description, int(zone), tool.ReadOnly, tool.Destructive})
	}
	return line
}

// hints are the annotations of a tool in words.
func (t *mcpToolLine) hints() string {
	switch {
	case t.Destructive:
		return "destructive: asked"
	case t.ReadOnly:
		return "read-only"
	default:
		return "-"
	}
}

// tellMCP says what is to be said about a server besides its tools.
func (a *app) tellMCP(s *mcptool.Status) {
	if s.State == mcptool.StateDisabled {
		a.remarkf("%s", a.onErr.dim(fmt.Sprintf("mcp server %s is disabled", oneLine(s.Server.Name))))
	}
	if line := notReady(s); line != "" {
		a.remarkf("%s", a.onErr.yellow(line))
	}
	for _, left := range s.Left {
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("mcp server %s: left out: %s", oneLine(s.Server.Name), oneLine(left.Error()))))
	}
}

// withMCP starts the servers for as long as f looks at them.
func (a *app) withMCP(ctx context.Context, f func(*config.Loaded, []mcptool.Status) error) (err error) {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	e, err := a.openMCP(ctx, settings, starting)
	if err != nil {
		return err
	}
	if e == nil {
		a.remarkf("there are no MCP servers: declare them in mcp.json in your directory of settings, or name a file with --mcp, see docs/mcp.md")
		return nil
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	return f(settings, e.Servers())
}

func (a *app) checkMCPCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the files that declare MCP servers, and start each server once",
		Long: "Checks the files that declare MCP servers, tells each mistake with file and line and what was read over, and starts\neach server once. The exit code is 2 if a file has a mistake, and 1 if a server does not start or has tools that an\n" +
			"agent cannot have.",
		Example: "  belay mcp check",
		Args:    arguments(0, 0, "mcp check takes none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			_, warnings, err := a.readMCP(settings)
			for _, w := range warnings {
				a.remarkf("%s %s", a.onErr.yellow("read over:"), oneLine(w.Error()))
			}
			if err != nil {
				return err
			}
			return a.withMCP(cmd.Context(), func(_ *config.Loaded, all []mcptool.Status) error {
				wrong := 0
				for _, s := range all {
					a.tellMCP(&s)
					switch {
					case s.State == mcptool.StateReady && len(s.Left) == 0:
						said := strings.TrimSpace(s.Title + " " + s.Version)
						if _, err := fmt.Fprintf(a.out, "%s: %s (%s)\n", oneLine(s.Server.Name), counted(len(s.Tools), "tool"), oneLine(said)); err != nil {
							return fmt.Errorf("check: %w", err)
						}
					case s.State != mcptool.StateDisabled:
						wrong++
					}
				}
				if wrong > 0 {
					return &exitError{code: exitFailed, err: fmt.Errorf("%s not in order", counted(wrong, "server"))}
				}
				return nil
			})
		},
	}
}
