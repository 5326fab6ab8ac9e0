package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
)

// A parked turn is due again when the first of its questions expires. If its questions
// never expire, only Wake makes the turn due.
//
// SPEC P-08
func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		expires []time.Time
		want    time.Time
	}{
		"no question":                          {nil, belay.Never},
		"a question that does not expire":      {[]time.Time{{}}, belay.Never},
		"only the second question expires":     {[]time.Time{{}, now}, now},
		"the first of several expiries counts": {[]time.Time{now.Add(time.Hour), now, now.Add(time.Minute)}, now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waits []belay.Question
			for _, at := range test.expires {
				waits = append(waits, belay.Question{Approval: belay.Approval{Expires: at}})
			}
			if got := expiry(waits); !got.Equal(test.want) {
				t.Errorf("it is due at %s, want %s", got, test.want)
			}
		})
	}
}

// A turn that has called its model too often without success is suspended. Attempts without
// a model call do not count, and do not reset the count.
//
// SPEC L-01
func TestSpending(t *testing.T) {
	t.Parallel()
	disk := errors.New("the disk is full")
	asked := Taken{Turn: &belay.Turn{ID: "1", Steps: 1}, Err: disk}
	other := Taken{Turn: &belay.Turn{ID: "2", Steps: 1}, Err: disk}
	for name, test := range map[string]struct {
		round []Taken
		want  int // number of attempts until the turn is suspended, 0 if it never is
	}{
		"every attempt calls the model":      {[]Taken{asked}, spendAtMost},
		"the session is held in between":     {[]Taken{asked, {Err: belay.ErrHeld}}, 2*spendAtMost - 1},
		"the session is always held":         {[]Taken{{Err: belay.ErrHeld}}, 0},
		"no attempt reaches a step":          {[]Taken{{Turn: &belay.Turn{ID: "1"}, Err: disk}}, 0},
		"a tool is missing":                  {[]Taken{{Turn: asked.Turn, Err: fmt.Errorf("it stays: %w", &belay.MissingToolError{})}}, 0},
		"two turns alternate":                {[]Taken{asked, other}, 0},
		"an attempt succeeds in between":     {[]Taken{asked, {Turn: &belay.Turn{Reason: belay.EndTurn}}}, 0},
		"no turn is found in between":        {[]Taken{asked, {Err: belay.ErrNoTurn}}, 0},
		"the turn parks in between":          {[]Taken{asked, {Turn: &belay.Turn{Reason: belay.EndParked, Waits: []belay.Question{{Approval: belay.Approval{Expires: time.Now()}}}}}}, 0},
		"the turn is handed over in between": {[]Taken{asked, {Turn: asked.Turn, Err: belay.ErrHandedOver}}, 2*spendAtMost - 1},
		"its model is missing in between":    {[]Taken{asked, {DueTurn: belay.DueTurn{Model: "big"}, Err: &belay.MissingModelError{Model: "big", Err: disk}}}, 2*spendAtMost - 1},
		"another model is always missing":    {[]Taken{{Err: &belay.MissingModelError{Model: "big", Err: disk}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := New(noStore{}, Of(), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range 5 * spendAtMost {
				taken := test.round[i%len(test.round)]
				if w.again(t.Context(), &taken).Equal(belay.Never) {
					n = i + 1
					break
				}
			}
			if n != test.want {
				t.Errorf("it was put off the %dth time, want the %dth (0: not at all)", n, test.want)
			}
		})
	}
}

// If the worker does not have the model that a due turn names, it leaves the turn to
// other workers. Then the turn keeps its age, and the worker claims no more turns with
// that model. If the turn failed because another model is missing, this worker retries
// the turn after a pause.
//
// SPEC J-05
func TestOnlyTheNamedModelIsLeftToOthers(t *testing.T) {
	t.Parallel()
	for missing, left := range map[string]bool{"big": true, "other": false} {
		w, err := New(noStore{}, Of(), nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		since := now.Add(-time.Hour)
		again := w.again(t.Context(), &Taken{DueTurn: belay.DueTurn{Session: "a", Model: "big", Since: since}, Err: &belay.MissingModelError{Model: missing, Err: errors.New("it has no key")}})
		if left != again.Equal(since) || !left && again.Before(now.Add(firstPause)) {
			t.Errorf("without %s it is due again at %s, it became due at %s", missing, again, since)
		}
		_, filter, done := w.room.filter(t.Context())
		done()
		if got := len(filter.ExceptModels) > 0; got != left {
			t.Errorf("without %s the models %q are left to others", missing, filter.ExceptModels)
		}
	}
}

// A worker leaves some turns to other workers. After a while it tries to claim these
// turns again: its current claim is cancelled, and the next claim includes these turns.
//
// SPEC J-05
func TestWhatIsLeftToOthersIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*room){
		"an agent": func(r *room) { r.strange("other") },
		"a model":  func(r *room) { r.strangeModel("big") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(&Options{Turns: 1})
				leave(r)
				time.Sleep(time.Second)
				filtered, filter, done := r.filter(t.Context())
				if len(filter.ExceptAgents)+len(filter.ExceptModels) != 1 {
					t.Errorf("the filter is %+v, want one that is left out", filter)
				}
				<-filtered.Done() // if it never ends, the test fails with a deadlock
				done()
				if cause := context.Cause(filtered); !errors.Is(cause, errMoreRoom) {
					t.Errorf("the claim ended with %v", cause)
				}
				_, filter, done = r.filter(t.Context())
				done()
				if len(filter.ExceptAgents)+len(filter.ExceptModels) != 0 {
					t.Errorf("the filter is %+v, want none left out", filter)
				}
			})
		})
	}
}

// noStore is a store that the test never calls.
type noStore struct{ Store }

// If there are many failures, the worker forgets old failures and keeps recent ones.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(&Options{})
		most, n := 0, 0
		fail := func(times int) {
			for range times {
				n++
				r.fail(fmt.Sprint("session ", n), "turn")
				most = max(most, len(r.failures))
			}
		}
		fail(fewFailures)
		if len(r.failures) != fewFailures {
			t.Fatalf("%d failures are known, want all of %d", len(r.failures), fewFailures)
		}
		for range 20 { // each round adds as many failures, long after those of the previous round
			<-time.After(staleFailure + time.Second)
			first := r.fail("stays", "its turn")
			fail(fewFailures)
			if again := r.fail("stays", "its turn"); again.spent != first.spent+1 || again.pause <= first.pause && again.pause < lastPause {
				t.Fatalf("the failure of a moment ago, %+v, is followed by %+v", first, again)
			}
		}
		if most > 3*fewFailures {
			t.Errorf("%d failures were known at once, though the old ones are over", most)
		}
		fail(5 * fewFailures) // none of these failures is old
		if len(r.failures) < 5*fewFailures {
			t.Errorf("%d failures are known, want those that have just been, %d", len(r.failures), 5*fewFailures)
		}
		last := fmt.Sprint("session ", n)
		<-time.After(staleFailure + time.Second)
		fail(2 * len(r.failures))
		if _, known := r.failures[last]; known {
			t.Errorf("of %d failures those that are over are known still", len(r.failures))
		}
	})
}
