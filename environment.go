package belay

import (
	"runtime"
	"strings"
	"time"
)

// Environment tells the model where the agent works. It is a block of the prompt after the
// agent's instructions.
type Environment struct {
	// Dir is the working directory. Shell is the shell that runs commands. The block leaves
	// out an empty field.
	Dir, Shell string
	// Now returns the time. Defaults to the machine's clock.
	Now func() time.Time
}

// block returns the block of the prompt, with the given date.
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

// today returns the base prompt of the agent. It is built again when the extensions or the
// date change.
func (a *Agent) today() *prompt {
	c, day := a.composed.Load(), ""
	if a.opts.Environment != nil {
		day = a.opts.Environment.day()
	}
	now := a.prompt.Load()
	if now == nil || now.of != c || now.day != day {
		now = a.basePrompt(c, day)
		a.prompt.Store(now)
	}
	return now
}
