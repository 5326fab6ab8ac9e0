package looptest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// With OwnModelFirst, a turn uses the agent's own model instead of the session's stored
// model, until the user chooses another model. The stored model does not change.
//
// SPEC D-04
func TestOwnModelFirst(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	own, kept, named, later := namedScript("test/own", says("own")), namedScript("test/kept", says("kept")), namedScript("test/named", says("named")), namedScript("test/later", says("later"))
	keep := withControls("later", func(_ context.Context, c *belay.Controls) error { return c.KeepModel(later) })
	back := withControls("back", func(ctx context.Context, c *belay.Controls) error {
		first, err := c.FindModel(ctx, "")
		if err != nil {
			return err
		}
		return c.KeepModel(first)
	})
	open := func(model belay.Model, first bool) (s *belay.Session, done func()) {
		s = agentOf(t, model, &belay.Options{Store: store, Models: models(own, kept, later), Directives: []belay.Directive{keep, back}, OwnModelFirst: first}).Session("s")
		return s, func() { succeeds(t, s.Close(t.Context())) }
	}
	ask := func(s *belay.Session, text, want string) {
		t.Helper()
		wantEqual(t, "who answers "+text, takeTurn(t, s.Run(t.Context(), text), belay.EndTurn).Text, want)
	}
	s, done := open(own, false)
	succeeds(t, s.SetModel(t.Context(), kept))
	ask(s, "one", "kept")
	done()
	s, done = open(named, true)
	ask(s, "two", "named")
	ask(s, "three", "named")
	done()
	s, done = open(own, false)
	ask(s, "four", "kept")
	done()
	s, done = open(named, true)
	ask(s, "/later five", "later")
	ask(s, "six", "later")
	done()
	s, done = open(own, false)
	ask(s, "seven", "later")
	ask(s, "/back eight", "own")
	done()
	s, done = open(own, false)
	ask(s, "nine", "own")
	done()
}

// With OwnModelFirst, an agent that resumes a turn uses its own model.
//
// SPEC D-04
func TestOwnModelFirstResumes(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	tool := anyTool("wait", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		if call.Wait == "" {
			return belay.Result{}, belay.Park("rain")
		}
		return belay.Result{Text: "it rains"}, nil
	}, nil)
	kept := scripted.New([]scripted.Step{calls("wait"), says("kept")}, &scripted.Options{Name: "test/kept"})
	opts := &belay.Options{
		Store: store, Models: models(kept), Tools: []belay.Tool{tool}, OwnModelFirst: true,
		Directives: []belay.Directive{withControls("kept", func(_ context.Context, c *belay.Controls) error { return c.KeepModel(kept) })},
	}
	takeTurn(t, agentOf(t, namedScript("test/own", says("own")), opts).Session("s").Run(t.Context(), "/kept go"), belay.EndParked)
	turn := takeTurn(t, agentOf(t, namedScript("test/named", says("named")), opts).Session("s").Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "who answered", turn.Text, "named")
}

// If the model of a turn is unavailable, the diagnostic names the model that answers instead:
// the session's own choice, or the agent's model.
//
// SPEC D-04
func TestTheDiagnosticNamesTheModelThatAnswers(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	own, kept, gone := namedScript("test/own", says("own")), namedScript("test/kept", says("kept")), namedScript("test/gone", calls("wait"))
	tool := anyTool("wait", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		if call.Wait == "" {
			return belay.Result{}, belay.Park("rain")
		}
		return belay.Result{Text: "it rains"}, nil
	}, nil)
	use := withControls("gone", func(_ context.Context, c *belay.Controls) error { return c.UseModel(gone) })
	agent := func(have ...*scripted.Model) *belay.Agent {
		return agentOf(t, own, &belay.Options{Store: store, Models: models(have...), Tools: []belay.Tool{tool}, Directives: []belay.Directive{use}})
	}
	for session, test := range map[string]struct {
		keep bool
		have []*scripted.Model // of the process that resumes
		want string
	}{
		"the session has a model": {true, []*scripted.Model{kept}, "test/kept answers instead"},
		"the session has none":    {false, nil, "test/own answers instead"},
		"neither model is there":  {true, nil, "test/own answers instead"},
	} {
		first := agent(kept, gone)
		if test.keep {
			succeeds(t, first.Session(session).SetModel(t.Context(), kept))
		}
		takeTurn(t, first.Session(session).Run(t.Context(), "/gone go"), belay.EndParked)
		succeeds(t, first.Session(session).Close(t.Context()))
		turn := takeTurn(t, agent(test.have...).Session(session).Resume(t.Context()), belay.EndTurn)
		found := false
		for _, d := range turn.Diagnostics {
			if d.Code == codes.ModelUnavailable {
				found = true
				if !strings.Contains(d.Message, test.want) {
					t.Errorf("%s: the diagnostic is %q, want %q", session, d.Message, test.want)
				}
			}
		}
		if !found || !strings.HasPrefix(test.want, "test/"+turn.Text+" ") {
			t.Errorf("%s: %q answered, with the diagnostics %+v", session, turn.Text, turn.Diagnostics)
		}
	}
}
