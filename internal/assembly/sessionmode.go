package assembly

import (
	"context"
	"encoding/json"
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
}

type sessionMode struct {
	now    permit.Mode
	before string // the mode that plan mode replaced
}

// SetMode changes the mode of a session and of its subagents, from the next call on. That also
// applies to a running turn. With an empty name the session follows the settings again. The
// mode is kept in this process only, but each turn stores the mode that it began with.
func (f *Floor) SetMode(session, name string) error {
	session = topSession(session)
	before := f.ModeOf(session).Name
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
	if before == mode.Name { // plan mode twice must not forget what it replaced
		before = f.modes.of[session].before
	}
	f.modes.set(session, sessionMode{mode, before})
	return nil
}

// LeavePlan ends plan mode in a session, because a person has approved the plan. It returns the
// mode of the session from now on: the mode before plan mode, or else that of the settings, or
// else the default.
func (f *Floor) LeavePlan(session string) (string, error) {
	name := f.ModeBefore(session)
	if name == "" || name == permit.Plan.Name {
		name = f.settings.ModeAfterPlan()
	}
	if name == "" {
		name = permit.Standard.Name
		if f.box != nil {
			name = permit.Build.Name
		}
	}
	return name, f.SetMode(session, name)
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

// ModeOf returns the mode of a session: the mode that a person chose, or else that of the
// settings.
func (f *Floor) ModeOf(session string) permit.Mode {
	if mode, chosen := f.chosenMode(session); chosen {
		return mode.now
	}
	return modeOfTurn(f.settings, nil)
}

// ModeBefore returns the mode that a session had before its mode was changed the last time. It
// is empty if the session follows the settings.
func (f *Floor) ModeBefore(session string) string {
	mode, _ := f.chosenMode(session)
	return mode.before
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
	next, err := permit.ModeOf(approvedPlan(ctx, f.store, top, turn))
	if err != nil { // no plan was approved
		return mode
	}
	if today := modeOfTurn(f.settings, nil); today != permit.Plan && f.settings.From("mode").Kind != "default" {
		next = next.Tighter(today) // the settings may be stricter than those of the other process
	}
	f.modes.mu.Lock()
	defer f.modes.mu.Unlock()
	f.modes.set(top, sessionMode{next, mode.Name})
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

// modeToRemember returns the mode that a new turn stores, and where it comes from. A mode that a
// person chose is stored like that of a flag: other settings do not change it when the turn is
// resumed.
func (f *Floor) modeToRemember(session string, s *config.Loaded) (name, from string) {
	if f != nil {
		if mode, chosen := f.chosenMode(session); chosen {
			return mode.now.Name, "flag"
		}
	}
	return s.Mode, s.From("mode").Kind
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
