package assembly

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/toolbox"
)

// sessionModes are the modes that people have chosen for sessions of this process.
type sessionModes struct {
	mu sync.Mutex
	of map[string]sessionMode
	// looked are the turns whose plan was searched in the store.
	looked map[string]bool
	// open are the modes of the open turns that this process has not begun: see [Floor.Recall].
	open map[string]permit.Mode
}

type sessionMode struct {
	now permit.Mode
	// chosen is the last mode other than plan that a person chose. It is empty if the person
	// chose none in this process.
	chosen permit.Mode
}

// SetMode changes the mode of a session and of its subagents, from the next call on. That also
// applies to a running turn. With an empty name the session follows the settings again. The
// mode is kept in this process only, but each turn stores the mode that it began with: another
// process that continues the turn uses that one.
func (f *Floor) SetMode(session, name string) error {
	return f.changeMode(session, name, true)
}

// PassMode is like SetMode for a mode that a person only passes on the way to another one, such
// as with a key for the next mode. An approved plan does not return to such a mode.
func (f *Floor) PassMode(session, name string) error {
	return f.changeMode(session, name, false)
}

func (f *Floor) changeMode(session, name string, chosen bool) error {
	session = topSession(session)
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	if name == "" {
		delete(f.modes.of, session)
		return nil
	}
	mode, err := permit.ModeOf(name)
	if err != nil {
		return mistake("%w", err)
	}
	next := sessionMode{mode, f.modes.of[session].chosen}
	if chosen && mode != permit.Plan {
		next.chosen = mode
	}
	f.modes.set(session, next)
	return nil
}

// CopyMode gives a session the mode that a person has chosen for another one, and the mode to
// which an approved plan returns.
func (f *Floor) CopyMode(from, to string) {
	mode, known := f.chosenMode(from)
	if !known {
		return
	}
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	f.modes.set(topSession(to), mode)
}

// LeavePlan ends plan mode in a session, because a person has approved the plan. It returns the
// mode of the session from now on. That is the last mode other than plan that a person chose, in
// this process or before the open turn began in another one, or else that of the settings, or
// else the default. Settings of this process make a mode from another process stricter.
func (f *Floor) LeavePlan(ctx context.Context, session string) (string, error) {
	session = topSession(session)
	mode, _ := f.chosenMode(session)
	next := mode.chosen
	if next == (permit.Mode{}) {
		set, err := f.openPolicy(ctx, session)
		if err != nil {
			return "", err
		}
		next = f.beforePlan(set)
	}
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	f.modes.set(session, sessionMode{next, mode.chosen})
	return next.Name, nil
}

// beforePlan returns the mode to which a turn returns that began with this policy: the mode that
// a person had chosen, or the mode of the turn, or else that of the settings.
func (f *Floor) beforePlan(turn policy.Settings) permit.Mode {
	name, _ := turnModeBefore.Value(turn)
	if mode, err := storedMode(name); err == nil {
		return f.limited(mode)
	}
	if _, stored := TurnMode.Value(turn); stored {
		if mode := modeOfTurn(f.settings, turn); mode != permit.Plan {
			return f.limited(mode)
		}
	}
	mode, err := permit.ModeOf(f.settings.ModeAfterPlan())
	switch {
	case err == nil && mode != permit.Plan:
		return mode
	case f.box != nil:
		return permit.Build
	default:
		return permit.Standard
	}
}

// limited returns a mode of another process, made as strict as a mode that the settings of this
// process set.
func (f *Floor) limited(mode permit.Mode) permit.Mode {
	today, err := permit.ModeOf(f.settings.ModeAfterPlan())
	if err != nil || today == permit.Plan || f.settings.From("mode").Kind == "default" {
		return mode
	}
	return mode.Tighter(today)
}

// openPolicy returns the stored policy of the open turn of a session.
func (f *Floor) openPolicy(ctx context.Context, session string) (policy.Settings, error) {
	turn, err := f.openTurn(ctx, session)
	if turn == nil {
		return nil, err
	}
	return turn.Policy, nil
}

// openTurn returns the stored open turn of a session, or nil.
func (f *Floor) openTurn(ctx context.Context, session string) (*belay.TurnState, error) {
	lists, ok := f.store.(belay.ListStore)
	if !ok {
		return nil, nil
	}
	for info, err := range lists.Sessions(ctx, belay.SessionFilter{ID: session}) {
		if err != nil {
			return nil, fmt.Errorf("find the mode of the open turn: %w", err)
		}
		if info.State.Turn != nil {
			return info.State.Turn, nil
		}
	}
	return nil, nil
}

// Recall looks in the store for an open turn of a session, which perhaps another process began.
// [Floor.ModeOf] then returns the mode with which the turn would continue, until a new turn
// begins or Recall finds no open turn.
func (f *Floor) Recall(ctx context.Context, session string) error {
	session = topSession(session)
	turn, err := f.openTurn(ctx, session)
	if err != nil {
		return err
	}
	var mode permit.Mode
	if turn != nil {
		mode = modeOfTurn(f.settings, turn.Policy)
		if mode == permit.Plan && f.settings.From("mode").Kind != "flag" {
			if next, err := storedMode(approvedPlan(ctx, f.store, session, turn.ID)); err == nil {
				mode = f.limited(next)
			}
		}
	}
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	if turn == nil {
		delete(f.modes.open, session)
		return nil
	}
	if f.modes.open == nil {
		f.modes.open = make(map[string]permit.Mode)
	}
	f.modes.open[session] = mode
	return nil
}

// planning returns the extension for plan mode. It returns nothing if the settings leave its
// tool out, or if the agent's own file says plan: such an agent only ever reads.
func (w *Assembled) planning() []belay.Extension {
	s := w.Settings
	if s.Tools != nil && !slices.Contains(s.Tools, toolbox.PlanTool) || w.declared != nil && w.declared.Mode == permit.Plan.Name {
		return nil
	}
	return []belay.Extension{toolbox.Planning(func(ctx context.Context, session, turn string, set policy.Settings) bool {
		return w.Floor.modeOf(ctx, session, turn, set) == permit.Plan
	}, w.Floor.LeavePlan)}
}

// approvedPlan returns the mode after the plan that was approved in the last stored turn of a
// session, or "" if none was. The plan may have been approved in another process. If the last
// stored turn is not the turn wanted, the turn wanted has only just begun, and no plan was
// approved in it. An empty wanted means any turn.
func approvedPlan(ctx context.Context, store belay.Store, session, wanted string) string {
	turn, mode := "", ""
	for m, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return "" // plan mode goes on
		}
		if m.Turn != turn {
			turn, mode = m.Turn, ""
		}
		for _, p := range m.Parts {
			if p.Result == nil || p.Result.Tool != toolbox.PlanTool || p.Result.IsError {
				continue
			}
			var view toolbox.PlanView
			if json.Unmarshal(p.Result.Render, &view) == nil {
				mode = view.Mode
			}
		}
	}
	if wanted != "" && turn != wanted {
		return ""
	}
	return mode
}

// ModeOf returns the mode of a session: the mode that a person chose, or else that of the open
// turn that [Floor.Recall] found, or else that of the settings.
func (f *Floor) ModeOf(session string) permit.Mode {
	if mode, chosen := f.chosenMode(session); chosen {
		return mode.now
	}
	f.modes.mu.Lock()
	mode, open := f.modes.open[topSession(session)]
	f.modes.mu.Unlock()
	if open {
		return mode
	}
	return modeOfTurn(f.settings, nil)
}

func (f *Floor) chosenMode(session string) (sessionMode, bool) {
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	mode, chosen := f.modes.of[topSession(session)]
	return mode, chosen
}

// modeOf returns the mode for a call of a turn. A turn that began in plan mode left it when its
// plan was approved, perhaps in another process.
func (f *Floor) modeOf(ctx context.Context, session, turn string, set policy.Settings) permit.Mode {
	if mode, chosen := f.chosenMode(session); chosen {
		return mode.now
	}
	mode := modeOfTurn(f.settings, set)
	if mode != permit.Plan || f.store == nil || f.settings.From("mode").Kind == "flag" || !f.modes.firstLook(session+" "+turn) {
		return mode
	}
	top := topSession(session)
	if top != session {
		turn = "" // a subagent works in a turn of the main session, which is stored
	}
	next, err := storedMode(approvedPlan(ctx, f.store, top, turn))
	if err != nil { // no plan was approved
		return mode
	}
	next = f.limited(next)
	name, _ := turnModeBefore.Value(set)
	before, _ := storedMode(name) // nothing if the person chose none
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	f.modes.set(top, sessionMode{next, before})
	return next
}

// set stores the mode of a session. The caller holds the lock.
func (m *sessionModes) set(session string, mode sessionMode) {
	if m.of == nil {
		m.of = make(map[string]sessionMode)
	}
	m.of[session] = mode
}

// firstLook reports whether it is called for the first time for a turn.
func (m *sessionModes) firstLook(turn string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looked == nil || len(m.looked) >= mostLooked {
		m.looked = make(map[string]bool)
	}
	before := m.looked[turn]
	m.looked[turn] = true
	return !before
}

// mostLooked limits how many turns are remembered. Looking twice does no harm.
const mostLooked = 1_000

// modeToRemember returns the mode that a new turn stores, where it comes from, and the mode to
// which an approved plan returns if a person chose one. A mode that a person chose is stored
// like that of a flag: other settings do not change it when the turn is resumed.
func (f *Floor) modeToRemember(session string, s *config.Loaded) (name, from, before string) {
	if f != nil {
		f.modes.mu.Lock()
		delete(f.modes.open, session) // a new turn begins; a subagent's session is not in it
		f.modes.mu.Unlock()
		if mode, known := f.chosenMode(session); known {
			return mode.now.Name, "flag", mode.chosen.Name
		}
	}
	return s.Mode, s.From("mode").Kind, ""
}

// storedMode finds a mode by its stored name. The name may be that of the stricter halves of two
// modes: see [permit.Mode.Tighter].
func storedMode(name string) (permit.Mode, error) {
	first, rest, two := strings.Cut(name, " and ")
	mode, err := permit.ModeOf(first)
	if err != nil || !two {
		return mode, err
	}
	other, err := storedMode(rest)
	if err != nil {
		return other, err
	}
	return mode.Tighter(other), nil
}

// topSession returns the session in which a subagent was started.
func topSession(session string) string {
	top, _, _ := strings.Cut(session, "/")
	return top
}

// ModeMeans says in a few words what a mode does.
func ModeMeans(m permit.Mode) string {
	switch {
	case m == permit.Plan:
		return "only reads, until you approve the plan"
	case m.Ask == permit.ZoneSafe:
		return "only reads"
	case m.Auto == permit.ZoneSafe:
		return "asks before every change"
	case m.Auto == permit.ZoneWorkspace:
		return "changes files of the project, asks before everything else"
	case m.Auto == permit.ZoneBuild && m.Ask == permit.ZoneBuild:
		return "builds and tests, denies the rest without asking"
	case m.Auto == permit.ZoneBuild:
		return "also builds and tests without asking"
	default:
		return "also fetches without asking"
	}
}
