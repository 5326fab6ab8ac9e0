package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// Claiming a turn behind many turns of agents that the worker does not serve reads as few
// pages as claiming it from a short list.
func TestClaimSkipsOtherAgents(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	filter := belay.TurnFilter{ExceptAgents: []string{"other"}}
	pages := func() (most int) {
		t.Helper()
		plans, err := s.ClaimPlans(ctx, filter)
		if err != nil {
			t.Fatal(err)
		}
		for what, plan := range plans {
			var hit, read int
			for line := range strings.SplitSeq(plan, "\n") { // the first line counts the whole query
				if _, rest, ok := strings.Cut(line, "Buffers: shared "); ok {
					_, _ = fmt.Sscanf(rest, "hit=%d read=%d", &hit, &read) // read is missing if it is 0
					break
				}
			}
			if hit == 0 {
				t.Fatalf("%s has a plan without numbers:\n%s", what, plan)
			}
			most = max(most, hit+read)
		}
		return most
	}
	submitTo(t, s, "own", "mine")
	for i := range 3 {
		submitTo(t, s, fmt.Sprint("first-", i), "other")
	}
	few := pages()
	for _, statement := range []string{
		`INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
			SELECT 'other-' || n, 0, '', 1, 1, 0, 0, 0, 0, '', '' FROM generate_series(1, 20000) n`,
		`INSERT INTO due_turns (session, agent, model, parked, due, holder, claimed, mark)
			SELECT 'other-' || n, 'other', '', FALSE, n, '', 0, 1 FROM generate_series(1, 20000) n`,
		"ANALYZE due_turns",
	} {
		if err := s.Execute(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	if many := pages(); many > few+60 {
		t.Errorf("a claim behind 20000 turns reads %d pages, and %d without them", many, few)
	}
	if due, err := s.Claim(ctx, filter); err != nil || due.Session != "own" {
		t.Errorf("Claim gave %+v, %v, want the turn of session own", due, err)
	}
}

func submitTo(t *testing.T, s belay.TurnStore, session, agent string) {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, agent, "go")
	if err == nil {
		err = s.Submit(t.Context(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// If the server rejects the commit of a claim, the store does not remember the claim.
// Otherwise it would not release a later claim on that session whose commit was lost.
func TestClaimThatIsNotStored(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	submitTo(t, s, "a", "main")
	if err := s.Execute(ctx, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON due_turns DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`); err != nil {
		t.Fatal(err)
	}
	if due, err := s.Claim(ctx, belay.TurnFilter{}); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Fatalf("Claim gave %+v, %v, want the error of the commit", due, err)
	}
	if known := s.KnownClaims(); len(known) > 0 {
		t.Errorf("the store remembers claims on %q, but none is stored", known)
	}
	if err := s.Execute(ctx, "DROP TRIGGER refuse ON due_turns"); err != nil {
		t.Fatal(err)
	}
	if due, err := s.Claim(ctx, belay.TurnFilter{}); err != nil || due.Session != "a" {
		t.Errorf("Claim gave %+v, %v, want the turn", due, err)
	}
	if known := s.KnownClaims(); len(known) != 1 || known[0] != "a" {
		t.Errorf("the store remembers claims on %q, want a", known)
	}
}
