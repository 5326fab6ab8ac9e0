package belay

import (
	"encoding/json"
	"strings"

	"github.com/belay-run/belay/internal/strictjson"
)

// validate checks an input against the tool's schema. It returns every violation, each with
// a JSON pointer to the invalid value.
func (t *boundTool) validate(input json.RawMessage) []string {
	if t.checker.Accepts(input) { // fast path: ordinary valid inputs
		return t.rejected(input)
	}
	var value any
	if err := json.Unmarshal(input, &value); err != nil {
		return []string{"(root): the input is not JSON: " + err.Error()}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return []string{"(root): the input must be a JSON object"}
	}
	if strictjson.Ambiguous(input, value) {
		return []string{"(root): an object has the same key twice, or two keys that differ only in case"}
	}
	if t.input != nil {
		t.input.DropNulls(object)
	}
	if t.schema == nil || t.schema.Validate(object) == nil {
		return t.rejected(input)
	}
	found := strictjson.Violations(t.schema.Schema(), value)
	if len(found) == 0 { // Violations finds fewer problems than Validate
		found = append(found, "(root): "+t.schema.Validate(object).Error())
	}
	return t.withRejected(found, input)
}

// withRejected adds the values that the Go types reject to the violations of the schema, so
// that the model can correct all of them at once.
func (t *boundTool) withRejected(found []string, input json.RawMessage) []string {
	if t.input == nil {
		return found
	}
	reported := make(map[string]bool)
	for _, fault := range found {
		at, _, _ := strings.Cut(fault, ": ")
		reported[at] = true
	}
	for _, fault := range t.input.Faults(input) {
		if at, _, _ := strings.Cut(fault, ": "); !reported[at] {
			found = append(found, fault)
		}
	}
	return found
}

// rejected returns the values that the Go types of the input cannot decode. validate
// calls it before gates and approvals, so that nobody is asked about a call that cannot
// run.
func (t *boundTool) rejected(input json.RawMessage) []string {
	if t.input == nil {
		return nil
	}
	return t.input.Rejected(input)
}

// fill adds the defaults of the tool's input type to a valid input, and removes each null that
// counts as absent.
func (t *boundTool) fill(input json.RawMessage) json.RawMessage {
	if t.input == nil {
		return input
	}
	filled, err := t.input.Fill(input)
	if err != nil { // the input is invalid: validate will report it
		return input
	}
	return filled
}
