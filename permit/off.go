package permit

import (
	"context"

	"github.com/belay-run/belay"
)

// Off returns an Authorizer that lets every call pass without a check. Use it where a
// mistake costs nothing, such as in a container that you delete afterwards. Hooks and
// approvals still apply.
func Off() belay.Authorizer { return off{} } //nolint:ireturn // callers only pass it on

type off struct{}

// Authorize lets every call pass.
func (off) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{By: "permit.Off"}, nil
}
