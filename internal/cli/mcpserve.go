package cli

import (
	"context"
	"io"
	"os"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
	"github.com/spf13/cobra"
)

func (a *app) serveMCPCommand() *cobra.Command {
	var o serveOptions
	var address string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer the agents of this project as MCP tools",
		Long: `Serves MCP on standard input and output, until the client closes it. Each agent is a tool: its input is a message, its result
is the answer. Calls run as turns in durable sessions, with all hooks, rules and limits. If a call of the agent needs approval,
the client asks its user, if it supports elicitation and its user may approve. Otherwise the result names the approval.
With --http it serves MCP over HTTP at /mcp. Every request then needs a token with the role run: see "belay token".`,
		Example: `  belay mcp serve
  belay mcp serve --http 127.0.0.1:7718`,
		Args: arguments(0, 0, "mcp serve takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address != "" {
				o.mcpOnly, o.listen = true, address
				return a.serveAPI(cmd, &o)
			}
			return a.serveMCP(cmd, &o)
		},
	}
	cmd.Flags().StringVar(&address, "http", "", "serve over HTTP on this address, instead of standard input and output")
	o.flags(cmd)
	return cmd
}

// serveMCP serves MCP on standard input and output.
func (a *app) serveMCP(cmd *cobra.Command, o *serveOptions) error {
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
	return a.withServer(cmd, o, settings, tokens, func(ctx context.Context, _ *host.Host, server *serve.Server) error {
		return server.ServeMCP(ctx, closing{a.in}, standardOutput{a.out})
	})
}

// closing is standard input, which is closed when the server stops, so that no read stays
// behind.
type closing struct{ io.Reader }

// Close closes the file.
func (c closing) Close() error {
	if file, ok := c.Reader.(*os.File); ok {
		_ = file.Close() // ignore errors: the process ends
	}
	return nil
}

// standardOutput is standard output. The process closes it when it ends.
type standardOutput struct{ io.Writer }

// Close does nothing.
func (standardOutput) Close() error { return nil }
