package assembly

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/store/memstore"
)

// modeStory is what one person does with a session, and what the person may expect of it.
type modeStory struct {
	t     *testing.T
	dice  *rand.Rand
	store *memstore.Store
	floor *Floor
	told  []string // what has happened, for errors

	explicit string // the mode that the settings of this process set, other than plan
	chosen   string // what the person chose in this process
	carried  string // what the person had chosen when the stored turn began
	turns    int
}

// start begins a process with settings of its own, after the one before has ended.
func (s *modeStory) start() {
	s.explicit = []string{"", "", "strict", "standard", "build", "unattended"}[s.dice.IntN(6)]
	settings := load(s.t, "")
	if s.explicit != "" {
		settings = load(s.t, "mode: "+s.explicit)
	}
	s.floor = floorFor(s.t, settings)
	s.floor.store = s.store
	s.chosen = ""
	s.told = append(s.told, "start("+s.explicit+")")
}

// turn begins a turn, which stores the mode.
func (s *modeStory) turn() {
	s.turns++
	mode, from, before := s.floor.modeToRemember("s", s.floor.settings)
	set := policy.Settings{TurnMode.Set(mode), turnModeFrom.Set(from)}
	if before != "" {
		set = append(set, turnModeBefore.Set(before))
	}
	stored, err := s.store.Open(s.t.Context(), "s")
	if err == nil {
		err = s.store.Commit(s.t.Context(), &belay.Commit{Session: "s", Epoch: stored.Epoch, State: &belay.SessionState{Turn: &belay.TurnState{ID: fmt.Sprint("turn", s.turns), Policy: set}}})
	}
	if err == nil {
		err = s.store.Release(s.t.Context(), "s", stored.Epoch)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	// A turn that does not begin in plan mode returns to its own mode.
	s.carried = s.chosen
	if s.carried == "" && mode != "plan" {
		s.carried = mode
	}
	s.told = append(s.told, "turn("+mode+")")
}

// approve approves a plan, if the session is in plan mode.
func (s *modeStory) approve() {
	if s.floor.ModeOf("s") != permit.Plan {
		return
	}
	got, err := s.floor.LeavePlan(s.t.Context(), "s")
	if err != nil {
		s.t.Fatal(err)
	}
	s.told = append(s.told, "approve")
	want := s.chosen
	if want == "" {
		want = s.limited()
	}
	if got != want || s.floor.ModeOf("s").Name != want {
		s.t.Fatalf("after %s the mode is %q, and %q for calls, want %q", strings.Join(s.told, " "), got, s.floor.ModeOf("s").Name, want)
	}
}

// limited returns the mode of the stored turn, made as strict as the settings, or that of the
// settings, or the default.
func (s *modeStory) limited() string {
	auto, ask := permit.ZoneMachine, permit.ZoneMachine
	for _, name := range []string{s.carried, s.explicit} {
		for part := range strings.SplitSeq(name, " and ") {
			if mode, err := permit.ModeOf(part); err == nil {
				auto, ask = min(auto, mode.Auto), min(ask, mode.Ask)
			}
		}
	}
	for _, name := range []string{s.carried, s.explicit, s.carried + " and " + s.explicit, "build", "standard"} {
		mode, err := storedMode(name)
		fallback := s.carried == "" && s.explicit == "" && (name == "build") == (s.floor.box != nil)
		if err == nil && (fallback || mode.Auto == auto && mode.Ask == ask) {
			return mode.Name
		}
	}
	return "none"
}

// Whatever a person does with shift+tab, /mode and plans, and whichever processes continue the
// session: the mode after an approved plan is the last one other than plan that the person chose.
// Another process takes it from the stored turn, and makes it as strict as its own settings.
//
// SPEC U-02
func TestModeAfterAnyStory(t *testing.T) {
	t.Parallel()
	ring := []string{"plan", "strict", "standard", "build"}
	for seed := range uint64(16) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := &modeStory{t: t, dice: rand.New(rand.NewPCG(seed, 26)), store: memstore.New(nil)}
			s.start()
			for range 60 {
				var err error
				switch s.dice.IntN(12) {
				case 0:
					s.start()
				case 1, 2:
					s.turn()
				case 3, 4, 5:
					s.approve()
				case 6, 7: // /mode NAME, or the last of several shift+tab
					name := ring[s.dice.IntN(len(ring))]
					err = s.floor.SetMode("s", name)
					if name != "plan" {
						s.chosen = name
					}
					s.told = append(s.told, name)
				case 8: // /mode plan
					err = s.floor.SetMode("s", "plan")
					s.told = append(s.told, "plan")
				default: // around a part of the ring, or the whole ring, and then into plan mode
					for range 1 + s.dice.IntN(2*len(ring)) {
						name := ring[s.dice.IntN(len(ring))]
						err = s.floor.PassMode("s", name)
						s.told = append(s.told, "("+name+")")
					}
					if err == nil {
						err = s.floor.PassMode("s", "plan")
					}
					s.told = append(s.told, "(plan)")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
