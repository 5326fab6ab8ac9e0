package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve"
	"github.com/spf13/cobra"
)

// serveOptions are the flags of the command serve.
type serveOptions struct {
	run             runOptions
	listen, workers string
	hosts           []string
	trustProxy      bool
	grace, takeover time.Duration
	mcpOnly         bool // only MCP is served
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions, turns and approvals over HTTP",
		Long: `Serves the HTTP API until it is stopped, over the same store as all other commands. It also runs turns, at most
--workers at once. With --workers 0 it only takes requests, and "belay worker" processes run the turns.
Every request needs a token: "belay token create" makes one. On a loopback address the server makes the token "local" for
this user. /v1/docs has the reference of the API. The channels of the settings ask people for approvals: see "belay channels".
SIGTERM or Ctrl-C: it takes no new turns, hands over running turns at the end of their steps, and ends the event streams.`,
		Example: `  belay serve
  belay serve --listen 10.0.0.5:7717 --host belay.example.com
  belay --store postgres://belay@db.example/belay serve --workers 0`,
		Args: arguments(0, 0, "serve takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveAPI(cmd, &o) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", "", "the address; without it serve.listen, which is 127.0.0.1:7717 by default")
	o.flags(cmd)
	return cmd
}

// flags adds the flags that "belay serve" and "belay mcp serve" share.
func (o *serveOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.hosts, "host", nil, "a name of the server, for the Host header; may be repeated")
	flags.StringVar(&o.workers, "workers", "", "run at most this many turns at once; 0 leaves them to \"belay worker\"")
	flags.BoolVar(&o.trustProxy, "trust-proxy", false, "use the client address that the proxy in front of the server sends")
	flags.DurationVar(&o.grace, "grace", 30*time.Second, "how long a step may continue when the server is stopped")
	flags.DurationVar(&o.takeover, "takeover", 30*time.Second, "how soon others take over the turns of this server if it is killed; only for a database")
	o.run.settingFlags(cmd)
}

// settings loads the settings and overrides them with the flags of the command. It also
// checks the values of --grace and --takeover.
func (o *serveOptions) settings(a *app, cmd *cobra.Command) (*config.Loaded, error) {
	settings, err := a.overruled(cmd, &o.run)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, path, word string }{
		{"listen", "serve.listen", o.listen},
		{"http", "serve.listen", o.listen},
		{"host", "serve.hosts", strings.Join(o.hosts, ",")},
		{"workers", "serve.workers", o.workers},
		{"trust-proxy", "serve.trust_proxy", strconv.FormatBool(o.trustProxy)},
	} {
		if cmd.Flags().Changed(f.name) {
			if err := settings.Override(f.path, f.name, f.word); err != nil {
				return nil, usage("%w", err)
			}
		}
	}
	switch {
	case o.grace <= 0:
		return nil, usage("--grace is %s: it must be more than 0, such as 30s", o.grace)
	case o.takeover < leastTakeover:
		return nil, usage("--takeover is %s: it must be %s or more", o.takeover, leastTakeover)
	}
	return settings, nil
}

// serveAPI runs the server until it is stopped.
func (a *app) serveAPI(cmd *cobra.Command, o *serveOptions) (err error) {
	settings, err := o.settings(a, cmd)
	if err != nil {
		return err
	}
	tokens, err := openTokens(settings)
	if err != nil {
		return err
	}
	if err := modelForServing(settings); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", settings.Serve.Listen)
	if err != nil {
		return usage("%s: %w", settings.From("serve.listen"), err)
	}
	defer func() { _ = listener.Close() }() // ignore errors: the server has closed it already
	return a.withServer(cmd, o, settings, tokens, func(ctx context.Context, agents *host.Host, server *serve.Server) error {
		if !o.mcpOnly {
			talking, stop := context.WithCancel(ctx)
			wait, err := a.runChannels(talking, settings, agents)
			defer stop()
			if err != nil {
				return err
			}
			defer func() { stop(); wait() }()
		}
		defer a.onInterrupt(func() {
			a.remarkf("%s", a.onErr.yellow("stopping: turns are handed over at the end of their steps; Ctrl-C again to force"))
		})()
		if err := a.tellServing(o, settings, tokens, listener.Addr()); err != nil {
			return err
		}
		return server.Serve(ctx, listener)
	})
}

// modelForServing returns an error if the server runs turns and has no model. Check it first,
// so that a missing model creates no store.
func modelForServing(settings *config.Loaded) error {
	if settings.Serve.Workers == 0 {
		return nil
	}
	_, err := assembly.OpenModel(settings)
	return err
}

// withServer makes a server, and calls f with it.
func (a *app) withServer(cmd *cobra.Command, o *serveOptions, settings *config.Loaded, tokens *serve.Tokens, f func(context.Context, *host.Host, *serve.Server) error) (err error) {
	ctx := cmd.Context()
	var model belay.Model
	if settings.Serve.Workers == 0 {
		model = scripted.New(nil, nil) // this process runs no turns, so it needs no model
	}
	watched := a.observe(true) // before anything else asks for telemetry, which would then have no page
	store, err := a.openShared(ctx, settings, o.takeover)
	if err != nil {
		return err
	}
	page, lag, err := watched.serving(store)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	agents, err := a.openHost(ctx, cmd, &o.run, store, model)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer func() { err = errors.Join(err, agents.Close(), store.Close()) }()
	if settings.Serve.Workers > 0 {
		if _, err := agents.Agent(ctx, host.Main); err != nil { // find mistakes before the server takes a request
			return err
		}
	}
	server, err := serve.New(agents, &serve.Options{
		Tokens: tokens, Workers: settings.Serve.Workers, Hosts: settings.Serve.Hosts, TrustProxy: settings.Serve.TrustProxy, MCPOnly: o.mcpOnly,
		MaxBody: settings.Serve.MaxBody, Connections: settings.Serve.Connections, Rate: float64(settings.Serve.Rate), Streams: settings.Serve.Streams, Grace: o.grace, Logger: watched.logger(a.logger()),
		Metrics: page, Lag: lag, TraceURL: settings.Telemetry.TraceURL,
	})
	if err != nil {
		return err
	}
	return f(ctx, agents, server)
}

// tellServing prints where the server listens. On a loopback address it makes the token
// "local".
func (a *app) tellServing(o *serveOptions, settings *config.Loaded, tokens *serve.Tokens, addr net.Addr) error {
	a.remarkf("%s", a.onErr.dim(fmt.Sprintf("serving %s on %s", settings.Project, config.MaskDSN(settings.Store))))
	path := ""
	if o.mcpOnly {
		path = "/mcp"
	}
	tcp, ok := addr.(*net.TCPAddr)
	local := ok && tcp.IP.IsLoopback()
	if local { // before the address: a program that waits for the address needs the token at once
		if _, err := tokens.Local(); err != nil {
			return err
		}
	}
	a.remarkf("http://%s%s", addr, path)
	if local {
		a.remarkf("%s", a.onErr.dim("your token is in "+tokens.LocalFile()))
		if !o.mcpOnly {
			a.remarkf("%s", a.onErr.dim(consoleHint(o, addr)))
		}
	}
	return nil
}

// consoleHint says how to open the console in a browser.
func consoleHint(o *serveOptions, addr net.Addr) string {
	if o.listen == "" {
		return "`belay console` opens the console in a browser"
	}
	return fmt.Sprintf("`belay --server http://%s console` opens the console in a browser", addr)
}

// openTokens opens the tokens of the user.
func openTokens(settings *config.Loaded) (*serve.Tokens, error) {
	dir := assembly.TokenDir(settings)
	if dir == "" {
		return nil, usage("there is no directory for the user's settings, where tokens are kept: set HOME")
	}
	return serve.OpenTokens(dir), nil
}

func (a *app) tokenCommand() *cobra.Command {
	token := parent(&cobra.Command{
		Use:   "token",
		Short: "Create, list, rotate and revoke tokens of the server",
		Long: `A token lets a program use "belay serve". It has one or several roles: read; run (create sessions, start and abort turns);
approve (decide approvals and answer questions); admin (everything). Run and approve include read. With labels, a token sees
and creates only sessions that have these labels. Tokens are kept as hashes in the user's directory of settings,
which agents cannot read.`,
		Example: `  belay token create ci --role run
  belay token create ann --role run --role approve --label user=ann
  belay token list
  belay token revoke ci`,
	})
	token.AddCommand(a.createToken(), a.listTokens(), a.rotateToken(), a.revokeToken())
	return token
}

// withTokens calls f with the tokens of the user.
func (a *app) withTokens(f func(*serve.Tokens) error) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	tokens, err := openTokens(settings)
	if err != nil {
		return err
	}
	return f(tokens)
}

// tellSecret prints a new token.
func (a *app) tellSecret(secret string) error {
	if _, err := fmt.Fprintln(a.out, secret); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	a.remarkf("%s", a.onErr.dim("keep it: it is not shown again"))
	return nil
}

func (a *app) createToken() *cobra.Command {
	var roles, labels []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token, and print it once",
		Long:  "Creates a token and prints it. Only its hash is kept, so it cannot be shown again.",
		Example: `  belay token create ci --role run
  belay token create ann --role run --role approve --label user=ann`,
		Args: arguments(1, 1, "give the token a NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			limits, err := labelsOf("--label: ", labels, false)
			if err != nil {
				return err
			}
			var all []serve.Role
			for _, r := range roles {
				all = append(all, serve.Role(r))
			}
			return a.withTokens(func(tokens *serve.Tokens) error {
				secret, err := tokens.Create(args[0], all, limits)
				if err != nil {
					return usage("%w", err)
				}
				return a.tellSecret(secret)
			})
		},
	}
	var names []string
	for _, r := range serve.Roles() {
		names = append(names, string(r))
	}
	cmd.Flags().StringSliceVar(&roles, "role", nil, "what it may do: "+strings.Join(names, ", ")+"; may be repeated")
	cmd.Flags().StringArrayVarP(&labels, "label", "l", nil, "limit it to sessions with this label, as NAME=VALUE; may be repeated")
	complete(cmd, "role", names)
	return cmd
}

// tokenLine is one token in the output of "belay token list".
type tokenLine struct {
	Name    string            `json:"name"`
	Roles   []serve.Role      `json:"roles"`
	Labels  map[string]string `json:"labels,omitempty"`
	Created time.Time         `json:"created"`
}

func (a *app) listTokens() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Long:    "Lists the tokens with their roles and labels.",
		Example: "  belay token list",
		Args:    arguments(0, 0, "list takes none"),
		RunE: func(*cobra.Command, []string) error {
			return a.withTokens(func(tokens *serve.Tokens) error {
				all, err := tokens.List()
				if err != nil {
					return err
				}
				out, now := a.newList(asJSON, "TOKEN", "ROLES", "LABELS", "CREATED"), time.Now()
				for _, t := range all {
					var roles []string
					for _, r := range t.Roles {
						roles = append(roles, string(r))
					}
					out.add(tokenLine{t.Name, t.Roles, t.Labels, t.Created}, t.Name, strings.Join(roles, ","), pairsOf(t.Labels), a.onOut.dim(ago(now, t.Created)))
				}
				return out.end("there are no tokens: `belay token create NAME --role run` makes one")
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object a line")
	return cmd
}

func (a *app) rotateToken() *cobra.Command {
	return &cobra.Command{
		Use:               "rotate NAME",
		Short:             "Replace the secret of a token",
		Long:              "Gives a token a new secret and prints it. The old one no longer works.",
		Example:           "  belay token rotate ci",
		Args:              arguments(1, 1, "name the token: `belay token list` lists them"),
		ValidArgsFunction: a.completeTokens,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withTokens(func(tokens *serve.Tokens) error {
				secret, err := tokens.Rotate(args[0])
				if err != nil {
					return err
				}
				return a.tellSecret(secret)
			})
		},
	}
}

func (a *app) revokeToken() *cobra.Command {
	return &cobra.Command{
		Use:               "revoke NAME",
		Short:             "Revoke a token",
		Long:              "Removes a token. A running server refuses it at once, and ends its event streams within seconds.",
		Example:           "  belay token revoke ci",
		Args:              arguments(1, 1, "name the token: `belay token list` lists them"),
		ValidArgsFunction: a.completeTokens,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withTokens(func(tokens *serve.Tokens) error {
				if err := tokens.Revoke(args[0]); err != nil {
					return err
				}
				a.remarkf("revoked: %s", args[0])
				return nil
			})
		},
	}
}

func (a *app) completeTokens(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		_ = a.withTokens(func(tokens *serve.Tokens) error { // ignore errors: the user can type the name without completion
			all, err := tokens.List()
			for i := range all {
				names = append(names, all[i].Name)
			}
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// pairsOf returns labels as NAME=VALUE, in order.
func pairsOf(labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, oneLine(name+"="+labels[name]))
	}
	return strings.Join(pairs, " ")
}
