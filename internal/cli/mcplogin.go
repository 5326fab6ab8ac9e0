package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/space"
	"github.com/spf13/cobra"
)

// loggingIn is how long "belay mcp login" waits for the user.
const loggingIn = 10 * time.Minute

// findMCP returns the declaration of a server, whether or not the server may run now.
func (a *app) findMCP(ctx context.Context, name string) (*config.Loaded, *mcptool.Server, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	places := a.assembler().OpenPlaces(ctx, settings)
	if places.Err != nil {
		return nil, nil, usage("%w", places.Err)
	}
	servers, notes, err := a.assembler().MCPServers(places, func(*space.Space) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for i := range servers {
		if servers[i].Name == name {
			return settings, &servers[i], nil
		}
		names = append(names, servers[i].Name)
	}
	for _, n := range notes {
		if n.ID == name {
			return nil, nil, &exitError{code: exitFailed, err: fmt.Errorf("mcp server %s may not start: %s", oneLine(name), oneLine(n.Reason)), hint: "it is declared in " + n.File}
		}
		names = append(names, n.ID)
	}
	return nil, nil, usage("there is no MCP server %q%s: `belay mcp list` lists them", name, near.Hint(name, names))
}

// completeMCP completes the names of servers.
func (a *app) completeMCP(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	settings, err := a.settings()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	places := a.assembler().OpenPlaces(cmd.Context(), settings)
	servers, _, _ := a.assembler().MCPServers(places, func(*space.Space) bool { return true }) // ignore errors: the command reports them
	var names []string
	for i := range servers {
		names = append(names, servers[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) loginMCPCommand() *cobra.Command {
	var opts mcptool.LoginOptions
	var noBrowser bool
	var secret string
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in to an MCP server with OAuth",
		Long: `Logs in to an MCP server that has a url and asks for OAuth. Opens the browser, and waits until you have logged in there. Belay
keeps the token in a file that only you can read, refreshes it, and does not show it. Agents cannot read the file.

With --no-browser the command prints the address. If your browser is on another machine, log in there. Then copy the address of the
page that the browser cannot open, which begins with http://127.0.0.1, and paste it here.`,
		Example: `  belay mcp login wiki
  belay mcp login wiki --no-browser
  belay mcp login wiki --client-id 3f9a --port 8976`,
		Args:              arguments(1, 1, "name one server: `belay mcp list` lists them"),
		ValidArgsFunction: a.completeMCP,
		RunE: func(cmd *cobra.Command, args []string) error {
			if secret != "" {
				if opts.ClientSecret = os.Getenv(secret); opts.ClientSecret == "" {
					return usage("the variable %s is not set or empty: put the secret of the client into it", secret)
				}
			}
			return a.loginMCP(cmd.Context(), args[0], &opts, noBrowser)
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the address instead of opening a browser")
	cmd.Flags().StringVar(&opts.ClientID, "client-id", "", "the id of a client that you registered at the authorization server yourself")
	cmd.Flags().StringVar(&secret, "client-secret-variable", "", "the environment variable that contains the secret of that client")
	cmd.Flags().IntVar(&opts.Port, "port", 0, "the port for the redirect http://127.0.0.1:PORT/callback (default: a free port)")
	return cmd
}

func (a *app) loginMCP(ctx context.Context, name string, opts *mcptool.LoginOptions, noBrowser bool) error {
	settings, server, err := a.findMCP(ctx, name)
	if err != nil {
		return err
	}
	logins := assembly.MCPLogins(settings)
	if logins == nil {
		return usage("there is no directory for the user's settings, so the login cannot be stored: set HOME")
	}
	opts.Transport = logins.Transport
	opts.Open = func(ctx context.Context, address string) error {
		if !noBrowser {
			file, err := writeOpener(assembly.TokenDir(settings), address)
			if err == nil {
				defer func() { _ = os.Remove(file) }() // ignore errors: the next login replaces it
				err = openInBrowser(ctx, file)
			}
			if err == nil {
				a.remarkf("log in to %s in your browser; Belay waits for at most %s", oneLine(name), loggingIn)
				return nil
			}
			a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("cannot open a browser: %v", err)))
		}
		a.remarkf("open this address in a browser, and log in:\n\n%s\n", oneLine(address))
		return nil
	}
	if noBrowser && a.inTerminal {
		opts.Paste = func(ctx context.Context) (string, error) {
			a.remarkf("If the browser is on another machine, paste the address of the last page here:")
			line, err := a.readLine(ctx)
			if err != nil && line == "" {
				<-ctx.Done() // nothing was pasted: only the redirect counts
				return "", context.Cause(ctx)
			}
			return line, nil
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loggingIn, fmt.Errorf("nobody logged in within %s", loggingIn))
	defer cancel()
	if err := logins.Login(ctx, *server, opts); err != nil {
		if errors.Is(err, mcptool.ErrNoLoginNeeded) {
			a.remarkf("mcp server %s does not ask for a login", oneLine(name))
			return nil
		}
		return err
	}
	a.remarkf("logged in to mcp server %s; `belay mcp try %s` shows what it offers", oneLine(name), oneLine(name))
	return nil
}

func (a *app) logoutMCPCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "logout SERVER",
		Short:             "Remove the login to an MCP server",
		Long:              "Removes the token of an MCP server from this machine. Agents that run now lose it with their next request. The authorization\nserver is not told: to end the login there too, use its own pages.",
		Example:           "  belay mcp logout wiki",
		Args:              arguments(1, 1, "name one server: `belay mcp list` lists them"),
		ValidArgsFunction: a.completeMCP,
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, server, err := a.findMCP(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			logins := assembly.MCPLogins(settings)
			if logins == nil {
				return usage("there is no directory for the user's settings: set HOME")
			}
			was, err := logins.Logout(server)
			switch {
			case err != nil:
				return err
			case was:
				a.remarkf("logged out of mcp server %s", oneLine(args[0]))
			default:
				a.remarkf("there was no login to mcp server %s", oneLine(args[0]))
			}
			return nil
		},
	}
}
