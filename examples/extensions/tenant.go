package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
)

// docs:begin tenant

// Tenant puts the tenant of a session into every tool call, whatever the model wrote
// there. The tool's schema has an optional property "tenant".
func Tenant(tool string, of func(session string) (string, error)) belay.Interceptor {
	return belay.Interceptor{
		Name: "tenant",
		Tool: tool,
		Before: func(_ context.Context, call *belay.Invocation) (belay.Interception, error) {
			tenant, err := of(call.Session)
			if err != nil {
				return belay.Interception{}, err // an error denies the call
			}
			var input map[string]json.RawMessage
			if err := call.Decode(&input); err != nil {
				return belay.Interception{}, err
			}
			if input["tenant"], err = json.Marshal(tenant); err != nil {
				return belay.Interception{}, fmt.Errorf("tenant %q: %w", tenant, err)
			}
			rewritten, err := json.Marshal(input)
			return belay.Interception{Input: rewritten}, err
		},
	}
}

// docs:end tenant
