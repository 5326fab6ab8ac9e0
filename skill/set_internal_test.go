package skill

import (
	"testing"

	"github.com/belay-run/belay"
)

// SPEC K-11
func TestASetIsKeptUntilItChanges(t *testing.T) {
	t.Parallel()
	catalog := NewCatalog(t.Context(), Values(Skill{Name: "a", Description: "x"}))
	e, err := New(catalog, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, first := catalog.now.Load(), e.StepTools("main")
	catalog.Refresh(t.Context())
	if now := catalog.now.Load(); now != before {
		t.Error("nothing has changed, and the set is another one")
	}
	if again := e.StepTools("main"); again[0] != first[0] {
		t.Error("nothing has changed, and the tool is another one")
	}
	lease, err := catalog.Add(Skill{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if again := e.StepTools("main"); again[0] == first[0] {
		t.Error("a skill was added, and the tool is the same")
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if again := e.StepTools("main")[0].Declaration().Description; again != first[0].Declaration().Description {
		t.Errorf("the description is %q, want the first again", again)
	}
}

// The cache of tools is limited, so that agents with generated names do not fill the
// memory.
func TestToolsOfAgentsDoNotPileUp(t *testing.T) {
	t.Parallel()
	e, err := New(NewCatalog(t.Context(), Values(Skill{Name: "a", Description: "x"})), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * keptReaches {
		e.For(belay.Reach{Agent: string(rune('a' + i))}).(belay.StepToolExtension).StepTools("")
	}
	if len(e.tools) > keptReaches {
		t.Errorf("tools are kept for %d agents, want %d at most", len(e.tools), keptReaches)
	}
}
