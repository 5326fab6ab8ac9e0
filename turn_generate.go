package belay

import (
	"context"
	"errors"
	"fmt"
)

// Generate sends a request to the model of the turn, for a tool that needs an answer of the
// model, and returns the whole response. Nothing of it becomes part of the conversation, and
// hooks of model phases do not see it. The usage counts as usage of the turn. Generate fails
// if a budget is used up. It does not repeat a request that fails.
func (c *Controls) Generate(ctx context.Context, req Request) (*Response, error) {
	if err := c.enter("generate"); err != nil {
		return nil, err
	}
	c.leave() // do not block close while the model answers
	t := c.turn
	t.wishes.mu.Lock()
	model, spent := t.wishes.model, t.wishes.spent
	t.wishes.mu.Unlock()
	if model == nil {
		model = t.model
	}
	used := t.state.Usage.add(spent)
	why := t.agent.opts.Budget.spent(used, t.session.state.Usage.add(used))
	if why == "" {
		why = t.overspent() // of the turns above
	}
	if why != "" {
		return nil, fmt.Errorf("generate: %s", why)
	}
	quiet := turn{agent: t.agent, session: t.session, scope: t.scope, ctx: ctx, base: t.base, outbox: turnOutbox{silent: true}, spans: turnSpans{followers: t.spans.followers}}
	response, err := quiet.stream(model, &exchange{Request: req})
	if response != nil {
		t.wishes.count("", response.Usage)
		if t.lineage != nil {
			t.lineage.charge(t.state.ID, response.Usage)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("generate: %w", err)
	case response == nil:
		return nil, errors.New("generate: the model gave no response")
	}
	return response, nil
}
