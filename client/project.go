package client

import (
	"context"

	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/serve/api"
)

// ListHooks lists the hooks of the project, and which of them run.
func (c *Client) ListHooks(ctx context.Context) (api.HookList, error) {
	return at[api.HookList](ctx, c, "GET", "/v1/hooks")
}

// PlanHooks returns the order in which hooks run, and why.
func (c *Client) PlanHooks(ctx context.Context, in api.PlanHooks) (api.PlanList, error) {
	return call[api.PlanList](ctx, c, "GET", "/v1/hooks/plan", in)
}

// HookGraph returns the order of the hooks as a graph.
func (c *Client) HookGraph(ctx context.Context, in api.PlanHooks) (api.Graph, error) {
	return call[api.Graph](ctx, c, "GET", "/v1/hooks/graph", in)
}

// HookTrust lists the trusted directories, and what has changed in them.
func (c *Client) HookTrust(ctx context.Context) (api.TrustList, error) {
	return at[api.TrustList](ctx, c, "GET", "/v1/hooks/trust")
}

// HookStats counts runs, failures and denials of each hook, and returns how long it takes.
func (c *Client) HookStats(ctx context.Context, in api.HookStats) (api.HookStatList, error) {
	return call[api.HookStatList](ctx, c, "GET", "/v1/hooks/stats", in)
}

// ReadWorkers returns the processes of the store, and how many turns and jobs wait.
func (c *Client) ReadWorkers(ctx context.Context) (api.Workload, error) {
	return at[api.Workload](ctx, c, "GET", "/v1/workers")
}

// ListSkills lists the skills.
func (c *Client) ListSkills(ctx context.Context) (api.SkillList, error) {
	return at[api.SkillList](ctx, c, "GET", "/v1/skills")
}

// ListAgents lists the declared agents.
func (c *Client) ListAgents(ctx context.Context) (api.AgentList, error) {
	return at[api.AgentList](ctx, c, "GET", "/v1/agents")
}

// ListModels lists providers and models.
func (c *Client) ListModels(ctx context.Context) (api.Models, error) {
	return at[api.Models](ctx, c, "GET", "/v1/models")
}

// ReadUsage adds up tokens and cost of the sessions.
func (c *Client) ReadUsage(ctx context.Context, in api.ReadUsage) (api.Usage, error) {
	return call[api.Usage](ctx, c, "GET", "/v1/usage", in)
}

// AskAudit answers a question about all sessions, such as what was denied and by whom.
func (c *Client) AskAudit(ctx context.Context, in api.AskAudit) (api.AuditReport, error) {
	return call[api.AuditReport](ctx, c, "GET", "/v1/audit/{question}", in)
}

// Backtest tries the hooks and rules of the server's project, as their files are now, on
// recorded sessions.
func (c *Client) Backtest(ctx context.Context, in api.Backtest) (backtest.Report, error) {
	return call[backtest.Report](ctx, c, "POST", "/v1/backtest", in)
}

// ReadSelf returns the name, the roles and the labels of the token.
func (c *Client) ReadSelf(ctx context.Context) (api.Self, error) {
	return at[api.Self](ctx, c, "GET", "/v1/self")
}
