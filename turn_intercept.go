package belay

import (
	"encoding/json"
	"errors"
	"slices"
)

// interceptorsOf returns the interceptors of a tool, outermost first: those of all tools,
// then those of this tool.
func (t *turn) interceptorsOf(tool string) []*Interceptor {
	all := *t.agent.intercepts.Load()
	if len(all) == 0 {
		return nil
	}
	var outer, inner []*Interceptor
	for _, in := range all {
		switch in.Tool {
		case "*":
			outer = append(outer, in)
		case tool:
			inner = append(inner, in)
		}
	}
	return append(outer, inner...)
}

// intercept calls Before of the interceptors. It reports false if one of them refused the
// call or failed.
func (t *turn) intercept(c *call) bool {
	c.around, c.intercepted = t.interceptorsOf(c.Tool), true
	for _, in := range c.around {
		if in.Before == nil {
			continue
		}
		seen := c.Invocation
		seen.Input = slices.Clone(c.Input)
		did, err := in.Before(t.ctx, &seen)
		if err == nil && did.Input != nil && !json.Valid(did.Input) {
			err = errors.New("the rewritten input is not JSON")
		}
		switch {
		case err != nil:
			t.deny(c, in.Name, "the interceptor failed: "+err.Error())
			return false
		case did.Deny != "":
			t.deny(c, in.Name, did.Deny)
			return false
		case did.Result != nil:
			c.answer(*did.Result)
			return true
		case did.Input != nil:
			c.rewrite(did.Input, in.Name)
		}
	}
	return true
}

// interceptResult calls After of the interceptors, innermost first. If one fails, the model
// does not get the result.
func (t *turn) interceptResult(c *call, r Result) Result {
	around := c.around
	if !c.intercepted { // an earlier process checked this call
		around = t.interceptorsOf(c.Tool)
	}
	for _, in := range slices.Backward(around) {
		if in.After == nil {
			continue
		}
		seen := c.Invocation
		seen.Input = slices.Clone(c.Input)
		changed, err := in.After(t.base, &seen, r)
		if err != nil {
			return Failed(ClassFailed, "[result withheld: interceptor "+in.Name+" failed: "+err.Error()+"]")
		}
		r = changed
	}
	return r
}
