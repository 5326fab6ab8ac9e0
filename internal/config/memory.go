package config

import (
	"path/filepath"
	"slices"
)

// Memory configures what is remembered across sessions.
type Memory struct {
	// Mode is off, read, propose or on.
	Mode string `json:"mode"`
	// File is the path of the file that keeps memories, absolute. Empty if there is no
	// home and it is not set.
	File string `json:"file"`
}

// The modes of memory, from less to more.
const (
	MemoryOff     = "off"
	MemoryRead    = "read"    // memories are recalled, and none are added
	MemoryPropose = "propose" // new memories wait until the user accepts them
	MemoryOn      = "on"
)

func memoryModes() []string { return []string{MemoryOff, MemoryRead, MemoryPropose, MemoryOn} }

// looserMemory reports whether a project's mode is looser than its user's: a stranger's
// checkout must not read the user's memories.
func looserMemory(project, user *Config) bool {
	mode := user.Memory.Mode
	if mode == "" {
		mode = MemoryOff
	}
	return slices.Index(memoryModes(), project.Memory.Mode) > slices.Index(memoryModes(), mode)
}

// placeMemory sets the file of memories: beside the user's settings, because memories
// belong to the user and not to the project.
func (l *Loaded) placeMemory() {
	if l.Memory.File == "" && l.UserDir != "" {
		l.Memory.File = filepath.Join(l.UserDir, "memory.db")
		return
	}
	l.Memory.File = absolute(l.Memory.File, l.Project)
}
