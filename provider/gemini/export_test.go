package gemini

import "github.com/belay-run/belay"

// SentNames returns the names of tools in requests.
func SentNames(tools []belay.ToolDeclaration) []string {
	names := make([]string, 0, len(tools))
	for i := range tools {
		names = append(names, sentName(tools[i].Name))
	}
	return names
}
