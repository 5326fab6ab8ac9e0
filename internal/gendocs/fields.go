package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/phasejson"
)

// object is the part of a JSON Schema that the tables show.
type object struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Properties  map[string]object `json:"properties"`
	Required    []string          `json:"required"`
	Items       *object           `json:"items"`
}

// fieldTables returns tables with the input and output fields of each phase.
func fieldTables() string {
	var b strings.Builder
	for _, p := range belay.Phases() {
		fmt.Fprintf(&b, "### %s\n\n", p.Name())
		fmt.Fprintf(&b, "%s. Fires: %s. Handlers may: %s.\n\n", title(p.Info().Kind), p.Info().Fires, p.Info().May)
		in, out := p.Types()
		fmt.Fprintf(&b, "Go: `belay.%s`, from `belay.%s` to `belay.%s`. Labels: `%s`. Capabilities: `%s`. Schemas: [input](schemas/%s.input.json), [output](schemas/%s.output.json).\n\n",
			goName(p.Name()), in.Name(), out.Name(), strings.Join(p.Info().Labels, "`, `"), strings.Join(p.Info().Capabilities.Names(), "`, `"), p.Name(), p.Name())
		schema, err := phasejson.Describe(p.Name())
		if err != nil {
			panic(err) // never happens: generate described the same phase before
		}
		b.WriteString("| input | type | |\n|---|---|---|\n")
		rows(&b, schema.Input)
		b.WriteString("\n| output | type | |\n|---|---|---|\n")
		rows(&b, schema.Output)
		b.WriteString("\n")
	}
	return b.String()
}

// goName returns the name of the Go variable of a phase.
func goName(phase string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(phase, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func rows(b *strings.Builder, schema json.RawMessage) {
	var o object
	if err := json.Unmarshal(schema, &o); err != nil {
		panic(err) // never happens: Describe made this JSON
	}
	names := make([]string, 0, len(o.Properties))
	for name := range o.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { // in the order of the schema, which is the order of the Go fields
		return bytes.Index(schema, []byte(`"`+x+`": {`)) - bytes.Index(schema, []byte(`"`+y+`": {`))
	})
	for _, name := range names {
		field := o.Properties[name]
		required := ""
		if slices.Contains(o.Required, name) {
			required = ", required"
		}
		fmt.Fprintf(b, "| `%s` | %s%s | %s |\n", name, typeName(field), required, field.Description)
	}
}

func typeName(o object) string {
	switch {
	case o.Type == "array" && o.Items != nil:
		return "list of " + typeName(*o.Items)
	case o.Type == "":
		return "any JSON"
	default:
		return o.Type
	}
}
