package assembly

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
)

// hookLog is the name of the log file of declared hooks. The file is beside the store.
const hookLog = "hooks.log"

// hookLogger returns the logger of declared hooks. If the program has no logger, the
// hooks log to a file and not to the terminal, because a chat may be using the terminal.
func (a *Assembler) hookLogger(s *config.Loaded) *slog.Logger {
	if a.Logger != nil {
		return a.Logger
	}
	return slog.New(slog.NewJSONHandler(&lateFile{path: filepath.Join(s.Home(), hookLog)}, nil))
}

// lateFile is a file that the first write creates.
type lateFile struct {
	path string
	mu   sync.Mutex
}

// Write appends to the file. It creates the file if needed.
func (f *lateFile) Write(line []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if n, err = file.Write(line); err != nil {
		return n, fmt.Errorf("log: %w", err)
	}
	return n, nil
}

// hookFailed reports the failure of a hook that ran in the background.
func (a *Assembler) hookFailed(_ hook.Scope, p hook.Problem) {
	happened, said := "", p.Err.Error()
	if safe, ok := errors.AsType[*hook.SafeError](p.Err); ok {
		happened, said = safe.Message, strings.TrimPrefix(strings.TrimPrefix(said, safe.Message), ": ")
	}
	a.warned(visible.HookFailure(p.Subscription, p.Phase, happened, said))
}
