// Command extensions is an agent with small extensions, one per file: an audit in JSON
// lines, redaction of tool results, a tenant in every tool call, a cost limit, and a tool
// that runs only in office hours.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Stderr, time.Now); err != nil {
		panic(err)
	}
}

// run runs turns until the cost limit is reached. It writes the results and the answers
// to out, and the audit to audit.
func run(ctx context.Context, out, audit io.Writer, now func() time.Time) error {
	model := scripted.New([]scripted.Step{ // each step costs 20 cents here; a real model has a price
		{Calls: []scripted.Call{{Tool: "orders", Input: `{"of": "ann", "tenant": "globex"}`}}, Usage: belay.Usage{Cost: 0.20}},
		{Calls: []scripted.Call{{Tool: "deploy"}}, Usage: belay.Usage{Cost: 0.20}},
		{Text: "It has to wait until tomorrow.", Usage: belay.Usage{Cost: 0.20}},
	}, nil)

	type query struct {
		Of     string `json:"of"`
		Tenant string `json:"tenant,omitempty"`
	}
	orders := belay.NewTool("orders", "Lists the orders of a customer.", func(_ context.Context, in query) (string, error) {
		return fmt.Sprintf("2 orders of %s at %s, paid with card 4111-1111-1111-1111", in.Of, in.Tenant), nil
	}, nil)
	deploy := belay.NewTool("deploy", "Deploys.", func(context.Context, struct{}) (string, error) { return "deployed", nil }, nil)

	// docs:begin extensions
	tenants := map[string]string{"chat-1": "acme"}
	tenantOf := func(session string) (string, error) {
		if tenant, ok := tenants[session]; ok {
			return tenant, nil
		}
		return "", fmt.Errorf("session %q is nobody's", session)
	}
	agent, err := belay.New(model, &belay.Options{
		Tools: []belay.Tool{orders, deploy},
		Extensions: []belay.Extension{
			&Audit{To: audit, Now: now},
			Redact{Patterns: []*regexp.Regexp{regexp.MustCompile(`\b(\d{4}-){3}\d{4}\b`)}},
			&CostCap{Dollars: 0.50},
			Hours{Tools: []string{"deploy"}, From: 9 * time.Hour, To: 17 * time.Hour, In: time.UTC, Now: now},
		},
		Interceptors: []belay.Interceptor{Tenant("orders", tenantOf)},
	})
	// docs:end extensions
	if err != nil {
		return err
	}
	for _, text := range []string{"What has Ann ordered? Then deploy.", "And now?"} {
		fmt.Fprintln(out, ">", text)
		for event, err := range agent.Session("chat-1").Run(ctx, text) {
			if err != nil {
				return err
			}
			switch {
			case event.Result != nil:
				fmt.Fprintf(out, "  %s: %s\n", event.Call.Tool, event.Result.Text)
			case event.End != nil:
				fmt.Fprintf(out, "%s: %s%s\n", event.End.Reason, event.End.Text, event.End.Why)
			}
		}
	}
	return agent.Close(ctx)
}
