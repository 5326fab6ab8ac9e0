package openai

import (
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// mostTools is how many tools OpenAI takes.
const mostTools = 128

// CheckTools says which tools cannot be declared to the service, and why. A
// request with such tools fails, with the same words, before anything is sent.
func (m *Model) CheckTools(tools []belay.ToolDeclaration) error {
	_, _, err := m.declare(tools)
	return err
}

// declare translates the declarations of tools, and returns what the names that
// had to be translated stand for.
func (m *Model) declare(tools []belay.ToolDeclaration) ([]belay.ToolDeclaration, map[string]string, error) {
	var errs []error
	if m.settings.official && len(tools) > mostTools {
		errs = append(errs, fmt.Errorf("there are %d tools, and OpenAI takes %d: declare fewer", len(tools), mostTools))
	}
	declared, names, err := wire.Declare(tools, wireName, fitSchema)
	return declared, names, errors.Join(append(errs, err)...)
}
