package belay

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// ToolBundles is the answer at turn.pre_tool_materialization.
type ToolBundles struct {
	Bundles []ToolBundle `json:"bundles,omitempty" jsonschema:"tools for this turn"`
	Aside
}

// ToolBundle is a set of tools that a hook adds together. An extension runs them.
type ToolBundle struct {
	ID string `json:"id" jsonschema:"a stable name"`
	// Route is the name of the extension that runs the tools.
	Route string            `json:"route" jsonschema:"the name of the extension that runs the tools"`
	Tools []ToolDeclaration `json:"tools,omitempty" jsonschema:"the declarations of the tools"`
	// From is the subscription that added the bundle. The runtime sets it.
	From string `json:"from,omitempty" jsonschema:"filled in by the runtime"`
}

// ToolDeclaration describes a tool to a model.
type ToolDeclaration struct {
	Name        string          `json:"name" jsonschema:"the tool's name"`
	Description string          `json:"description" jsonschema:"what it does"`
	InputSchema json.RawMessage `json:"input_schema,omitempty" jsonschema:"the JSON Schema of its input"`
}

// Answer returns the bundles in the form that the hook runtime uses.
func (b ToolBundles) Answer() *hook.Answer {
	var parts []hook.Part
	for _, bundle := range b.Bundles {
		parts = append(parts, hook.Part{Kind: "bundle", Needs: hook.CanAddTools, Content: contentOf(bundle)})
	}
	return answer(hook.SeverityPass, parts, b.Note, b.Context...)
}

func mergeBundles(m *hook.Merging, merged, b ToolBundles) ToolBundles {
	bundles := slices.Clone(merged.Bundles)
	for _, bundle := range b.Bundles {
		bundle.From, bundle.Tools = m.From, slices.Clone(bundle.Tools) // the handler may still use its own slice
		switch owner, tool := conflict(bundles, bundle); {
		case slices.ContainsFunc(bundles, func(o ToolBundle) bool { return o.ID == bundle.ID }):
			m.Diagnose(codes.BundleDuplicate, fmt.Sprintf("another hook has already added a bundle with the id %q; this one is ignored", bundle.ID))
		case tool != "":
			m.Diagnose(codes.ToolConflict, fmt.Sprintf("tool %q is already in bundle %q; this bundle is ignored", tool, owner))
		default:
			bundles = append(bundles, bundle)
		}
	}
	merged.Bundles = bundles
	merged.Aside = mergeAside(m, merged.Aside, b.Aside)
	return merged
}

// conflict returns a tool of the bundle that another bundle has too, or that this bundle
// declares twice. It also returns the bundle that owns the tool.
func conflict(bundles []ToolBundle, bundle ToolBundle) (owner, tool string) {
	owners := make(map[string]string)
	for _, b := range bundles {
		for _, t := range b.Tools {
			owners[t.Name] = b.ID
		}
	}
	for _, t := range bundle.Tools {
		if owner, ok := owners[t.Name]; ok {
			return owner, t.Name
		}
		owners[t.Name] = bundle.ID
	}
	return "", ""
}
