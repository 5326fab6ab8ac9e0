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

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/space"
	"github.com/spf13/cobra"
)

func (a *app) mcpCommand() *cobra.Command {
	servers := parent(&cobra.Command{
		Use:   "mcp",
		Short: "List, check and try MCP servers, log in to them, and serve agents over MCP",
		Long:  "An MCP server is a program or an address that provides tools for agents. Servers are declared in mcp.json, in the format that\nmany programs use. Belay reads mcp.json in the user's directory of settings, in .belay of the project and in spaces, and the files\nthat --mcp names. Servers of a project or a space start only after you have trusted them.\n\nThe tools of a server are named server__tool. The floor decides which of their calls need approval: see permit.tools in belay.yaml.\n\n\"belay mcp serve\" is the other direction: it offers the agents of this project as tools to MCP clients.",
		Example: `  belay mcp list
  belay mcp check --mcp servers.json
  belay mcp try tickets
  belay mcp login wiki
  belay run --mcp servers.json "look at the open tickets"`,
	})
	servers.AddCommand(a.listMCPCommand(), a.checkMCPCommand(), a.tryMCPCommand(), a.loginMCPCommand(), a.logoutMCPCommand(), a.serveMCPCommand())
	return servers
}

// starting is how long "mcp list" and "mcp check" wait for servers.
const starting = time.Minute + 10*time.Second

// mcpLine is one server in the output of "belay mcp list".
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
	None    []string      `json:"unmatched,omitempty"` // patterns under "tools" in the declaration that match no tool
}

// mcpToolLine is one tool of an mcpLine.
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
		Use:     "list",
		Short:   "Start the MCP servers and list their tools",
		Long:    "Starts the MCP servers of an agent in this project, and lists their tools. ZONE is the zone of a call with an empty input. A\nreal call may be in a higher zone. If the server says that a tool is destructive, its calls need approval in every zone.",
		Example: "  belay mcp list",
		Args:    arguments(0, 0, "mcp list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMCP(cmd.Context(), func(settings *config.Loaded, all []mcptool.Status) error {
				floor, err := a.assembler().NewFloor(cmd.Context(), settings, assembly.SpillDir(settings))
				if err != nil {
					return err
				}
				out := a.newList(asJSON, "TOOL", "ZONE", "ITS SERVER SAYS", "WHAT FOR")
				for i := range all {
					line := mcpLineOf(cmd.Context(), floor, &all[i])
					for j := range line.Tools {
						tool := &line.Tools[j]
						out.row(tool.Name, fmt.Sprintf("%d %s", tool.Zone, permit.Zone(tool.Zone)), tool.hints(), short(oneLine(tool.Description), max(a.width-60, 30)))
					}
					if out.object(line); !asJSON {
						a.tellMCP(&all[i])
					}
				}
				return out.end("")
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

// mcpLineOf returns a server with its tools and their zones.
func mcpLineOf(ctx context.Context, floor *assembly.Floor, s *mcptool.Status) *mcpLine {
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

// hints returns the annotations of a tool in words.
func (t *mcpToolLine) hints() string {
	switch {
	case t.Destructive:
		return "destructive: needs approval"
	case t.ReadOnly:
		return "read-only"
	default:
		return "-"
	}
}

// tellMCP prints the problems of a server.
func (a *app) tellMCP(s *mcptool.Status) {
	if s.State == mcptool.StateDisabled {
		a.remarkf("%s", a.onErr.dim(fmt.Sprintf("mcp server %s is disabled", oneLine(s.Server.Name))))
	}
	for _, line := range assembly.Shortcomings(s) {
		a.remarkf("%s", a.onErr.yellow(line))
	}
}

// tellUnread prints a remark for an mcp.json in the root of the project. Other programs read
// such a file, and Belay does not. It reads .mcp.json, after trust.
func (a *app) tellUnread(s *config.Loaded, servers []mcptool.Server) {
	for _, name := range []string{"mcp.json"} {
		file := filepath.Join(s.Project, name)
		if _, err := os.Stat(file); err != nil || slices.ContainsFunc(servers, func(s mcptool.Server) bool { return sameFile(s.File, file) }) {
			continue
		}
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("./%s is not used: pass --mcp %s, or move it to .belay/mcp.json", name, name)))
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

// withMCP starts the MCP servers of all places, and calls f while they run.
func (a *app) withMCP(ctx context.Context, f func(*config.Loaded, []mcptool.Status) error) (err error) {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	places := a.assembler().OpenPlaces(ctx, settings)
	if places.Err != nil {
		return usage("%w", places.Err)
	}
	servers, notes, err := a.assembler().MCPServers(places, func(*space.Space) bool { return true })
	if err != nil {
		return err
	}
	a.assembler().ReportNotes(notes)
	a.tellUnread(settings, servers)
	if len(servers) == 0 && len(notes) == 0 {
		a.remarkf("there are no MCP servers: declare them in mcp.json in your directory of settings or in .belay of the project, or name a file with --mcp, see docs/mcp.md")
		return nil
	}
	e, err := a.assembler().OpenMCP(ctx, settings, servers, starting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	return f(settings, e.Servers())
}

// readOver returns warnings about settings that Belay ignores in the files of MCP
// servers.
func (a *app) readOver(p *assembly.Places) []*mcptool.FaultError {
	_, warnings, _ := a.assembler().ReadMCP() // ignore mistakes: withMCP reports them
	for _, place := range p.All {
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
		Long: "Checks the files that declare MCP servers. Prints each mistake with file and line, and the settings that Belay ignores. Then\nstarts each server once. The exit code is 2 if a file has a mistake. It is 1 if a server does not start, or has tools that an\n" +
			"agent cannot use.",
		Example: "  belay mcp check",
		Args:    arguments(0, 0, "mcp check takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			for _, w := range a.readOver(a.assembler().OpenPlaces(cmd.Context(), settings)) {
				a.remarkf("%s %s", a.onErr.yellow("ignored:"), oneLine(w.Error()))
			}
			return a.withMCP(cmd.Context(), func(_ *config.Loaded, all []mcptool.Status) error {
				wrong := 0
				for _, s := range all {
					a.tellMCP(&s)
					switch {
					case s.State == mcptool.StateReady && len(s.Left)+len(s.Unmatched) == 0:
						said := strings.TrimSpace(s.Title + " " + s.Version)
						if _, err := fmt.Fprintf(a.out, "%s: %s (%s)\n", oneLine(s.Server.Name), visible.Counted(len(s.Tools), "tool"), oneLine(said)); err != nil {
							return fmt.Errorf("check: %w", err)
						}
					case s.State != mcptool.StateDisabled:
						wrong++
					}
				}
				if wrong > 0 {
					return &exitError{code: exitFailed, err: fmt.Errorf("%s with problems", visible.Counted(wrong, "server"))}
				}
				return nil
			})
		},
	}
}
