package declare

import "strings"

// windowsNeeds names the variables without which programs do not start there.
func windowsNeeds(name string) bool {
	return strings.EqualFold(name, "SYSTEMROOT") || strings.EqualFold(name, "PATH") || strings.EqualFold(name, "PATHEXT")
}
