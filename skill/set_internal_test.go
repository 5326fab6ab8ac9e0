package skill

import (
	"testing"
)

// SPEC K-11
func TestASetIsKeptUntilItChanges(t *testing.T) {
	t.Parallel()
	catalog := NewCatalog(t.Context(), Values(Skill{Name: "a", Description: "x"}))
	key := listingKey{"main", DefaultBudget, false}
	before := catalog.now.Load()
	first := before.listing(key)
	if first == "" || before.listings[key] != first {
		t.Fatalf("listing = %q, want one that is kept", first)
	}
	before.listings[key] = "kept" // whoever makes it anew does not see this
	catalog.Refresh(t.Context())
	if now := catalog.now.Load(); now != before {
		t.Error("nothing has changed, and the set is another one")
	}
	if again := catalog.now.Load().listing(key); again != "kept" {
		t.Errorf("listing = %q, want the one that was made", again)
	}
	lease, err := catalog.Add(Skill{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if again := catalog.now.Load().listing(key); again == "kept" || again == first {
		t.Errorf("listing = %q, want one with what was added", again)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if again := catalog.now.Load().listing(key); again != first {
		t.Errorf("listing = %q, want %q again", again, first)
	}
}
