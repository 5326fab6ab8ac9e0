package config

import (
	"path/filepath"
	"slices"
)

// Memory says what is remembered across sessions.
type Memory struct {
	// Mode is off, read, propose or on.
	Mode string `json:"mode"`
	// File is the path of the file that keeps memories, absolute. Empty if there is no
	// home and nothing says where.
	File string `json:"file"`
}

// The modes of memory, each with more than the one before.
const (
	MemoryOff     = "off"
	MemoryRead    = "read"    // memories are recalled, and none are added
	MemoryPropose = "propose" // what is new waits until the user accepts it
	MemoryOn      = "on"
)

func memoryModes() []string { return []string{MemoryOff, MemoryRead, MemoryPropose, MemoryOn} }

// looserMemory says whether a project's mode lets more in, or out, than its user's: what
// the user said elsewhere is no stranger's checkout's business.
func looserMemory(project, user *Config) bool {
	mode := user.Memory.Mode
	if mode == "" {
		mode = MemoryOff
	}
	return slices.Index(memoryModes(), project.Memory.Mode) > slices.Index(memoryModes(), mode)
}

// placeMemory says where memories are kept: beside the user's settings, as they are the
// user's and not the project's.
func (l *Loaded) placeMemory() {
	if l.Memory.File == "" && l.UserDir != "" {
		l.Memory.File = filepath.Join(l.UserDir, "memory.db")
		return
	}
	l.Memory.File = absolute(l.Memory.File, l.Project)
}
