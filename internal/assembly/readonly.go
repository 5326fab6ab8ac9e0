package assembly

import (
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
)

// readsOnly reports whether the project is read-only in the sandbox, because the command
// changes nothing or the mode forbids changes.
func readsOnly(e *permit.Explanation) bool {
	return e.Zone == permit.ZoneSafe || e.Mode.Ask == permit.ZoneSafe
}

// keepProject makes the project and the roots read-only in a policy. It also protects them,
// because they may be inside a writable directory, such as the temporary directory. If the
// sandbox cannot protect paths, that directory becomes read-only too.
func (f *Floor) keepProject(p *sandbox.Policy) {
	kept := append([]string{f.settings.Project}, f.Roots()...)
	p.Write = slices.DeleteFunc(p.Write, func(dir string) bool {
		return below(direct(dir), kept) || !f.box.Holds(sandbox.Protection) && slices.ContainsFunc(kept, func(path string) bool { return below(direct(path), []string{dir}) })
	})
	// The project is protected as a whole, so its files need no entries.
	p.Protect = slices.DeleteFunc(p.Protect, func(path string) bool { return below(path, kept) })
	p.Protect = append(p.Protect, kept...)
}

// direct returns a path with links resolved.
func direct(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// These are the default limits of a confined command.
const (
	defaultMemory    = 4_000_000_000 // used if the memory of the machine is unknown
	defaultProcesses = 4096
	defaultCPUTime   = time.Hour // per CPU
)

// boundsOf returns how much memory, how many processes and how much CPU time a confined
// command may use.
func boundsOf(s *config.Loaded) sandbox.Bounds {
	b := sandbox.Bounds{Memory: s.Sandbox.Memory, Processes: s.Sandbox.Processes, CPUTime: s.Sandbox.CPUTime, Settings: "sandbox."}
	if b.Memory == 0 {
		if b.Memory = machineMemory() / 2; b.Memory == 0 {
			b.Memory = defaultMemory
		}
	}
	if b.Processes == 0 {
		b.Processes = defaultProcesses
	}
	if b.CPUTime == 0 {
		b.CPUTime = defaultCPUTime * time.Duration(runtime.NumCPU())
	}
	return b
}
