package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Server declares a server: a program to start, a URL, or a function of this program.
type Server struct {
	// Name is the prefix of its tools.
	Name string
	// Command is the program: a name that is looked up in PATH, or a path.
	Command string
	// Args are its arguments. No variables are expanded.
	Args []string
	// Dir is its working directory. Defaults to the Dir of [Options].
	Dir string
	// Env are additional variables, by name. ${NAME} in a value stands for a variable
	// of the host, ${NAME:-text} adds a default.
	Env map[string]string
	// URL is the URL of a server over streamable HTTP: https, or http to this machine.
	URL string
	// Headers are sent with every request, by name. Variables in values are expanded as
	// in Env.
	Headers map[string]string
	// Serve runs the server in this process, for tests and for servers of your own. It reads
	// the client's messages from in, writes its own to out, one per line, and returns when
	// in ends or ctx is cancelled. With a server of the official SDK:
	//
	//	server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	//
	// Extensions do not share such a server: each calls Serve, and calls it again after it
	// has returned.
	Serve func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error
	// Tools lists the tools to use, by the server's names or patterns of [path.Match].
	// An empty list means none. Defaults to all.
	Tools []string
	// Start is the timeout to start and answer the handshake, and how long [New] waits for
	// it. Defaults to the Start and the Wait of [Options].
	Start time.Duration
	// Required means that the agent needs this server: [New] waits for it until its start
	// times out, and the caller should check [Extension.Missing].
	Required bool
	// Disabled means that it is not started.
	Disabled bool
	// Environ is the part of the host's environment that this server may use. Defaults
	// to that of [Options].
	Environ []string
	// Prepare is called each time before the server is started, with the program and
	// its arguments, or with nothing for a URL. It returns the command to run, or an
	// error: then the server is down and will be tried again.
	Prepare func(ctx context.Context, argv []string) ([]string, error)
	// Apart separates servers with equal declarations: they share a process only if
	// Apart is equal, too.
	Apart string
	// File and Line are the position of its declaration, if it is from a file.
	File string
	Line int
}

// longestName is how many characters the name of a server may have.
const longestName = 64

// sound returns what is wrong with a server, or nil.
func (s *Server) sound() error {
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("mcp server %q: "+format, append([]any{s.Name}, args...)...))
	}
	switch {
	case s.Name == "":
		refuse("name: it is missing")
	case len([]rune(s.Name)) > longestName:
		refuse("name: it is longer than %d characters", longestName)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		refuse("name: it has characters that cannot be shown")
	}
	switch {
	case s.Serve != nil:
		if s.Command != "" || s.URL != "" || s.Args != nil || s.Dir != "" || s.Env != nil || s.Headers != nil {
			refuse("Serve runs in this process: leave out the command, its settings, the url and the headers")
		}
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
			refuse("env: %q is not the name of a variable", name)
		}
	}
	return errors.Join(problems...)
}

// checkURL returns what is wrong with the URL of a server.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Host == "":
		return errors.New("it is not a complete URL: write https://host/path")
	case u.User != nil:
		return errors.New("it contains a user: use a header instead, such as Authorization, with ${NAME} for the secret")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("it is http to another machine, so others can read and change the messages: use https")
	default:
		return fmt.Errorf("%s is not supported: use https, or http to this machine", u.Scheme)
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

// where returns the position of a server's declaration, for errors.
func (s *Server) where() string {
	if s.File == "" {
		return "Go code"
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// dir returns the working directory of the server's program.
func (s *Server) dir(fallback string) string {
	dir := cmp.Or(s.Dir, fallback)
	if whole, err := filepath.Abs(dir); dir != "" && err == nil {
		return whole
	}
	return dir
}
