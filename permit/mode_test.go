package permit_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// SPEC P-03, P-04
func TestModesRunAskAndDenyByZone(t *testing.T) {
	t.Parallel()
	const (
		pass = belay.ToolPass
		ask  = belay.ToolAsk
		deny = belay.ToolDeny
	)
	tools := map[string]permit.Profile{}
	names := []string{"zero", "one", "two", "three", "four", "five", "six"}
	for zone, name := range names {
		tools[name] = permit.Profile{Zone: permit.Zone(zone)}
	}
	w := newWorld(t)
	for _, c := range []struct {
		mode string
		want [7]belay.ToolDecision
	}{
		{"read-only", [7]belay.ToolDecision{pass, deny, deny, deny, deny, deny, deny}},
		{"strict", [7]belay.ToolDecision{pass, ask, ask, ask, ask, ask, deny}},
		{"standard", [7]belay.ToolDecision{pass, pass, ask, ask, ask, ask, deny}},
		{"build", [7]belay.ToolDecision{pass, pass, pass, ask, ask, ask, deny}},
		{"permissive", [7]belay.ToolDecision{pass, pass, pass, pass, ask, ask, deny}},
		{"unattended", [7]belay.ToolDecision{pass, pass, pass, deny, deny, deny, deny}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			mode, err := permit.ModeOf(c.mode)
			if err != nil {
				t.Fatal(err)
			}
			// Even a rule that allows every tool does not allow zone 6.
			for _, opts := range []permit.Options{{Mode: mode, Tools: tools}, {Mode: mode, Tools: tools, Rules: rules(t, "allow *")}} {
				floor := w.floor(t, opts)
				for zone, name := range names {
					want := c.want[zone]
					if opts.Rules != nil && zone < 6 && mode != permit.ReadOnly {
						want = pass
					}
					e := floor.Explain(t.Context(), name, nil)
					if e.Decision != want || e.Zone != permit.Zone(zone) {
						t.Errorf("zone %d with rules %v: %q, want %q\n%s", zone, opts.Rules, e.Decision, want, e)
					}
				}
			}
		})
	}
}

func TestAModeThatIsNone(t *testing.T) {
	t.Parallel()
	if _, err := permit.ModeOf("standrad"); err == nil || !strings.Contains(err.Error(), "standard") {
		t.Errorf("error %v does not suggest the mode that was meant", err)
	}
}

// SPEC P-12
func TestWithoutASandboxTheZoneOfCommandsRises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held, loose := w.floor(t, permit.Options{Sandboxed: true}), w.floor(t, permit.Options{})
	for _, command := range []string{"ls", "touch a", "./build.sh", "nosuchprogram"} {
		a, b := shell(t, held, command), shell(t, loose, command)
		if want := min(a.Zone+1, permit.ZoneMachine); b.Zone != want {
			t.Errorf("%s: zone %d in a sandbox and %d without one, want %d", command, a.Zone, b.Zone, want)
		}
	}
	if e := shell(t, loose, "rm -rf /"); e.Zone != permit.ZoneNever {
		t.Errorf("zone %d, want 6", e.Zone)
	}
	if a, b := file(t, held, "write", "a"), file(t, loose, "write", "a"); a.Zone != b.Zone {
		t.Errorf("the zone of a file tool rose too")
	}
}

func TestTheTighterOfTwoModes(t *testing.T) {
	t.Parallel()
	if got := permit.Strict.Tighter(permit.Unattended); got.Auto != permit.ZoneSafe || got.Ask != permit.ZoneBuild {
		t.Errorf("got %+v", got)
	}
	if got := permit.Build.Tighter(permit.Standard); got != permit.Standard {
		t.Errorf("got %+v", got)
	}
}
