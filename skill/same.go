package skill

import (
	"maps"
	"slices"
)

// same reports whether two skills are equal, so that a catalog can keep the old one.
// Handlers cannot be compared, so skills with a handler are equal only if they are the
// same pointer.
func same(a, b *Skill) bool {
	return a == b || a.ID == b.ID && a.Name == b.Name && a.Description == b.Description && a.Priority == b.Priority && a.Hidden == b.Hidden && a.UserOnly == b.UserOnly && a.ModelOnly == b.ModelOnly &&
		a.Body == b.Body && a.License == b.License && a.Compatibility == b.Compatibility && a.Path == b.Path &&
		a.Handler == nil && b.Handler == nil && a.Exposed == b.Exposed &&
		slices.Equal(a.Sections, b.Sections) && slices.Equal(a.Agents, b.Agents) && slices.Equal(a.Tags, b.Tags) &&
		slices.Equal(a.AllowedTools, b.AllowedTools) && (a.AllowedTools == nil) == (b.AllowedTools == nil) && maps.Equal(a.Metadata, b.Metadata) &&
		slices.EqualFunc(a.Triggers, b.Triggers, func(x, y Trigger) bool { return x.Type == y.Type && x.Pattern == y.Pattern }) &&
		slices.EqualFunc(a.Tolerated, b.Tolerated, func(x, y Problem) bool { return x.Line == y.Line && x.Message == y.Message })
}
