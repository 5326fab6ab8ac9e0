package config

// Mode says how far an agent may go by itself: zones up to Auto run, zones up to
// Ask need a person's word, all others are denied.
type Mode struct {
	Name string
	Auto int
	Ask  int
	// Means says it in words.
	Means string
}

// DefaultMode is that of whoever says nothing.
const DefaultMode = "standard"

// Modes are the modes, from tight to loose.
func Modes() []Mode {
	return []Mode{
		{"read-only", 0, 0, "reads, and nothing else"},
		{"strict", 0, 5, "asks before every change"},
		{"standard", 1, 5, "changes files of the project, asks before the shell"},
		{"build", 2, 5, "like standard for now: every shell command is still asked about"},
		{"permissive", 3, 5, "like standard for now: every shell command is still asked about"},
		{"unattended", 2, 2, "changes files of the project, denies what it would ask about, the shell too"},
	}
}

// ModeNames are the names of the modes.
func ModeNames() []string {
	var names []string
	for _, m := range Modes() {
		names = append(names, m.Name)
	}
	return names
}

// ModeOf finds a mode by its name.
func ModeOf(name string) (Mode, bool) {
	for _, m := range Modes() {
		if m.Name == name {
			return m, true
		}
	}
	return Mode{}, false
}

// looserMode says whether a project's mode lets more happen than its user's.
func looserMode(project, user *Config) bool {
	p, _ := ModeOf(project.Mode)
	u, ok := ModeOf(user.Mode)
	if !ok {
		u, _ = ModeOf(DefaultMode)
	}
	return p.Auto > u.Auto || p.Ask > u.Ask
}
