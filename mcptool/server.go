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
	// Name is the prefix of the server's tools.
	Name string
	// Command is the program: a path, or a name that is looked up in PATH.
	Command string
	// Args are the program's arguments. Belay expands no variables in them.
	Args []string
	// Dir is the program's working directory. Defaults to [Options].Dir.
	Dir string
	// Env are additional environment variables. A key is the name of a variable. In a
	// value, ${NAME} stands for the variable NAME of Environ. In ${NAME:-text}, text is
	// the default if NAME is empty or not set.
	Env map[string]string
	// URL is the address of a streamable HTTP server. It must be https, or http to this
	// machine.
	URL string
	// Headers are the HTTP headers of every request. A key is the name of a header.
	// Values may contain variables, as in Env.
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
	// Tools lists the tools to use. An entry is the server's name of a tool, or a pattern
	// of [path.Match]. Defaults to nil, which means all tools. An empty list that is not
	// nil means no tools.
	Tools []string
	// Start is the timeout for start and handshake. It is also how long [New] waits for
	// this server. The defaults are [Options].Start for the timeout and [Options].Wait
	// for the wait.
	Start time.Duration
	// Sampling lets the server ask the agent's model, during a call of the server. Belay asks
	// the user about each request. Defaults to false.
	Sampling bool
	// Required means that the agent needs this server. [New] then waits for it until it
	// is ready, has failed once, or its start times out. The caller should check
	// [Extension.Missing].
	Required bool
	// Disabled means that Belay does not start the server.
	Disabled bool
	// Environ is the environment that this server gets variables from. Defaults to
	// [Options].Environ.
	Environ []string
	// Prepare is called before each start. It gets the program with its arguments, or an
	// empty list for a URL. It returns the command to run. If it returns an error, the
	// server is down and Belay tries again later.
	Prepare func(ctx context.Context, argv []string) ([]string, error)
	// Apart separates servers with equal declarations. They share a process only if Apart
	// is also equal.
	Apart string
	// File and Line are the position of the declaration, if it comes from a file.
	File string
	Line int
}

// longestName is the maximum length of a server's name in characters.
const longestName = 64

// sound returns an error with all mistakes of the declaration, or nil.
func (s *Server) sound() error {
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("mcp server %q: "+format, append([]any{s.Name}, args...)...))
	}
	switch {
	case s.Name == "":
		refuse("the name is missing")
	case len([]rune(s.Name)) > longestName:
		refuse("the name is longer than %d characters", longestName)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		refuse("the name has characters that cannot be shown")
	}
	switch {
	case s.Serve != nil:
		if s.Command != "" || s.URL != "" || s.Args != nil || s.Dir != "" || s.Env != nil || s.Headers != nil {
			refuse("Serve runs in this process: leave out the command, its settings, the url and the headers")
		}
	case s.Command == "" && s.URL == "":
		refuse("the server has neither a command nor a url: add one of them")
	case s.Command != "" && s.URL != "":
		refuse("the server has a command and a url: remove one of them")
	case s.URL != "":
		if s.Args != nil || s.Dir != "" || s.Env != nil {
			refuse("args, cwd and env are only for servers with a command, and this server has a url: remove them")
		}
		if err := checkURL(s.URL); err != nil {
			refuse("url: %w", err)
		}
	case s.Headers != nil:
		refuse("headers are only for servers with a url, and this server has a command: remove them")
	}
	if s.Start < 0 {
		refuse("start is negative: use 0 or more")
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

// checkURL returns an error if a server must not have this URL.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("the value is not a URL")
	case u.Host == "":
		return errors.New("the URL is not complete: write https://host/path")
	case u.User != nil:
		return errors.New("the URL contains a user name: use a header instead, such as Authorization, and write the secret as ${NAME}")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("the URL uses http to another machine, so others can read and change the messages: use https")
	default:
		return fmt.Errorf("%s is not supported: use https, or http to this machine", u.Scheme)
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// wants reports whether agents may use a tool of the server, according to s.Tools.
func (s *Server) wants(tool string) bool {
	return s.Tools == nil || slices.ContainsFunc(s.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// Has reports whether the name of an agent's tool has the prefix of this server. The
// server need not have that tool.
func (s *Server) Has(tool string) bool { return strings.HasPrefix(tool, front(s.Name)) }

// where returns the position of a server's declaration, for errors.
func (s *Server) where() string {
	if s.File == "" {
		return "Go code"
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// dir returns the working directory of the server's program as an absolute path.
func (s *Server) dir(fallback string) string {
	dir := cmp.Or(s.Dir, fallback)
	if whole, err := filepath.Abs(dir); dir != "" && err == nil {
		return whole
	}
	return dir
}
