package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
)

// toolNames returns the names of the built-in tools.
func toolNames(settings *config.Loaded) ([]string, error) {
	declared, err := assembly.DeclaredTools(settings)
	var names []string
	for _, d := range declared {
		names = append(names, d.Name)
	}
	return names, err
}

// unknownFields returns a warning for each field of an input that the tool does not have.
func unknownFields(declared []belay.ToolDeclaration, tool string, input json.RawMessage) []string {
	var given map[string]json.RawMessage
	at := slices.IndexFunc(declared, func(d belay.ToolDeclaration) bool { return d.Name == tool })
	if at < 0 || json.Unmarshal(input, &given) != nil {
		return nil // the tool is not built in, or the input is not an object
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(declared[at].InputSchema, &schema) != nil || schema.Properties == nil {
		return nil
	}
	var odd []string
	known := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			odd = append(odd, fmt.Sprintf("--input: %s has no field %q%s: it has %s; such a call fails", tool, name, near.Hint(name, known), strings.Join(known, ", ")))
		}
	}
	return odd
}
