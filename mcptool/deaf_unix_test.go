//go:build unix

package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// A server that stops reading blocks callers only as long as they want to wait. A message
// that cannot be delivered ends the server and all its calls. Then the server is
// restarted. Other servers continue.
//
// SPEC E-09
func TestAServerThatDoesNotReadIsStartedAgain(t *testing.T) {
	t.Parallel()
	roll, said := newDesk(t), newDesk(t)
	log := new(records)
	e := open(t, quick(mcptool.Options{Logger: log.logger()}), child(t, "deaf", "deafens", map[string]string{rollVariable: roll.addr}), child(t, "test", "full", nil))
	first := roll.next()
	if r := call(t, e, "deaf__deafen", `{"text":"`+said.addr+`"}`); r.Text != "heard" {
		t.Fatalf("result = %+v", r)
	}
	type outcome struct {
		result belay.Result
		err    error
	}
	hear := tool(t, e, "deaf__hear")
	hearing := func(ctx context.Context) <-chan outcome {
		done := make(chan outcome, 1)
		long := json.RawMessage(`{"text":"` + strings.Repeat("x", 4<<20) + `"}`) // more than a pipe holds
		go func() {
			r, err := hear.Call(ctx, &belay.Invocation{Tool: "deaf__hear", Input: long})
			done <- outcome{r, err}
		}()
		return done
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	one := hearing(ctx)
	said.next() // a part of the message has arrived; the server does not read the rest
	patient, cancelPatient := context.WithTimeout(t.Context(), patience)
	defer cancelPatient()
	others := []<-chan outcome{hearing(patient), hearing(patient), hearing(patient)}
	first.alive(t)
	impatient := errors.New("the user has left")
	cancel(impatient)
	if r := call(t, e, "test__echo", `{"text":"fine"}`); r.Text != "fine" {
		t.Errorf("the other server: result = %+v", r)
	}
	select {
	case o := <-one:
		if !errors.Is(o.err, impatient) {
			t.Errorf("the call that did not get through: %+v", o)
		}
	case <-time.After(patience):
		t.Fatal("a call that nobody waits for any more goes on")
	}
	for _, other := range others {
		if o := <-other; o.err != nil || o.result.Class != belay.ClassUnavailable || !strings.Contains(o.result.Text, "does not read its standard input") {
			t.Errorf("a call that waited for it: %+v", o)
		}
	}
	first.ended(t)
	second := roll.next()
	await(t, e, "deaf", inState(mcptool.StateReady))
	if r := call(t, e, "deaf__hear", `{}`); r.Text != "heard" {
		t.Errorf("after the restart: result = %+v", r)
	}
	second.alive(t)
	if !strings.Contains(log.String(), "the server does not read its standard input") {
		t.Errorf("the log:\n%s", log)
	}
}
