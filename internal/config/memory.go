package config

import (
	"path/filepath"
	"slices"
)

// Memory says what Belay remembers across sessions.
type Memory struct {
	// Mode is off, read, propose or on.
	Mode string `json:"mode"`
	// File is the absolute path of the memory file. File is empty if no setting names a
	// file and there is no home directory.
	File string `json:"file"`
}

// These are the modes of memory. Each allows more than the one before.
const (
	MemoryOff     = "off"
	MemoryRead    = "read"    // recall memories, but add none
	MemoryPropose = "propose" // new memories wait until the user accepts them
	MemoryOn      = "on"
)

func memoryModes() []string { return []string{MemoryOff, MemoryRead, MemoryPropose, MemoryOn} }

// looserMemory reports whether the project's mode allows more than the user's. A stranger's
// repository must not read the user's memories.
func looserMemory(project, user *Config) bool {
	mode := user.Memory.Mode
	if mode == "" {
		mode = MemoryOff
	}
	return slices.Index(memoryModes(), project.Memory.Mode) > slices.Index(memoryModes(), mode)
}

// placeMemory sets the default of the memory file. The file is beside the user's
// settings, because memories belong to the user and not to the project.
func (l *Loaded) placeMemory() {
	if l.Memory.File == "" && l.UserDir != "" {
		l.Memory.File = filepath.Join(l.UserDir, "memory.db")
		return
	}
	l.Memory.File = absolute(l.Memory.File, l.Project)
}
