package anthropic

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/provider/internal/wire"
)

// The service accepts tool names that match fitName and call ids that match fitID.
var (
	fitName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)
	fitID   = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)
	unfit   = lazyregexp.New(`[^a-zA-Z0-9_-]`)
)

// wireName returns a tool name that the service accepts. It changes only names that the
// service rejects. A changed name ends with a hash, so that different names stay
// different. The result depends only on the name, so old calls always have the same
// encoding.
func wireName(name string) string {
	if fitName.MatchString(name) {
		return name
	}
	fit := unfit.ReplaceAllString(name, "_")
	return fit[:min(len(fit), 100)] + "_" + wire.Hash(name)[:8]
}

// wireID returns a call id that the service accepts. Ids from other providers may contain
// characters that it rejects.
func wireID(id string) string {
	if fitID.MatchString(id) {
		return id
	}
	return "toolu_" + wire.Hash(id)[:32]
}

// CheckTools returns an error that lists the tools that cannot be declared to the service,
// with the reasons. A request with such a tool fails with the same error before it is sent.
func (m *Model) CheckTools(tools []belay.ToolDeclaration) error {
	_, _, err := wire.Declare(tools, wireName, fitSchema)
	return err
}
