package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
)

// A Floor checks calls in the mode of their turn; see package permit. It remembers its findings about each call. A
// command is confined by these findings, even if files have changed since.
type Floor struct {
	*permit.Floor

	settings *config.Loaded
	box      *sandbox.Sandbox // nil if there is none, or none is wanted

	mu     sync.Mutex
	judged map[judgedCall]judgements
	order  []judgedCall // the oldest first
}

var _ belay.PatternAuthorizer = (*Floor)(nil)

// judgedCall identifies a call with its final input.
type judgedCall struct{ session, turn, id, input string }

// mostJudged is how many calls are remembered. A call that was forgotten gets the strictest confinement.
const mostJudged = 1_000

// NewFloor makes the floor of the project from the settings and the sandbox of the machine. The directory spill holds
// long results, which tools may read.
func (a *Assembler) NewFloor(ctx context.Context, s *config.Loaded, spill string) (*Floor, error) {
	f := &Floor{settings: s, box: a.sandbox(ctx, s), judged: make(map[judgedCall]judgements)}
	a.DefaultMode(ctx, s)
	o := s.FloorOptions()
	o.Roots = append(Existing(o.Roots), spill)
	o.Protect = ownFiles(s)
	o.Sandboxed = f.box != nil
	o.Shell = shellProgram()
	o.Tools = withProfiles(o.Tools)
	keys, err := keyGuard(s, o)
	if err != nil {
		return nil, mistake("%w", err)
	}
	o.Guards = append(o.Guards, keys...)
	if f.Floor, err = permit.New(s.Project, o); err != nil {
		return nil, mistake("%w", err)
	}
	return f, nil
}

// DefaultMode sets the mode if no setting does: build if there is a sandbox, and standard otherwise.
func (a *Assembler) DefaultMode(ctx context.Context, s *config.Loaded) {
	if s.From("mode").Kind == "default" && a.sandbox(ctx, s) != nil {
		s.Mode = permit.Build.Name
	}
}

// withProfiles adds the profiles of tools for skills, subagents, memory and questions. They need no approval: skills
// return text of the project, and each call of a subagent is checked by itself.
func withProfiles(tools map[string]permit.Profile) map[string]permit.Profile {
	all := map[string]permit.Profile{skill.ReadTool: {}, skill.InvokeTool: {}, subagent.InvokeTool: {}, subagent.DelegateTool: {}}
	for _, tool := range []string{memory.SearchTool, memory.LookupTool, memory.RememberTool, memory.ForgetTool} {
		all[tool] = permit.Profile{} // the user has switched these tools on
	}
	all[toolbox.AskUserTool] = permit.Profile{} // it only asks a question
	maps.Copy(all, tools)
	return all
}

// ownFiles returns files of Belay that may be outside of the project.
func ownFiles(s *config.Loaded) []string {
	var own []string
	if s.UserDir != "" {
		own = append(own, s.UserDir)
	}
	if spaces, err := ReadRegistry(s); err == nil { // openPlaces reports its problems
		for _, r := range spaces {
			own = append(own, r.Dir)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-holders"} {
		if !config.IsDSN(s.Store) {
			own = append(own, s.Store+suffix)
		}
		if s.Memory.File != "" {
			own = append(own, s.Memory.File+suffix)
		}
	}
	return own
}

// Existing returns the directories that exist. The settings of a user are for all projects, and may name directories
// that only some of them have.
func Existing(dirs []string) []string {
	var there []string
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			there = append(there, dir)
		}
	}
	return there
}

// SpillDir returns the directory for long results.
func SpillDir(s *config.Loaded) string { return filepath.Join(s.Home(), "spill") }

// Authorize checks a call in the mode of its turn.
func (f *Floor) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	e := f.Of(call.Policy()).Explain(ctx, call.Tool(), call.Input())
	f.remember(judgedCall{call.Session(), call.Turn(), call.ID(), string(call.Input())}, e)
	return belay.Authorization{Decision: e.Decision, Reason: e.Asks(), By: e.By, Places: e.Places()}, nil
}

// Covers reports whether a pattern covers a call, in the mode of its turn.
func (f *Floor) Covers(ctx context.Context, pattern string, call belay.ToolCall) (bool, error) {
	return f.Of(call.Policy()).Covers(ctx, pattern, call)
}

// Of returns the floor in the mode of a turn.
func (f *Floor) Of(turn policy.Settings) *permit.Floor {
	return f.In(modeOfTurn(f.settings, turn))
}

// inMode returns the floor for an agent with a mode of its own. It can only be stricter.
func (f *Floor) inMode(name string) belay.Authorizer { //nolint:ireturn // it is the floor, or a tighter one
	mode, err := permit.ModeOf(name)
	if name == "" || err != nil {
		return f
	}
	return &tighterFloor{f, mode}
}

// tighterFloor is the floor for an agent with a stricter mode.
type tighterFloor struct {
	*Floor

	mode permit.Mode
}

// Authorize checks a call in the stricter of the two modes.
func (f *tighterFloor) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	e := f.In(modeOfTurn(f.settings, call.Policy()).Tighter(f.mode)).Explain(ctx, call.Tool(), call.Input())
	f.remember(judgedCall{call.Session(), call.Turn(), call.ID(), string(call.Input())}, e)
	return belay.Authorization{Decision: e.Decision, Reason: e.Asks(), By: e.By, Places: e.Places()}, nil
}

// judgements are the findings about a call: the last ones, which a person sees, and the strictest ones, which decide
// how the call is confined. A link that appears after an approval does not let the call out of the sandbox.
type judgements struct{ last, strictest *permit.Explanation }

// remember stores the findings about a call.
func (f *Floor) remember(c judgedCall, e *permit.Explanation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, known := f.judged[c]; known {
		kept := before.strictest
		if f.outside(kept) && !f.outside(e) || f.outside(kept) == f.outside(e) && (kept.Network() && !e.Network() || readsOnly(e) && !readsOnly(kept)) {
			kept = e
		}
		f.judged[c] = judgements{e, kept}
		return
	}
	f.judged[c] = judgements{e, e}
	if f.order = append(f.order, c); len(f.order) > mostJudged {
		delete(f.judged, f.order[0])
		f.order = f.order[1:]
	}
}

// recall returns the findings about a call. They are empty if the call was forgotten.
func (f *Floor) recall(c judgedCall) judgements {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.judged[c]
}

// Advice helps a person to decide about a call.
type Advice struct {
	// Reach says how far the call reaches, and Run how it would run, if it is a command.
	Reach, Run string
	// Pattern covers this call and similar ones. It is empty if no pattern does.
	Pattern string
	// Check returns why another pattern cannot cover the call.
	Check func(pattern string) error
}

// Advise returns advice about a call that needs an approval.
func (f *Floor) Advise(ctx context.Context, q belay.Question) Advice {
	e := f.recall(judgedCall{q.Session, q.Turn, q.Call, string(q.Input)}).last
	if e == nil {
		e = f.Of(nil).Explain(ctx, q.Tool, q.Input)
	}
	in := f.In(e.Mode)
	return Advice{
		Reach: e.Reach(), Run: f.Confinement(e),
		Pattern: in.Suggest(ctx, q.Tool, q.Input),
		Check:   func(pattern string) error { return CheckPattern(ctx, in, pattern, q.Tool, q.Input) },
	}
}

// CheckPattern returns why a pattern does not cover a call.
func CheckPattern(ctx context.Context, f *permit.Floor, pattern, tool string, input json.RawMessage) error {
	if err := f.CheckPattern(pattern); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "permit: "))
	}
	call, err := callOf(tool, input)
	if err != nil {
		return err
	}
	ok, err := f.Covers(ctx, pattern, call)
	if err != nil {
		return err
	}
	if !ok {
		problem := fmt.Sprintf("%q does not cover this call", pattern)
		if better := f.Suggest(ctx, tool, input); better != "" {
			problem += fmt.Sprintf(": %q does", better)
		}
		return errors.New(problem)
	}
	return nil
}

// callOf makes a call from a tool and its input, as the floor takes it.
func callOf(tool string, input json.RawMessage) (belay.ToolCall, error) {
	data, err := json.Marshal(struct {
		ID    string          `json:"id"`
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"`
	}{"call", tool, input})
	if err != nil {
		return belay.ToolCall{}, fmt.Errorf("input: %w", err)
	}
	return belay.ToolPre.DecodeInput(hook.Scope{}, data)
}

// relaxed says in one line which protections are switched off, or nothing.
func (f *Floor) relaxed() string {
	var parts []string
	for _, p := range f.Relaxed() {
		parts = append(parts, p.ID)
	}
	line := ""
	if len(parts) > 0 {
		line = fmt.Sprintf("relaxed: %s (%s)", strings.Join(parts, ", "), f.settings.From("permit.relax"))
	}
	if f.settings.Sandbox.Mode == config.SandboxOff {
		if line != "" {
			line += "; "
		}
		line += fmt.Sprintf("the sandbox is off (%s)", f.settings.From("sandbox.mode"))
	}
	return line
}
