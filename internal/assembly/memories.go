package assembly

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/memory"
)

// useMemory returns the extension for memory, or nothing if memory is off.
func (a *Assembler) useMemory(ctx context.Context, w *Assembled) ([]belay.Extension, error) {
	s := w.Settings
	if s.Memory.Mode == config.MemoryOff {
		return nil, nil
	}
	memories, err := OpenMemory(ctx, s)
	if err != nil {
		return nil, err
	}
	w.Memories = memories
	w.OnClose(memories.Close)
	extension, err := memory.New(memories, &memory.Options{
		Project: s.Project, Transcript: w.Store, ReadOnly: s.Memory.Mode == config.MemoryRead, Propose: s.Memory.Mode == config.MemoryPropose,
	})
	if err != nil {
		return nil, err
	}
	return []belay.Extension{extension}, nil
}

// OpenMemory opens the memory file in the settings. It creates the file if there is none.
func OpenMemory(ctx context.Context, s *config.Loaded) (*memory.Store, error) {
	if s.Memory.File == "" {
		return nil, mistake("there is no file for memories: set memory.file in the user's %s, or set the variable %s", config.Name, config.Variable("memory.file"))
	}
	if err := os.MkdirAll(filepath.Dir(s.Memory.File), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for memories: %w", err)
	}
	return memory.Open(ctx, s.Memory.File, nil)
}

// settling limits how long Close waits until memory has processed the turns. The next
// agent processes the remaining turns.
const settling = 5 * time.Second

// settleMemory returns a function that waits a few seconds until memory has processed the
// turns, so that the next program can recall the memories from these turns. Then the
// function calls tellProposed.
func (a *Assembler) settleMemory(ctx context.Context, w *Assembled) func() error {
	began := time.Now()
	return func() error {
		kept, ok := w.Store.(belay.JournalStore)
		if !ok {
			return nil
		}
		journal, ok := kept.Journal().(hook.ListJournal)
		if !ok || ctx.Err() != nil || w.Settings.Memory.Mode == config.MemoryOff {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, settling)
		defer cancel()
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		defer a.tellProposed(ctx, w)
		for {
			open, err := extracting(ctx, journal, began)
			if err != nil || !open {
				return nil // the job is stored, and the next process runs it
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// tellProposed reports how many memories wait until a user accepts them. It leaves out the
// memories of other projects.
func (a *Assembler) tellProposed(ctx context.Context, w *Assembled) {
	if w.Memories == nil || w.Settings.Memory.Mode != config.MemoryPropose {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	waiting := 0
	for m, err := range w.Memories.List(ctx, memory.Filter{States: []memory.State{memory.Proposed}}) {
		if err != nil {
			return // ignore errors: the remark is not important
		}
		if RecalledIn(w.Settings, &m) {
			waiting++
		}
	}
	switch waiting {
	case 0:
	case 1:
		a.remark("1 proposed memory waits until you accept it: belay memory list --state proposed")
	default:
		a.remark(fmt.Sprintf("%d proposed memories wait until you accept them: belay memory list --state proposed", waiting))
	}
}

// extracting reports whether memory must still process a turn that began after since.
func extracting(ctx context.Context, journal hook.ListJournal, since time.Time) (bool, error) {
	open := make(map[string]bool)
	var over []string
	for run, err := range journal.List(ctx, hook.Filter{Subscription: "memory.extract", Since: since}) {
		switch {
		case err != nil:
			return false, err
		case run.State == hook.Backgrounded:
			open[run.Job] = true
		case run.State.Final():
			over = append(over, run.Job) // a failed job is retried later
		}
	}
	for _, job := range over {
		delete(open, job)
	}
	return len(open) > 0, nil
}

// RecalledIn reports whether sessions of this project may recall a memory.
func RecalledIn(s *config.Loaded, m *memory.Memory) bool {
	return m.Scope.Kind != memory.Project || m.Scope.Name == s.Project
}
