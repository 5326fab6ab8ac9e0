package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// docs:begin costcap

// CostCap limits the total cost of all sessions of an agent, as long as the process
// lives. Options.Budget limits single turns and sessions.
type CostCap struct {
	Dollars float64

	mu    sync.Mutex
	spent float64
}

var _ belay.HookExtension = (*CostCap)(nil)

// Name returns the name for errors.
func (*CostCap) Name() string { return "cost-cap" }

// Hooks count the cost of responses, and deny when it is too high: a running turn ends at
// its next call, and no other starts.
func (c *CostCap) Hooks() []hook.Subscription {
	return []hook.Subscription{
		belay.ModelPost.On("cost-cap.count", func(_ context.Context, r belay.ModelResponse) (belay.Note, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.spent += r.Usage().Cost
			return belay.Note{}, nil
		}, nil),
		belay.ToolPre.On("cost-cap.call", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			if why := c.reached(); why != "" {
				return belay.Halt(why), nil
			}
			return belay.Pass, nil
		}, nil),
		belay.UserPromptSubmit.On("cost-cap.turn", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
			if why := c.reached(); why != "" {
				return belay.DenyPrompt(why), nil
			}
			return belay.PromptVerdict{}, nil
		}, nil),
	}
}

func (c *CostCap) reached() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent < c.Dollars {
		return ""
	}
	return fmt.Sprintf("the agent has cost $%.2f of $%.2f", c.spent, c.Dollars)
}

// docs:end costcap
