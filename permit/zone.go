package permit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/near"
)

// Zone says how far the effects of a call reach. A call has the highest zone of its
// parts.
type Zone int

// The zones.
const (
	// ZoneSafe changes nothing: the call reads files of the project.
	ZoneSafe Zone = iota
	// ZoneWorkspace changes files of the project, or temporary files.
	ZoneWorkspace
	// ZoneBuild runs code of the project: compilers, tests, scripts.
	ZoneBuild
	// ZoneNetwork fetches from the network.
	ZoneNetwork
	// ZoneExternal changes something outside this machine: pushes, publishes, posts.
	ZoneExternal
	// ZoneMachine uses or changes this machine outside the project, or has unknown
	// effects.
	ZoneMachine
	// ZoneNever would cause damage beyond repair. Such a call never runs, even with
	// approval.
	ZoneNever
)

var zoneNames = [...]string{"safe", "workspace", "build", "network", "external", "machine", "never"}

// String returns the zone's name.
func (z Zone) String() string {
	if z < 0 || int(z) >= len(zoneNames) {
		return fmt.Sprintf("zone(%d)", int(z))
	}
	return zoneNames[z]
}

// Means describes the zone.
func (z Zone) Means() string {
	switch z {
	case ZoneSafe:
		return "reads inside the project and changes nothing"
	case ZoneWorkspace:
		return "changes files of the project, or temporary files"
	case ZoneBuild:
		return "runs code of the project: compilers, tests, scripts"
	case ZoneNetwork:
		return "fetches from the network"
	case ZoneExternal:
		return "changes something outside this machine: pushes, publishes, posts"
	case ZoneMachine:
		return "uses or changes the machine outside the project, or has unknown effects"
	case ZoneNever:
		return "would cause damage beyond repair, and never runs, even with approval"
	default:
		return "is not a zone"
	}
}

// Zones returns all zones, from the mildest to the most severe.
func Zones() []Zone {
	zones := make([]Zone, len(zoneNames))
	for i := range zones {
		zones[i] = Zone(i)
	}
	return zones
}

// Mode says which calls run without a person. Calls up to zone Auto run, calls up to zone
// Ask need approval, and the floor denies all others.
type Mode struct {
	Name string `json:"name"`
	Auto Zone   `json:"auto"`
	Ask  Zone   `json:"ask"`
}

func (m Mode) check() error {
	switch {
	case m.Name == "":
		return errors.New("permit: the mode has no name: set Mode.Name")
	case m.Auto < ZoneSafe, m.Ask > ZoneMachine:
		return fmt.Errorf("permit: mode %s: Auto is zone %d and Ask is zone %d: use zones 0 to 5, because zone 6 never runs", m.Name, m.Auto, m.Ask)
	case m.Auto > m.Ask:
		return fmt.Errorf("permit: mode %s: Auto is zone %d and Ask is zone %d: Auto must not be above Ask", m.Name, m.Auto, m.Ask)
	default:
		return nil
	}
}

// The modes.
var (
	ReadOnly   = Mode{"read-only", ZoneSafe, ZoneSafe}
	Plan       = Mode{"plan", ZoneSafe, ZoneSafe} // read-only until the user approves the agent's plan
	Strict     = Mode{"strict", ZoneSafe, ZoneMachine}
	Standard   = Mode{"standard", ZoneWorkspace, ZoneMachine}
	Build      = Mode{"build", ZoneBuild, ZoneMachine}
	Permissive = Mode{"permissive", ZoneNetwork, ZoneMachine}
	Unattended = Mode{"unattended", ZoneBuild, ZoneBuild}
)

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{ReadOnly, Plan, Strict, Standard, Build, Permissive, Unattended}
}

// ModeOf finds a mode by its name.
func ModeOf(name string) (Mode, error) {
	var names []string
	for _, m := range Modes() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mode{}, fmt.Errorf("permit: unknown mode %q%s: use one of %s", name, near.Hint(name, names), strings.Join(names, ", "))
}

// Tighter returns a mode that allows only calls that both modes allow.
func (m Mode) Tighter(other Mode) Mode {
	switch {
	case m.Auto <= other.Auto && m.Ask <= other.Ask:
		return m
	case other.Auto <= m.Auto && other.Ask <= m.Ask:
		return other
	default:
		return Mode{m.Name + " and " + other.Name, min(m.Auto, other.Auto), min(m.Ask, other.Ask)}
	}
}

// Means describes the mode.
func (m Mode) Means() string {
	switch {
	case m == Plan:
		return "only reads, until you approve the agent's plan"
	case m.Ask == ZoneSafe:
		return "only reads, and denies everything else"
	case m.Auto == m.Ask:
		return fmt.Sprintf("runs calls up to zone %d (%s) and denies all others", m.Auto, m.Auto)
	case m.Auto == ZoneSafe:
		return "asks before every change"
	default:
		return fmt.Sprintf("runs calls up to zone %d (%s), asks before all others", m.Auto, m.Auto)
	}
}
