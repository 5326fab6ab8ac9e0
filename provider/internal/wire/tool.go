package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
)

// Hash returns the SHA-256 of a text in hexadecimal. Providers use its first characters in
// the replacements for names and ids that a service does not accept.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Declare translates tools for a service. It changes names with rename and schemas with fit.
// The map has the original name of each renamed tool, by its new name. The error lists every
// tool that cannot be declared.
func Declare(tools []belay.ToolDeclaration, rename func(string) string, fit func(json.RawMessage) (json.RawMessage, error)) ([]belay.ToolDeclaration, map[string]string, error) {
	var errs []error
	declared := make([]belay.ToolDeclaration, 0, len(tools))
	renamed, owners := map[string]string{}, map[string]string{}
	for _, t := range tools {
		name := t.Name
		t.Name = rename(name)
		var err error
		switch owner, taken := owners[t.Name]; {
		case name == "":
			err = errors.New("the tool has no name")
		case taken:
			err = fmt.Errorf("this tool would be sent to the service as %q, the same name as for tool %q: rename one of the two tools", t.Name, owner)
		default:
			t.InputSchema, err = fit(t.InputSchema)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %q: %w", name, err))
			continue
		}
		owners[t.Name] = name
		if t.Name != name {
			renamed[t.Name] = name
		}
		declared = append(declared, t)
	}
	return declared, renamed, errors.Join(errs...)
}
