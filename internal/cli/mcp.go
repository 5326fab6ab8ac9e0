package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/space"
)

// readMCP reads the files of MCP servers that the command line names. Those of the machine,
// the user, the project and of spaces are among the places.
func (a *app) readMCP() (servers []mcptool.Server, warnings []*mcptool.FaultError, err error) {
	var problems []error
	named := make(map[string]bool)
	for _, file := range a.mcp {
		if whole, err := filepath.Abs(file); err == nil {
			if named[whole] {
				continue // it was given twice
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
		return nil, warnings, usage("%w", err)
	}
	return servers, warnings, nil
}

// mcpServers are the servers of the places that are wanted, as far as they may run, and
// those of the command line. Which do not run, notes tell.
func (a *app) mcpServers(p *places, wanted func(*space.Space) bool) ([]mcptool.Server, []space.Note, error) {
	var all []mcptool.Server
	var notes []space.Note
	for _, place := range p.all {
		if !wanted(place) {
			continue
		}
		servers, why, err := p.host.Servers(place)
		if err != nil {
			return nil, nil, usage("%w", err)
		}
		all, notes = append(all, servers...), append(notes, why...)
	}
	named, _, err := a.readMCP()
	return append(all, named...), notes, err
}

// openMCP starts MCP servers.
func (a *app) openMCP(ctx context.Context, s *config.Loaded, servers []mcptool.Server, wait time.Duration) (*mcptool.Extension, error) {
	environ := a.environ
	if environ == nil {
		environ = os.Environ()
	}
	e, err := mcptool.New(ctx, servers, &mcptool.Options{Dir: s.Project, Environ: environ, Logger: a.logger(), Wait: wait, Transport: transportOf(s)})
	if err != nil {
		return nil, usage("%w", err)
	}
	return e, nil
}

// useMCP gives an agent the servers of the operator. Those of the project and of spaces are
// installed with the rest of them.
func (a *app) useMCP(ctx context.Context, w *work) error {
	servers, _, err := a.mcpServers(w.places, ofOperator)
	if err != nil {
		return err
	}
	if w.servers, err = a.openMCP(ctx, w.settings, servers, 0); err != nil {
		return err
	}
	w.closers = append(w.closers, func() error { return w.servers.Close(context.WithoutCancel(ctx)) })
	return nil
}

// ofOperator reports whether a place is the machine's or the user's.
func ofOperator(s *space.Space) bool { return s.Origin.Kind == hook.OriginOperator }

// tellServers says which servers are not ready, and which of their tools are left out.
func (a *app) tellServers(e *mcptool.Extension) {
	for _, status := range e.Servers() {
		for _, line := range shortcomings(&status) {
			a.remarkf("%s", a.onErr.yellow(line))
		}
	}
}

// required fails if a server is not ready that must be.
func required(e *mcptool.Extension) error {
	if err := e.Missing(); err != nil {
		return &exitError{code: exitFailed, err: err, hint: "see: belay mcp check; `required` is set in the file that declares it"}
	}
	return nil
}

// shortcomings are what an agent does not have of a server, in words.
func shortcomings(s *mcptool.Status) []string {
	var lines []string
	if line := notReady(s); line != "" {
		lines = append(lines, line)
	}
	for _, left := range s.Left {
		lines = append(lines, fmt.Sprintf("mcp server %s: left out: %s", oneLine(s.Server.Name), oneLine(left.Error())))
	}
	for _, pattern := range s.Unmatched {
		lines = append(lines, fmt.Sprintf("mcp server %s: tools: it has none that %q matches", oneLine(s.Server.Name), pattern))
	}
	return lines
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
		Long:  "An MCP server is a program, or an address, that has tools for agents. They are declared in mcp.json in the user's\ndirectory of settings, in .belay of the project and in spaces, in the form that many programs share, and in the files that\n--mcp names. Those of a project or a space start once they are trusted. A tool of a server is called server__tool. What it may do by itself the floor says, as for every tool: see permit.tools in belay.yaml.",
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
	None    []string      `json:"unmatched,omitempty"` // of what the declaration names under tools
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
	line := &mcpLine{Name: s.Server.Name, State: s.State, Title: s.Title, Version: s.Version, File: s.Server.File, Line: s.Server.Line, Tools: []mcpToolLine{}, None: s.Unmatched}
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
	for _, line := range shortcomings(s) {
		a.remarkf("%s", a.onErr.yellow(line))
	}
}

// tellUnread names files of MCP servers in the project's root, which other programs read.
func (a *app) tellUnread(s *config.Loaded, servers []mcptool.Server) {
	for _, name := range []string{".mcp.json", "mcp.json"} {
		file := filepath.Join(s.Project, name)
		if _, err := os.Stat(file); err != nil || slices.ContainsFunc(servers, func(s mcptool.Server) bool { return sameFile(s.File, file) }) {
			continue
		}
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("./%s is here and not used: --mcp %s, or put it into .belay/mcp.json", name, name)))
	}
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// withMCP starts the servers of all places for as long as f looks at them.
func (a *app) withMCP(ctx context.Context, f func(*config.Loaded, []mcptool.Status) error) (err error) {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	places := a.openPlaces(ctx, settings)
	if places.err != nil {
		return usage("%w", places.err)
	}
	servers, notes, err := a.mcpServers(places, func(*space.Space) bool { return true })
	if err != nil {
		return err
	}
	a.tellNotes(notes)
	a.tellUnread(settings, servers)
	if len(servers) == 0 && len(notes) == 0 {
		a.remarkf("there are no MCP servers: declare them in mcp.json in your directory of settings or in .belay of the project, or name a file with --mcp, see docs/mcp.md")
		return nil
	}
	e, err := a.openMCP(ctx, settings, servers, starting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	return f(settings, e.Servers())
}

// readOver are the settings of MCP servers that do nothing here.
func (a *app) readOver(p *places) []*mcptool.FaultError {
	_, warnings, _ := a.readMCP() // mistakes are told by whoever starts them
	for _, place := range p.all {
		if read, _ := mcptool.Load(filepath.Join(place.Dir, "mcp.json")); read != nil {
			warnings = append(read.Warnings, warnings...)
		}
	}
	return warnings
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
			for _, w := range a.readOver(a.openPlaces(cmd.Context(), settings)) {
				a.remarkf("%s %s", a.onErr.yellow("read over:"), oneLine(w.Error()))
			}
			return a.withMCP(cmd.Context(), func(_ *config.Loaded, all []mcptool.Status) error {
				wrong := 0
				for _, s := range all {
					a.tellMCP(&s)
					switch {
					case s.State == mcptool.StateReady && len(s.Left)+len(s.Unmatched) == 0:
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
