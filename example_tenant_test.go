package belay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin tenant-context

// tenantKey is the key of a context value: the tenant that a request belongs to.
type tenantKey struct{}

func tenantOf(ctx context.Context) (string, error) {
	tenant, ok := ctx.Value(tenantKey{}).(string)
	if !ok || tenant == "" {
		return "", errors.New("the context has no tenant")
	}
	return tenant, nil
}

// orders reads the tenant from the context. The model cannot choose the tenant, because it is
// not part of the input.
var orders = belay.NewTool("orders", "Lists the open orders.", func(ctx context.Context, _ struct{}) (string, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return "", err
	}
	return "open orders of " + tenant, nil
}, nil)

// sameTenant denies a call in a session that belongs to somebody else.
var sameTenant = belay.ToolPre.On("same-tenant", func(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if !strings.HasPrefix(call.Session(), tenant+":") {
		return belay.Deny("this session belongs to another tenant"), nil
	}
	return belay.Pass, nil
}, nil)

// docs:end tenant-context

// Hooks and tools get the values of the caller's context.
func ExampleSession_Turn_context() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "orders"}}},
		{Text: "Listed."},
		{Calls: []scripted.Call{{Tool: "orders"}}},
		{Text: "Not listed."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{Tools: []belay.Tool{orders}, Hooks: []hook.Subscription{sameTenant}}))

	// docs:begin tenant-turn
	ctx := context.WithValue(context.Background(), tenantKey{}, "acme")
	for _, session := range []string{"acme:42", "umbrella:7"} {
		for event, err := range agent.Session(session).Run(ctx, "What is open?") {
			if err != nil {
				panic(err)
			}
			if event.Result != nil {
				fmt.Printf("%s: %.60s\n", session, event.Result.Text)
			}
		}
	}
	// docs:end tenant-turn

	// Output:
	// acme:42: open orders of acme
	// umbrella:7: Denied by "same-tenant": this session belongs to another ten
}
