package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
	"github.com/spf13/cobra"
)

// tokenVariable is the environment variable with the token for a server.
const tokenVariable = "BELAY_TOKEN"

// serverClient is the client for the server that the settings name.
type serverClient struct {
	*client.Client

	from string // where the token is from
}

// atServer calls f with a client of the server that the settings name.
func (a *app) atServer(settings *config.Loaded, f func(*serverClient) error) error {
	token, from, err := tokenFor(settings)
	if err != nil {
		return err
	}
	c, err := client.New(settings.Server, token, nil)
	if err != nil {
		return usage("%s: %w", settings.From("server"), err)
	}
	if u, err := url.Parse(settings.Server); err == nil && u.Scheme == "http" && !isLoopback(u) {
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("the token and all messages are sent to %s without encryption: use https", u.Host)))
	}
	return refused(f(&serverClient{c, from}), from)
}

// refused adds a hint to the error of a request that the server refused because of its token.
func refused(err error, from string) error {
	if _, told := errors.AsType[*exitError](err); told || !errors.Is(err, api.ErrDenied) {
		return err
	}
	return &exitError{code: exitFailed, err: err, hint: "the token is from " + from + "; `belay token list` on the server's machine shows the roles of tokens"}
}

// tokenFor returns the token for the server that the settings name, and where it is from. A
// token is never an argument of a command, because other users of the machine can see those.
func tokenFor(settings *config.Loaded) (token, from string, err error) {
	if token := strings.TrimSpace(settings.Environment(tokenVariable)); token != "" {
		return token, tokenVariable, nil
	}
	if settings.TokenFile != "" {
		token, err := readToken(settings.TokenFile)
		if err != nil {
			return "", "", usage("%s: token_file: %w", settings.From("token_file"), err)
		}
		return token, settings.TokenFile, nil
	}
	u, err := url.Parse(settings.Server)
	if dir := assembly.TokenDir(settings); err == nil && dir != "" && isLoopback(u) { // a server of this user has made it
		file := serve.OpenTokens(dir).LocalFile()
		token, err := readToken(file)
		if !errors.Is(err, fs.ErrNotExist) {
			return token, file, err
		}
	}
	return "", "", &exitError{
		code: exitUsage, err: fmt.Errorf("there is no token for the server %s: set %s, or token_file in the user's %s", config.MaskDSN(settings.Server), tokenVariable, config.Name),
		hint: "`belay token create NAME --role run --role approve` on the server's machine makes a token",
	}
}

// readToken reads a token from a file that only its owner can read.
func readToken(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // Windows has no such file modes
		return "", fmt.Errorf("other users of this machine can read or change %s (mode %04o): run chmod 600 %s", file, info.Mode().Perm(), quoted(file))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// isLoopback reports whether an address is on this machine.
func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// serverFlag returns the flag --server of this command, to repeat it in a suggested command.
func (a *app) serverFlag() string {
	if a.server == "" {
		return ""
	}
	return " --server " + quoted(a.server)
}

// onServers are the commands that work on a server, without "belay". Their subcommands do too,
// except those in onlyHere.
var (
	onServers = []string{"run", "chat", "resume", "approvals", "sessions", "show", "runs", "audit", "backtest", "watch", "console"}
	onlyHere  = []string{"audit verify", "audit anchor", "audit export"}
)

// checkServerFlag returns an error if a command that cannot use a server has the flag --server.
func (a *app) checkServerFlag(cmd *cobra.Command) error {
	if a.server == "" {
		return nil
	}
	path := strings.TrimPrefix(cmd.CommandPath(), "belay ")
	name, _, _ := strings.Cut(path, " ")
	if name == "belay" { // belay alone is chat or run
		name = "run"
	}
	switch {
	case cmd.Flags().Changed("store"):
		return usage("--server and --store exclude each other: give one of them")
	case !slices.Contains(onServers, name) || slices.Contains(onlyHere, path):
		return &exitError{
			code: exitUsage, err: fmt.Errorf("%s cannot use a server: run it on the server's machine, without --server", cmd.CommandPath()),
			hint: "these commands can use a server: " + strings.Join(onServers, ", "),
		}
	}
	return nil
}
