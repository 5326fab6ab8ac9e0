package declare

import "strings"

// windowsNeeds reports whether programs on Windows need a variable to start.
func windowsNeeds(name string) bool {
	return strings.EqualFold(name, "SYSTEMROOT") || strings.EqualFold(name, "PATH") || strings.EqualFold(name, "PATHEXT")
}
