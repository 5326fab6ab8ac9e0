package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
)

// claudeFiles returns where the files of Claude Code are. If floor is not nil, the model
// must be allowed to read each file of the project.
func claudeFiles(ctx context.Context, s *config.Loaded, floor *permit.Floor) *claude.Where {
	w := &claude.Where{Project: RealDir(s.Project), Home: homeOf(s), Config: s.Environment("CLAUDE_CONFIG_DIR")}
	if floor != nil {
		w.May = func(file string) error { return mayRead(ctx, floor, w.Project, file) }
	}
	return w
}

// mayRead returns an error if the floor does not let the model read a file of the project.
// Otherwise a repository could import a file that a rule keeps from the model.
func mayRead(ctx context.Context, floor *permit.Floor, project, file string) error {
	rel, err := filepath.Rel(project, file)
	if err != nil || !filepath.IsLocal(rel) {
		return nil //nolint:nilerr // package claude decides about files outside of the project
	}
	input, err := json.Marshal(map[string]string{"path": file})
	if err != nil {
		return fmt.Errorf("check the path: %w", err)
	}
	if e := floor.Explain(ctx, "read", input); e.Decision != belay.ToolPass {
		return errors.New(e.Reason)
	}
	return nil
}

// Guidance returns the files with instructions for the model that were written for other
// coding agents: AGENTS.md, CLAUDE.md and the like. A nil floor allows all files.
func Guidance(ctx context.Context, s *config.Loaded, floor *permit.Floor) []claude.Instruction {
	if !s.OtherAgents.Uses("instructions") {
		return nil
	}
	return claude.ReadInstructions(claudeFiles(ctx, s, floor))
}

// withGuidance adds the instructions in files to the instructions of an agent.
func withGuidance(s *config.Loaded, own string, files []claude.Instruction) string {
	more := claude.Render(files, func(path string) string { return ShownPath(s, path) })
	if more == "" {
		return own
	}
	return own + "\n\n" + more
}

// mostGuided is how many sessions nestedGuidance remembers.
const mostGuided = 1_000

// nestedGuidance tells the model about instructions in a directory below the project, when
// a call uses a file there for the first time in a session.
type nestedGuidance struct {
	settings *config.Loaded
	floor    *Floor
	used     map[string]bool // files that are part of the instructions

	mu    sync.Mutex
	told  map[string]map[string]bool // by session and file
	order []string                   // sessions, the oldest first
}

func newNestedGuidance(s *config.Loaded, floor *Floor, files []claude.Instruction) *nestedGuidance {
	n := &nestedGuidance{settings: s, floor: floor, used: make(map[string]bool), told: make(map[string]map[string]bool)}
	for i := range files {
		for _, file := range append(files[i].Imports, files[i].Path) {
			n.used[file] = true
		}
	}
	return n
}

// interceptors returns the code around the file tools, or none if the settings switch
// instructions off. It is no hook, because a hook would add a record to each call.
func (n *nestedGuidance) interceptors() []belay.Interceptor {
	if !n.settings.OtherAgents.Uses("instructions") {
		return nil
	}
	var all []belay.Interceptor
	for _, tool := range []string{"read", "write", "edit"} {
		all = append(all, belay.Interceptor{Name: "belay.instructions", Tool: tool, After: n.after})
	}
	return all
}

// after adds the instructions of a directory to the result of a call that used a file there.
func (n *nestedGuidance) after(ctx context.Context, call *belay.Invocation, result belay.Result) (belay.Result, error) {
	if result.IsError {
		return result, nil
	}
	where := claudeFiles(ctx, n.settings, n.floor.Floor)
	var found []claude.Instruction
	for _, f := range n.floor.Explain(ctx, call.Tool, call.Input).Findings {
		if f.Kind != permit.KindRead && f.Kind != permit.KindWrite || filepath.IsAbs(f.Subject) {
			continue
		}
		file := filepath.Join(where.Project, filepath.FromSlash(f.Subject))
		found = append(found, claude.ReadNested(where, file, func(path string) bool { return n.known(call.Session, path) })...)
	}
	if text := claude.Render(found, func(path string) string { return ShownPath(n.settings, path) }); text != "" {
		result.Text += "\n\n" + text
	}
	return result, nil
}

// known reports whether the model knows a file, and remembers that it knows the file now.
func (n *nestedGuidance) known(session, file string) bool {
	if n.used[file] {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	files := n.told[session]
	if files == nil {
		if n.order = append(n.order, session); len(n.order) > mostGuided {
			delete(n.told, n.order[0])
			n.order = n.order[1:]
		}
		files = make(map[string]bool)
		n.told[session] = files
	}
	before := files[file]
	files[file] = true
	return before
}
