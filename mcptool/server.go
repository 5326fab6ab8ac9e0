package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Server says how a server is reached: by a program that is started, or at an address.
type Server struct {
	// Name is in front of the names of its tools.
	Name string
	// Command is the program: a name that is looked up in PATH, or a path.
	Command string
	// Args are its arguments, as they are.
	Args []string
	// Dir is where it runs. Defaults to the Dir of [Options].
	Dir string
	// Env are the variables that it gets besides the usual ones, by name. ${NAME} in a
	// value stands for a variable of the host, ${NAME:-text} for that or a text.
	Env map[string]string
	// URL is the address of a server that is reached by streamable HTTP: https, or http
	// to this machine.
	URL string
	// Headers are sent with every request, by name. Values are filled in as those of Env.
	Headers map[string]string
	// Tools names those of its tools that are used, as the server calls them: names or
	// patterns, as path.Match takes them. An empty list means none. Defaults to all.
	Tools []string
	// Start is how long it has to start and answer the handshake, and how long [New] waits
	// for it. Defaults to the Start and the Wait of [Options].
	Start time.Duration
	// Required says that an agent is of no use without it: [New] waits for it as long as it
	// may take to start, and whoever made the extension should look at [Extension.Missing].
	Required bool
	// Disabled keeps it from being started.
	Disabled bool
	// Environ is the host's environment as far as this server may know it. Defaults to
	// that of [Options].
	Environ []string
	// Prepare is asked each time before the server is started, with the program and its
	// arguments, or with nothing for an address. It returns what is run, or why nothing
	// may be: then the server is down, and tried again.
	Prepare func(ctx context.Context, argv []string) ([]string, error)
	// Apart keeps servers apart that are declared alike: they share a process only if
	// this is the same.
	Apart string
	// File and Line are where it is declared, if it is.
	File string
	Line int
}

// longestName is how many characters the name of a server may have.
const longestName = 64

// sound says what is wrong with a server, or nothing.
func (s *Server) sound() error {
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("mcp server %q: "+format, append([]any{s.Name}, args...)...))
	}
	switch {
	case s.Name == "":
		refuse("name: it has none")
	case len([]rune(s.Name)) > longestName:
		refuse("name: it is longer than %d characters", longestName)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		refuse("name: it has characters that cannot be shown")
	}
	switch {
	case s.Command == "" && s.URL == "":
		refuse("it has neither a command nor a url: give one of them")
	case s.Command != "" && s.URL != "":
		refuse("it has a command and a url: leave one of them")
	case s.URL != "":
		if s.Args != nil || s.Dir != "" || s.Env != nil {
			refuse("args, cwd and env are for a command, and it has a url: leave them out")
		}
		if err := checkURL(s.URL); err != nil {
			refuse("url: %w", err)
		}
	case s.Headers != nil:
		refuse("headers are for a url, and it has a command: leave them out")
	}
	if s.Start < 0 {
		refuse("start: it is negative")
	}
	for _, pattern := range s.Tools {
		if _, err := path.Match(pattern, ""); err != nil {
			refuse("tools: %q: %w", pattern, err)
		}
	}
	for _, name := range sortedKeys(s.Env) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			refuse("env: %q is no name of a variable", name)
		}
	}
	return errors.Join(problems...)
}

// checkURL says what is wrong with the address of a server.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is no address")
	case u.Host == "":
		return errors.New("it is no whole address: write https://host/path")
	case u.User != nil:
		return errors.New("it has a user in it: use a header, such as Authorization, with ${NAME} for what is secret")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("it is http to another machine, where everybody on the way can read and change what is said: use https")
	default:
		return fmt.Errorf("%s is not spoken here: use https, or http to this machine", u.Scheme)
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// wants reports whether a tool of the server is used.
func (s *Server) wants(tool string) bool {
	return s.Tools == nil || slices.ContainsFunc(s.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// Has reports whether a tool is one of the server by its name, which need not be on its
// list.
func (s *Server) Has(tool string) bool { return strings.HasPrefix(tool, front(s.Name)) }

// where says where a server is declared, for errors.
func (s *Server) where() string {
	if s.File == "" {
		return "Go code"
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// dir is where the server's program runs.
func (s *Server) dir(fallback string) string {
	dir := cmp.Or(s.Dir, fallback)
	if whole, err := filepath.Abs(dir); dir != "" && err == nil {
		return whole
	}
	return dir
}
