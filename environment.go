package belay

import (
	"runtime"
	"strings"
	"time"
)

// Environment tells the model where an agent works, in a block behind its instructions.
type Environment struct {
	// Dir is the working directory. Shell is the shell that commands run in. An empty
	// one is left out.
	Dir, Shell string
	// Now tells the time. Defaults to the machine's clock.
	Now func() time.Time
}

// block is the environment of a day.
func (e *Environment) block(day string) string {
	lines := []string{"Operating system: " + runtime.GOOS, "Platform: " + runtime.GOOS + "/" + runtime.GOARCH}
	if e.Shell != "" {
		lines = append(lines, "Shell: "+untagged(e.Shell))
	}
	if e.Dir != "" {
		lines = append(lines, "Working directory: "+untagged(e.Dir))
	}
	return "<environment>\n" + strings.Join(append(lines, "Date: "+day), "\n") + "\n</environment>"
}

func (e *Environment) day() string {
	now := time.Now
	if e.Now != nil {
		now = e.Now
	}
	return now().Format(time.DateOnly)
}

// today is the base of a turn's prompt. It is made anew when the date changes.
func (a *Agent) today() *prompt {
	now := a.prompt.Load()
	if a.opts.Environment == nil {
		return now
	}
	if day := a.opts.Environment.day(); day != now.day {
		now = a.basePrompt(day)
		a.prompt.Store(now)
	}
	return now
}
