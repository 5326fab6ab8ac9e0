package openai

import (
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// mostTools is how many tools OpenAI accepts in a request.
const mostTools = 128

// CheckTools returns an error that lists the tools that cannot be declared to the service,
// with the reasons. A request with such a tool fails with the same error before it is sent.
func (m *Model) CheckTools(tools []belay.ToolDeclaration) error {
	_, _, err := m.declare(tools)
	return err
}

// declare translates the declarations of tools. The map has the original name of each
// renamed tool, by its new name.
func (m *Model) declare(tools []belay.ToolDeclaration) ([]belay.ToolDeclaration, map[string]string, error) {
	var errs []error
	if m.settings.official && len(tools) > mostTools {
		errs = append(errs, fmt.Errorf("there are %d tools, but OpenAI accepts at most %d: declare fewer", len(tools), mostTools))
	}
	declared, names, err := wire.Declare(tools, wireName, fitSchema)
	return declared, names, errors.Join(append(errs, err)...)
}
