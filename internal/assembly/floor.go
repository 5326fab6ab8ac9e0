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
	"github.com/belay-run/belay/internal/warmhook"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
)

// A Floor checks calls in the mode of their turn, see package permit. It remembers its
// findings about each call. The sandbox uses these findings, even if files have changed
// since the check.
type Floor struct {
	*permit.Floor

	settings *config.Loaded
	box      *sandbox.Sandbox // nil if the machine has no sandbox, or the settings switch it off
	modes    sessionModes
	store    belay.Store // of the sessions; nil: approved plans are not searched

	roots addedRoots

	mu     sync.Mutex
	judged map[judgedCall]judgements
	order  []judgedCall // keys of judged, the oldest first
}

var _ belay.PatternAuthorizer = (*Floor)(nil)

// judgedCall identifies a call and its final input.
type judgedCall struct{ session, turn, id, input string }

// mostJudged limits how many calls are remembered. A forgotten call gets the strictest
// confinement.
const mostJudged = 1_000

// NewFloor makes the floor of the project from the settings. It uses the sandbox of this
// machine. spill is the directory of long results, which tools may read.
func (a *Assembler) NewFloor(ctx context.Context, s *config.Loaded, spill string) (*Floor, error) {
	f := &Floor{settings: s, box: a.sandbox(ctx, s), judged: make(map[judgedCall]judgements)}
	a.DefaultMode(ctx, s)
	o := s.FloorOptions()
	o.Roots = append(Existing(o.Roots), spill)
	o.Protect = ownFiles(s)
	o.Sandboxed = f.box != nil
	o.Shell = shellProgram()
	o.Tools = withProfiles(o.Tools)
	o.Aliases = toolAliases
	keys, err := keyGuard(s, o)
	if err != nil {
		return nil, mistake("%w", err)
	}
	o.Guards = append(o.Guards, keys...)
	others := OtherPermissions(ctx, s)
	o.Rules, o.Guards = append(o.Rules, others.Rules...), append(o.Guards, others.Guards...)
	if f.Floor, err = permit.New(s.Project, o); err != nil {
		return nil, mistake("%w", err)
	}
	return f, nil
}

// DefaultMode sets the mode if no setting does: build if there is a sandbox, otherwise
// standard.
func (a *Assembler) DefaultMode(ctx context.Context, s *config.Loaded) {
	if s.From("mode").Kind == "default" && a.sandbox(ctx, s) != nil {
		s.Mode = permit.Build.Name
	}
}

// withProfiles adds the profiles of the tools for skills, subagents, memory and questions.
// These tools need no approval: skills only return text, and the floor checks each call of
// a subagent.
func withProfiles(tools map[string]permit.Profile) map[string]permit.Profile {
	all := map[string]permit.Profile{skill.ReadTool: {}, skill.InvokeTool: {}, subagent.InvokeTool: {}, subagent.DelegateTool: {}}
	for _, tool := range []string{memory.SearchTool, memory.LookupTool, memory.RememberTool, memory.ForgetTool} {
		all[tool] = permit.Profile{} // the user switched memory on
	}
	all[toolbox.AskUserTool] = permit.Profile{} // it only asks a question
	maps.Copy(all, tools)
	return all
}

// ownFiles returns the files of Belay that may be outside the project.
func ownFiles(s *config.Loaded) []string {
	var own []string
	if s.UserDir != "" {
		own = append(own, s.UserDir)
	}
	if spaces, err := ReadRegistry(s); err == nil { // ignore errors: OpenPlaces reports them
		for _, r := range spaces {
			own = append(own, r.Dir)
		}
	}
	if place := warmhook.Place(); place != "" { // the sockets of "belay hook"
		if _, err := os.Lstat(place); err == nil {
			own = append(own, place)
		}
	}
	if dir := SnapshotDir(s); len(Existing([]string{dir})) > 0 {
		own = append(own, dir)
	}
	if len(s.Channels) > 0 { // what the channels have sent: see package channel
		own = append(own, filepath.Join(s.Home(), "channels"))
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-holders", "-live"} {
		if !config.IsDSN(s.Store) {
			own = append(own, s.Store+suffix)
		}
		if s.Memory.File != "" {
			own = append(own, s.Memory.File+suffix)
		}
	}
	if !config.IsDSN(s.Store) {
		own = append(own, StoreCopies(s.Store)...) // they have the conversations of the store
	}
	return own
}

// Existing returns the directories that exist. A user's settings apply to all projects, so
// they may name directories that only some projects have.
func Existing(dirs []string) []string {
	var there []string
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			there = append(there, dir)
		}
	}
	return there
}

// SpillDir returns the directory of long results.
func SpillDir(s *config.Loaded) string { return filepath.Join(s.Home(), "spill") }

// Authorize checks a call in the mode of its turn.
func (f *Floor) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	e := f.In(f.modeOf(ctx, call.Session(), call.Turn(), call.Policy())).Explain(ctx, call.Tool(), call.Input())
	f.remember(judgedCall{call.Session(), call.Turn(), call.ID(), string(call.Input())}, e)
	return belay.Authorization{Decision: e.Decision, Reason: e.Asks(), By: e.By, Places: e.Places()}, nil
}

// Covers reports whether a pattern covers a call, in the mode of its turn.
func (f *Floor) Covers(ctx context.Context, pattern string, call belay.ToolCall) (bool, error) {
	return f.In(f.modeOf(ctx, call.Session(), call.Turn(), call.Policy())).Covers(ctx, pattern, call)
}

// Of returns the floor in the mode of a turn.
func (f *Floor) Of(turn policy.Settings) *permit.Floor {
	return f.In(modeOfTurn(f.settings, turn))
}

// InMode returns the floor for an agent that has its own mode. That mode can only make the
// floor stricter.
func (f *Floor) InMode(name string) belay.Authorizer { //nolint:ireturn // it is the floor, or a tighter one
	mode, err := permit.ModeOf(name)
	if name == "" || err != nil {
		return f
	}
	return &tighterFloor{f, mode}
}

// tighterFloor is the floor for an agent that has its own mode.
type tighterFloor struct {
	*Floor

	mode permit.Mode
}

// Authorize checks a call in the stricter of two modes: the agent's and the turn's.
func (f *tighterFloor) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	e := f.In(f.modeOf(ctx, call.Session(), call.Turn(), call.Policy()).Tighter(f.mode)).Explain(ctx, call.Tool(), call.Input())
	f.remember(judgedCall{call.Session(), call.Turn(), call.ID(), string(call.Input())}, e)
	return belay.Authorization{Decision: e.Decision, Reason: e.Asks(), By: e.By, Places: e.Places()}, nil
}

// judgements are the findings about a call. A person sees the latest findings. The
// sandbox uses the strictest findings, so that a link that appears after the approval
// does not let the call out of the sandbox.
type judgements struct{ last, strictest *permit.Explanation }

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

// recall returns the findings about a call, or none if the call was forgotten.
func (f *Floor) recall(c judgedCall) judgements {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.judged[c]
}

// Explained returns the floor's decision about a call that needs approval, as it was when the
// call was checked.
func (f *Floor) Explained(ctx context.Context, q belay.Question) *permit.Explanation {
	if e := f.recall(judgedCall{q.Session, q.Turn, q.Call, string(q.Input)}).last; e != nil {
		return e
	}
	return f.In(f.ModeOf(q.Session)).Explain(ctx, q.Tool, q.Input)
}

// CheckPattern returns why a pattern is invalid or does not cover a call, or nil.
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

// callOf makes a call that the floor can check.
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

// relaxed returns one line that names the protections that are off, and says whether the
// sandbox is off. It returns "" if nothing is off.
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
