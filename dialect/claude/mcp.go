package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/mcptool"
)

// Servers are the MCP servers of a file .mcp.json.
type Servers struct {
	Servers []mcptool.Server
	// Programs are files beside the file that the servers name. Trust must cover them.
	Programs []string
	// Notes say which servers and keys are not used, and why.
	Notes []string
}

// ReadServers reads a file .mcp.json, with or without the key mcpServers around the servers.
// lookup returns environment variables, and variables such as CLAUDE_PLUGIN_ROOT. The error
// is fs.ErrNotExist if there is no such file.
func ReadServers(file string, lookup func(name string) (string, bool)) (*Servers, error) {
	text, err := readText(file, mcptool.Limit+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("it cannot be read: %w", err)
	case len(text) > mcptool.Limit:
		return nil, fmt.Errorf("it is longer than %d bytes", mcptool.Limit)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	return ParseServers(file, text, top, lookup), nil
}

// ParseServers is like ReadServers, for servers that are in another file, such as plugin.json.
// top is the object with the servers, and text is the whole file.
func ParseServers(file, text string, top map[string]json.RawMessage, lookup func(name string) (string, bool)) *Servers {
	r := &servers{into: new(Servers), file: file, lookup: lookup}
	given := top
	if inner, ok := top["mcpServers"]; ok {
		given = nil
		if err := json.Unmarshal(inner, &given); err != nil {
			r.notef("mcpServers is no object, so no servers are used")
		}
		for _, key := range slices.Sorted(maps.Keys(top)) {
			if key != "mcpServers" && key != "$schema" {
				r.notef("Belay ignores the key %s", key)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		before := len(r.into.Servers)
		if err := r.server(name, given[name]); err != nil {
			r.notef("server %s is not used: %v", name, err)
			continue
		}
		for i := before; i < len(r.into.Servers); i++ {
			at, _, _ := strings.Cut(text, `"`+name+`"`)
			r.into.Servers[i].Line = strings.Count(at, "\n") + 1
		}
	}
	return r.into
}

// servers is the state while servers are read.
type servers struct {
	into   *Servers
	file   string
	lookup func(name string) (string, bool)
}

func (r *servers) notef(format string, args ...any) {
	r.into.Notes = append(r.into.Notes, fmt.Sprintf(format, args...))
}

// entry is a server. Its keys are those that Belay uses.
type entry struct {
	Type     string            `json:"type,omitempty"`
	Command  string            `json:"command,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Dir      string            `json:"cwd,omitempty"`
	URL      string            `json:"url,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Disabled bool              `json:"disabled,omitempty"`
}

// restricting are keys of other programs that limit what a server may do. A server with such
// a key is not used, because without the key it could do more.
var restricting = []string{"disabledTools", "enabledTools", "excludeTools", "includeTools", "allowedTools", "disallowedTools"}

func (r *servers) server(name string, value json.RawMessage) error {
	var keys map[string]json.RawMessage
	var e entry
	if err := json.Unmarshal(value, &keys); err != nil {
		return errors.New("it is no object")
	}
	if err := json.Unmarshal(value, &e); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case slices.Contains([]string{"type", "command", "args", "env", "cwd", "url", "headers", "disabled", "description"}, key):
		case slices.Contains(restricting, key):
			return fmt.Errorf("its limit %s is not known to Belay: remove it, or write the server into .belay/mcp.json with the key tools", key)
		default:
			r.notef("server %s: Belay ignores the key %s", name, key)
		}
	}
	if e.URL != "" && e.Command == "" && e.Type == "" {
		e.Type = "http"
	}
	if e.Dir == "" && e.Command != "" {
		e.Dir = filepath.Dir(r.file)
	}
	if err := r.expand(&e); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]entry{name: e}})
	if err != nil {
		return err
	}
	read, err := mcptool.Parse(r.file, text)
	if err != nil {
		if fault, ok := errors.AsType[*mcptool.FaultError](err); ok {
			return errors.New(strings.TrimPrefix(fault.Message, fmt.Sprintf("server %q: ", name)))
		}
		return err
	}
	r.into.Servers = append(r.into.Servers, read.Servers...)
	for i := range read.Servers {
		r.programs(&read.Servers[i])
	}
	return nil
}

// programs remembers the files beside the file that a server names.
func (r *servers) programs(s *mcptool.Server) {
	for _, word := range append([]string{s.Command}, s.Args...) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, filepath.FromSlash(path))
		}
		if strings.ContainsAny(word, `/\.`) && inside(filepath.Dir(r.file), path) && isRegular(path) {
			r.into.Programs = append(r.into.Programs, path)
		}
	}
}

// variable matches ${NAME} and ${NAME:-default}.
var variable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand replaces variables. In env and headers, it replaces only those of Claude Code: package
// mcptool replaces the others when the server starts, so that secrets stay out of listings.
func (r *servers) expand(e *entry) error {
	var missing []string
	whole := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(match string) string {
			m := variable.FindStringSubmatch(match)
			if value, ok := r.lookup(m[1]); ok && value != "" {
				return value
			}
			if m[2] == "" {
				missing = append(missing, m[1])
			}
			return m[3]
		})
	}
	later := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(match string) string {
			m := variable.FindStringSubmatch(match)
			if value, ok := r.lookup(m[1]); ok && strings.HasPrefix(m[1], "CLAUDE_") {
				return value
			}
			return match
		})
	}
	e.Command, e.URL, e.Dir = whole(e.Command), whole(e.URL), whole(e.Dir)
	for i := range e.Args {
		e.Args[i] = whole(e.Args[i])
	}
	for _, values := range []map[string]string{e.Env, e.Headers} {
		for key := range values {
			values[key] = later(values[key])
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the environment variable %s is not set", strings.Join(missing, ", "))
	}
	return nil
}
