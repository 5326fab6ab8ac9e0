package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/mcptool"
)

// server is an MCP server of another agent, in the words of Belay's mcp.json.
type server struct {
	Type     string            `json:"type,omitempty"`
	Command  string            `json:"command,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Dir      string            `json:"cwd,omitempty"`
	URL      string            `json:"url,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Tools    []string          `json:"tools,omitempty"`
	Disabled bool              `json:"disabled,omitempty"`
}

// harmless are keys of other agents that have no counterpart and limit nothing.
var harmless = []string{"description", "name", "title", "icon", "trust", "timeout", "autoApprove", "alwaysAllow", "$schema", "startup_timeout_sec", "tool_timeout_sec", "enabled", "gallery", "version"}

// renamed are other spellings of keys.
var renamed = map[string]string{"httpUrl": "url", "http_headers": "headers", "includeTools": "tools", "enabled_tools": "tools", "serverUrl": "url"}

// addServers adds the MCP servers of a file.
func (im *importer) addServers(from string, given map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		im.plan.Read++
		s, err := im.server(from, name, given[name])
		if err != nil {
			im.notef(from, "the MCP server %s is not translated: %v", name, err)
			continue
		}
		if before, ok := im.servers[name]; ok && !same(before, s) {
			im.notef(from, "the MCP server %s is not translated: another file has a server with this name", name)
			continue
		}
		im.servers[name] = s
	}
}

func (im *importer) server(from, name string, value json.RawMessage) (server, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(value, &keys); err != nil {
		return server{}, errors.New("it is not an object")
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := keys[key]
		own := key
		if to, ok := renamed[key]; ok {
			delete(keys, key)
			keys[to], own = value, to
		}
		switch {
		case slices.Contains([]string{"type", "command", "args", "env", "cwd", "url", "headers", "tools", "disabled"}, own):
		case key == "enabled" && string(value) == "false":
			keys["disabled"] = json.RawMessage("true")
		case slices.Contains(harmless, key):
			im.notef(from, "the MCP server %s: its key %s has no effect in Belay", name, key)
		default:
			return server{}, fmt.Errorf("its key %s has no counterpart in Belay, and may limit it", key)
		}
	}
	data, err := json.Marshal(keys)
	if err != nil {
		return server{}, err
	}
	var s server
	if err := json.Unmarshal(data, &s); err != nil {
		return server{}, fmt.Errorf("it cannot be read: %w", err)
	}
	if len(s.Tools) == 1 && s.Tools[0] == "*" {
		s.Tools = nil
	}
	switch s.Type {
	case "", "stdio", "local", "http", "sse", "streamable-http", "streamableHttp":
	default:
		return server{}, fmt.Errorf("its type %s is unknown to Belay", s.Type)
	}
	if s.Type != "sse" {
		s.Type = "" // the other keys say it
	}
	if err := im.places(&s); err != nil {
		return server{}, err
	}
	return s, im.sound(name, s)
}

// aVariable matches variables in all spellings that agents have.
var aVariable = lazyregexp.New(`\$\{[^}]*\}|\$[A-Za-z_]`)

// places checks what is relative to the project: Belay's own file has another directory, and
// trust covers only programs in it.
func (im *importer) places(s *server) error {
	fill := func(text string) string {
		return strings.NewReplacer("${CLAUDE_PROJECT_DIR}", im.settings.Project, "${workspaceFolder}", im.settings.Project).Replace(text)
	}
	s.Command, s.Dir = fill(s.Command), fill(s.Dir)
	for i, arg := range s.Args {
		s.Args[i] = fill(arg)
	}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for key, value := range values {
			value = regexp.MustCompile(`\$\{env:([A-Za-z_]\w*)\}`).ReplaceAllString(value, "$${$1}") // Cursor and VS Code
			if strings.Contains(value, "${input:") {
				return fmt.Errorf("%s asks the user for a value: write ${NAME}, and set the variable NAME", key)
			}
			values[key] = regexp.MustCompile(`\$([A-Za-z_]\w*)`).ReplaceAllString(value, "$${$1}") // Gemini CLI
		}
	}
	for _, text := range append([]string{s.Command, s.URL, s.Dir}, s.Args...) {
		if aVariable.MatchString(text) {
			return fmt.Errorf("%q has a variable, which Belay replaces only in env and headers", text)
		}
	}
	if s.Command == "" {
		return nil
	}
	dir := s.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(im.base, dir)
	}
	for _, word := range append([]string{s.Command}, s.Args...) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, filepath.FromSlash(path))
		}
		rel, err := filepath.Rel(im.settings.Project, path)
		if info, found := os.Stat(path); !im.User && found == nil && info.Mode().IsRegular() && err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("its program %s is in the project, and trust in .belay would not cover it: move the program into .belay/mcp, or keep the server where it is", rel)
		}
	}
	if !im.User && s.Dir == "" {
		s.Dir = ".." // the servers of the other agents run in the project
	}
	return nil
}

// sound returns an error if Belay would not read the server.
func (im *importer) sound(name string, s server) error {
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]server{name: s}})
	if err != nil {
		return err
	}
	_, err = mcptool.Parse(filepath.Join(im.target, "mcp.json"), text)
	if fault, ok := errors.AsType[*mcptool.FaultError](err); ok {
		return errors.New(strings.TrimPrefix(fault.Message, fmt.Sprintf("server %q: ", name)))
	}
	return err
}

// secretsOf returns the variables and headers whose values look like secrets and are written out.
func secretsOf(s server) (names []string) {
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if value := values[name]; value != "" && !strings.Contains(value, "${") && (redact.Name(name) || redact.Text(value) != value) {
				names = append(names, name)
			}
		}
	}
	return names
}

func same(a, b server) bool {
	one, errA := json.Marshal(a)
	other, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(one, other)
}

// writeServers adds the servers to Belay's mcp.json. Servers that are there stay.
func (im *importer) writeServers() {
	if len(im.servers) == 0 {
		return
	}
	file := filepath.Join(im.target, "mcp.json")
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		im.notef(file, "not written: it cannot be read: %v", err)
		return
	}
	top := map[string]json.RawMessage{}
	have := map[string]json.RawMessage{}
	if err == nil {
		if json.Unmarshal(before, &top) != nil || top["mcpServers"] != nil && json.Unmarshal(top["mcpServers"], &have) != nil {
			im.notef(file, "not written: it is not valid: `belay check` says why")
			return
		}
	}
	added := false
	for _, name := range slices.Sorted(maps.Keys(im.servers)) {
		if old, ok := have[name]; ok {
			var there server
			if json.Unmarshal(old, &there) != nil || !same(there, im.servers[name]) {
				im.notef(file, "it has another server %s already, which stays", name)
			}
			continue
		}
		data, err := json.Marshal(im.servers[name])
		if err != nil {
			im.notef(file, "the server %s is not written: %v", name, err)
			continue
		}
		have[name], added = data, true
		if !im.User {
			im.notef(file, "the tools of the server %s are called project-%s__TOOL", name, name)
			if all := secretsOf(im.servers[name]); len(all) > 0 {
				im.notef(file, "the server %s has the value of %s, and git shares this file: write ${NAME} there, and set the variable NAME", name, strings.Join(all, ", "))
			}
		}
	}
	if !added {
		im.plan.Same = append(im.plan.Same, file)
		return
	}
	if top["mcpServers"], err = json.Marshal(have); err == nil {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err = e.Encode(top); err == nil {
			im.put(file, text.Bytes(), true)
		}
	}
	if err != nil {
		im.notef(file, "not written: %v", err)
	}
}
