package anthropic

import (
	"regexp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// What the service takes as the name of a tool, and as the id of a call.
var (
	fitName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	fitID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	unfit   = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// wireName returns the name of a tool as the service takes it. It depends on
// nothing but the name, so that calls of long ago are sent alike; a hash keeps
// apart what would become the same.
func wireName(name string) string {
	if fitName.MatchString(name) {
		return name
	}
	fit := unfit.ReplaceAllString(name, "_")
	return fit[:min(len(fit), 100)] + "_" + wire.Hash(name)[:8]
}

// wireID returns the id of a call as the service takes it: that of another
// provider may have characters it refuses.
func wireID(id string) string {
	if fitID.MatchString(id) {
		return id
	}
	return "toolu_" + wire.Hash(id)[:32]
}

// CheckTools says which tools cannot be declared to the service, and why. A
// request with such tools fails, with the same words, before anything is sent.
func (m *Model) CheckTools(tools []belay.ToolDeclaration) error {
	_, _, err := wire.Declare(tools, wireName, fitSchema)
	return err
}
