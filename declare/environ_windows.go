package declare

import "strings"

// windowsNeeds names the variables that programs on Windows need to start.
func windowsNeeds(name string) bool {
	return strings.EqualFold(name, "SYSTEMROOT") || strings.EqualFold(name, "PATH") || strings.EqualFold(name, "PATHEXT")
}
