package belay

import (
	"runtime"
	"strings"
	"time"
)

// Environment describes where an agent works, in a block of the prompt after its
// instructions.
type Environment struct {
	// Dir is the working directory. Shell is the shell that runs commands. An empty one is
	// left out.
	Dir, Shell string
	// Now returns the time. Defaults to the machine's clock.
	Now func() time.Time
}

// block returns the environment on a day.
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

// today returns the base prompt. It is rebuilt when the extensions or the date change.
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
