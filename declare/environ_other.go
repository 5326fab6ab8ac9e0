//go:build !windows

package declare

func windowsNeeds(string) bool { return false }
