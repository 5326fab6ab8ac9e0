package space

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/mcptool"
)

// loadServers reads the MCP servers from mcp.json.
func (s *Space) loadServers(p *problems) {
	file, ok := s.within(mcpFile, p)
	if !ok {
		return
	}
	read, err := mcptool.Load(file)
	p.servers(file, err)
	if read == nil {
		return
	}
	s.Servers = read.Servers
	for i := range s.Servers {
		server := &s.Servers[i]
		if prefix := s.Prefix(); prefix != "" {
			server.Name = prefix + "-" + server.Name
		}
		if s.Origin.Kind == hook.OriginProject || s.Origin.Kind == hook.OriginSpace {
			if server.Sampling {
				p.addf(server.File, server.Line, "server %q: only servers of your own settings may use the agent's model: remove sampling, or declare the server in your own mcp.json", server.Name)
				server.Sampling = false
			}
			s.serverFiles(server, p)
		}
	}
}

// serverFiles checks the files of the directory that a server uses: trust must cover them.
// An argument that begins with ./ is a file beside mcp.json, if that file exists.
func (s *Space) serverFiles(server *mcptool.Server, p *problems) {
	for i, arg := range server.Args {
		if !strings.HasPrefix(filepath.ToSlash(arg), "./") {
			continue
		}
		file := filepath.Join(s.Dir, filepath.FromSlash(arg))
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			server.Args[i] = file
			s.serverFile(server, file, p)
		}
	}
	if !filepath.IsAbs(server.Command) {
		return // the command is looked up in PATH
	}
	rel, err := filepath.Rel(s.Dir, server.Command)
	if err != nil || !filepath.IsLocal(rel) {
		return // the command is outside of the directory
	}
	info, err := os.Stat(server.Command)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.addf(server.File, server.Line, "server %q: the program %s does not exist: paths are relative to the directory of this file", server.Name, rel)
	case err != nil:
		p.addf(server.File, server.Line, "server %q: %s: %s", server.Name, rel, reason(err))
	case !info.Mode().IsRegular():
		p.addf(server.File, server.Line, "server %q: %s is not a file: set command to a program", server.Name, rel)
	case info.Mode()&0o111 == 0 && executables:
		p.addf(server.File, server.Line, "server %q: %s is not executable: run chmod +x %s", server.Name, rel, rel)
	default:
		s.serverFile(server, server.Command, p)
	}
}

// executables reports whether the system has permissions to execute files.
const executables = filepath.Separator == '/'

func (s *Space) serverFile(server *mcptool.Server, file string, p *problems) {
	if actual, err := filepath.EvalSymlinks(file); err == nil {
		file = actual
	}
	if rel, err := filepath.Rel(s.Dir, file); err != nil || !inParts(rel) {
		p.addf(server.File, server.Line, "server %q: trust does not cover its program %s: move the program into mcp/", server.Name, file)
	}
}

// Servers returns the MCP servers of a directory that may run, and notes about the others.
// Servers of a project or a space run only while their files are unchanged since they were
// trusted. They get the same environment as hooks, and are confined in the same way.
func (h *Host) Servers(s *Space) ([]mcptool.Server, []Note, error) {
	p, err := h.plan(s)
	if err != nil {
		return nil, nil, err
	}
	notes := slices.DeleteFunc(p.notes, func(n Note) bool { return n.Phase != "" })
	return h.servers(p, &seal{cover: s.coverage(), last: s.read}), notes, nil
}

// judgeServers decides which servers run. It adds a note for each other server, unless the
// server's file disables it.
func (h *Host) judgeServers(p *plan) {
	for i := range p.space.Servers {
		server := &p.space.Servers[i]
		var reason string
		switch {
		case server.Disabled:
			continue
		case server.Command != "" && h.opts.NoCommands:
			reason = noCommands
		case !p.standing.Trusted:
			reason = p.standing.Reason
		case server.URL != "" && !p.standing.may(p.space.Origin.Kind, GrantNetwork):
			reason = h.missing(p.space, GrantNetwork)
		default:
			p.servers = append(p.servers, *server)
			continue
		}
		p.notes = append(p.notes, Note{ID: server.Name, File: server.File, Line: server.Line, Reason: reason})
	}
}

// servers returns the servers of a plan that may run. A server of a project or a space
// checks trust before each start.
func (h *Host) servers(p *plan, check *seal) []mcptool.Server {
	all := slices.Clone(p.servers)
	s := p.space
	if s.Origin.Kind == hook.OriginHost || s.Origin.Kind == hook.OriginOperator {
		return all
	}
	for i := range all {
		server := &all[i]
		server.Apart = s.Dir + "\x00" + s.Hash
		if server.Environ = h.opts.Declare.Environ; server.Environ == nil {
			server.Environ = os.Environ()
		}
		grant := ""
		if server.URL != "" {
			grant = GrantNetwork
		}
		d := &declare.Declaration{ID: server.Name, Kind: hook.HandlerWorker, Dir: s.Dir, File: server.File, Line: server.Line}
		server.Prepare = func(ctx context.Context, argv []string) ([]string, error) {
			if err := h.trusted(s, check, s.Hash, len(argv) > 0, grant); err != nil || len(argv) == 0 {
				return nil, err
			}
			confine := h.confine(s)
			if confine == nil {
				return argv, nil
			}
			run := &declare.Execution{Argv: argv}
			err := confine(ctx, d, run)
			return run.Argv, err
		}
	}
	return all
}
