package mcptool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/near"
)

// Limit is the maximum size of an mcp.json file in bytes.
const Limit = frontmatter.Limit

// Config is the content of an mcp.json file.
type Config struct {
	// Servers are in the order of the file.
	Servers []Server
	// Warnings name keys that Belay ignored.
	Warnings []*FaultError
}

// FaultError is a mistake in an mcp.json file.
type FaultError struct {
	File string
	Line int
	// Message explains what is wrong and what to do.
	Message string
}

func (f *FaultError) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// Load reads an mcp.json file, in the format that many programs share:
//
//	{"mcpServers": {"NAME": {"command": "…", "args": […], "env": {…}, "cwd": "…"},
//	                "NAME": {"type": "http", "url": "…", "headers": {…}}}}
//
// The error joins one [FaultError] for each mistake. Even with an error, the Config has
// the servers without mistakes. Load starts no server and reads no variables.
func Load(file string) (*Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	text, err := io.ReadAll(io.LimitReader(f, Limit+1))
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	return Parse(file, text)
}

// Parse reads text as the content of file. The file need not exist. Relative paths in
// text are relative to the directory of file.
func Parse(file string, text []byte) (*Config, error) {
	r := &reading{file: file, config: new(Config)}
	r.read(strings.TrimPrefix(string(text), "\ufeff"))
	return r.config, errors.Join(r.faults...)
}

// reading is the state while a file is read.
type reading struct {
	file   string
	config *Config
	faults []error
}

func (r *reading) faultf(line int, format string, args ...any) {
	r.faults = append(r.faults, &FaultError{r.file, line, fmt.Sprintf(format, args...)})
}

func (r *reading) warnf(line int, format string, args ...any) {
	r.config.Warnings = append(r.config.Warnings, &FaultError{r.file, line, fmt.Sprintf(format, args...)})
}

// The keys of the file, and of one server.
var (
	topKeys    = []string{"mcpServers"}
	serverKeys = []string{"type", "command", "args", "env", "cwd", "url", "headers", "tools", "start", "sampling", "required", "disabled"}
)

// foreign are keys of other programs that Belay ignores with a warning. The keys of the
// outer map say where such a key is: "" is the top of the file. The values are the
// reasons. Ignoring a key must not change which server runs or what it may do. So keys
// that restrict a server are not in the list.
var foreign = map[string]map[string]string{
	"": {
		"$schema": "", "inputs": "Belay does not ask for values: use ${NAME}, from the environment",
	},
	"server": {
		"name": "", "title": "", "description": "", "version": "", "icon": "", "gallery": "", "$schema": "",
		"autoApprove": "the floor's rules decide about approvals", "alwaysAllow": "the floor's rules decide about approvals",
		"trust": "the floor's rules decide about approvals", "timeout": "the agent's limits set the timeout of tools",
	},
}

// unknown reports a key that Belay does not use: a warning for foreign keys, else a
// fault.
func (r *reading) unknown(f frontmatter.Field, where, of string, known []string) {
	if why, ok := foreign[where][f.Key]; ok {
		if why != "" {
			why = ": " + why
		}
		r.warnf(f.Line, "%s%q is ignored%s", of, f.Key, why)
		return
	}
	r.faultf(f.Line, "%sunknown key %q%s: valid keys are %s", of, f.Key, near.Hint(f.Key, known), strings.Join(known, ", "))
}

func (r *reading) read(text string) {
	v, err := frontmatter.ReadJSON(text)
	if problem, ok := errors.AsType[*frontmatter.Error](err); ok {
		r.faultf(problem.Line, "%s", problem.Message)
		return
	}
	if v.Kind != frontmatter.Map {
		r.faultf(v.Line, `the file is %s: write {"mcpServers": {"NAME": {"command": "…"}}}`, v.Kind)
		return
	}
	found := false
	for _, f := range v.Map {
		switch {
		case f.Key != "mcpServers":
			r.unknown(f, "", "", topKeys)
		case f.Value.Kind != frontmatter.Map:
			r.faultf(f.Line, "mcpServers is %s: it must be a mapping of names to servers", f.Value.Kind)
		default:
			for _, s := range f.Value.Map {
				r.server(s)
			}
		}
		found = found || f.Key == "mcpServers"
	}
	if !found && len(r.faults) == 0 {
		r.faultf(v.Line, `there is no mcpServers: write {"mcpServers": {"NAME": {"command": "…"}}}`)
	}
}

// server reads one server. It adds the server only if its declaration has no mistake.
func (r *reading) server(f frontmatter.Field) {
	before := len(r.faults)
	of := fmt.Sprintf("server %q: ", f.Key)
	if f.Value.Kind != frontmatter.Map {
		r.faultf(f.Line, "%sthe value is %s: it must be an object with command or url", of, f.Value.Kind)
		return
	}
	s := Server{Name: f.Key, File: r.file, Line: f.Line}
	kind := ""
	for _, field := range f.Value.Map {
		what := of + field.Key
		switch v := field.Value; field.Key {
		case "type":
			kind = r.kind(field, what)
		case "command":
			s.Command = r.text(v, what)
		case "args":
			s.Args = r.texts(v, what)
		case "env":
			s.Env = r.mapping(v, what)
		case "cwd":
			s.Dir = r.text(v, what)
		case "url":
			s.URL = r.text(v, what)
		case "headers":
			s.Headers = r.mapping(v, what)
		case "tools":
			s.Tools = r.texts(v, what)
		case "start":
			s.Start = r.duration(v, what)
		case "sampling":
			s.Sampling = r.truth(v, what)
		case "required":
			s.Required = r.truth(v, what)
		case "disabled":
			s.Disabled = r.truth(v, what)
		default:
			r.unknown(field, "server", of, serverKeys)
		}
	}
	r.literal(&s)
	switch {
	case kind == "stdio" && s.URL != "" && s.Command == "":
		r.faultf(f.Line, "%sthe type is stdio, but the server has a url: remove the type, or write http", of)
	case kind == "http" && s.Command != "" && s.URL == "":
		r.faultf(f.Line, "%sthe type is http, but the server has a command: remove the type, or write stdio", of)
	}
	r.places(&s)
	if len(r.faults) > before {
		return
	}
	if err := s.sound(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.faultf(f.Line, "%s", strings.TrimPrefix(line, "mcp "))
		}
		return
	}
	r.config.Servers = append(r.config.Servers, s)
}

func (r *reading) truth(v frontmatter.Value, what string) bool {
	if v.Kind != frontmatter.Bool {
		r.faultf(v.Line, "%s is %s: it must be true or false", what, v.Kind)
	}
	return v.Text == "true"
}

// duration reads a number of seconds, or a text such as 90s or 2m.
func (r *reading) duration(v frontmatter.Value, what string) time.Duration {
	text := v.Text
	if v.Kind == frontmatter.Int || v.Kind == frontmatter.Float {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || v.Kind != frontmatter.Int && v.Kind != frontmatter.Float && v.Kind != frontmatter.String {
		r.faultf(v.Line, `%s: the value must be greater than 0: write a number of seconds, or a text such as "90s" or "2m"`, what)
	}
	return d
}

// kind reads the type of a server. It returns stdio or http, or "" after a fault.
func (r *reading) kind(f frontmatter.Field, what string) string {
	switch f.Value.Text {
	case "stdio", "http":
		return f.Value.Text
	case "streamable-http", "streamableHttp", "streamable_http":
		return "http"
	case "sse":
		r.faultf(f.Line, "%s: Belay does not support the type sse, which the protocol has removed: use the server's URL for streamable HTTP with the type http", what)
	default:
		known := []string{"stdio", "http"}
		r.faultf(f.Line, "%s: unknown type %q%s: use stdio or http", what, f.Value.Text, near.Hint(f.Value.Text, known))
	}
	return ""
}

// literal warns about ${NAME} in fields where Belay does not expand variables.
func (r *reading) literal(s *Server) {
	for _, text := range append([]string{s.Command, s.Dir, s.URL}, s.Args...) {
		if strings.Contains(text, "${") {
			r.warnf(s.Line, "server %q: %q is used as written: ${NAME} is expanded only under env and headers", s.Name, text)
		}
	}
}

// places makes relative paths absolute. A command without a slash stays as it is: the
// operating system finds it in PATH.
func (r *reading) places(s *Server) {
	dir, err := filepath.Abs(filepath.Dir(r.file))
	if err != nil {
		r.faultf(s.Line, "server %q: %v", s.Name, err)
		return
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(dir, s.Dir)
	}
	if strings.ContainsAny(s.Command, `/\`) && !filepath.IsAbs(s.Command) {
		s.Command = filepath.Join(dir, s.Command)
	}
}

func (r *reading) text(v frontmatter.Value, what string) string {
	if v.Kind != frontmatter.String || v.Text == "" {
		r.faultf(v.Line, "%s is %s: it must be a text", what, emptyOr(v))
	}
	return v.Text
}

func emptyOr(v frontmatter.Value) string {
	if v.Kind == frontmatter.String {
		return "empty"
	}
	return v.Kind.String()
}

func (r *reading) texts(v frontmatter.Value, what string) []string {
	if v.Kind != frontmatter.List {
		r.faultf(v.Line, "%s is %s: it must be a list of texts", what, v.Kind)
		return nil
	}
	texts := make([]string, 0, len(v.List))
	for _, item := range v.List {
		if item.Kind != frontmatter.String {
			r.faultf(item.Line, "%s contains %s: every element must be a text", what, item.Kind)
		}
		texts = append(texts, item.Text)
	}
	return texts
}

func (r *reading) mapping(v frontmatter.Value, what string) map[string]string {
	if v.Kind != frontmatter.Map {
		r.faultf(v.Line, "%s is %s: it must be a mapping of names to texts", what, v.Kind)
		return nil
	}
	values := make(map[string]string, len(v.Map))
	for _, f := range v.Map {
		if f.Value.Kind != frontmatter.String {
			r.faultf(f.Line, "%s: %q is %s: it must be a text", what, f.Key, f.Value.Kind)
		}
		if _, err := expand(f.Value.Text, func(string) (string, bool) { return "x", true }); err != nil {
			r.faultf(f.Line, "%s: %s: %v", what, f.Key, err)
		}
		values[f.Key] = f.Value.Text
	}
	return values
}
