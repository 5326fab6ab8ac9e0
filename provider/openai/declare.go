package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
)

// declaration is a tool as the service takes it.
type declaration struct {
	name, description string
	schema            json.RawMessage
}

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
func (m *Model) declare(tools []belay.ToolDeclaration) ([]declaration, map[string]string, error) {
	var errs []error
	if m.settings.official && len(tools) > mostTools {
		errs = append(errs, fmt.Errorf("there are %d tools, and OpenAI takes %d: declare fewer", len(tools), mostTools))
	}
	declared := make([]declaration, 0, len(tools))
	names, owners := map[string]string{}, map[string]string{}
	for i := range tools {
		t := &tools[i]
		d := declaration{name: wireName(t.Name), description: t.Description}
		var err error
		switch owner, taken := owners[d.name]; {
		case t.Name == "":
			err = errors.New("it has no name")
		case taken:
			err = fmt.Errorf("the service would know it as %q, as it does %q: rename one of them", d.name, owner)
		default:
			d.schema, err = fitSchema(t.InputSchema)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %q: %w", t.Name, err))
			continue
		}
		owners[d.name] = t.Name
		if d.name != t.Name {
			names[d.name] = t.Name
		}
		declared = append(declared, d)
	}
	return declared, names, errors.Join(errs...)
}
