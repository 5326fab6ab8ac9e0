package looptest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A turn that must return a typed answer can be parked and resumed, also by another agent
// with the same store. ResumeAnswer then returns the answer.
//
// SPEC L-12, L-10
func TestAnswerSurvivesParking(t *testing.T) {
	t.Parallel()
	bern := city{"Bern", 134000, []string{"Aare"}}
	const good = `{"name":"Bern","people":134000,"rivers":["Aare"]}`
	for _, test := range []struct {
		rule   string
		resume func(t *testing.T, s *belay.Session) (city, error)
	}{
		{"ResumeAnswer", func(t *testing.T, s *belay.Session) (city, error) {
			t.Helper()
			got, _, err := belay.ResumeAnswer[city](t.Context(), s)
			return got, err
		}},
		{"Session.Resume", func(t *testing.T, s *belay.Session) (city, error) {
			t.Helper()
			turn := takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
			if string(turn.Answer) != good {
				t.Errorf("the turn's answer is %s", turn.Answer)
			}
			return bern, nil
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			opts := belay.Options{Store: memstore.New(nil), OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("act")}, Hooks: []hook.Subscription{askFor("act")}}
			first, _ := newAgent(t, &opts, callWith("act", "{}"))
			_, turn, err := belay.Answer[city](t.Context(), first.Session("s"), "Which city?")
			if !errors.Is(err, belay.ErrNoAnswer) || turn.Reason != belay.EndParked || turn.Answer != nil {
				t.Fatalf("the turn is %+v, %v", turn, err)
			}
			settleApproval(t, first, turn.Waits[0].Approval, true)
			if err := first.Session("s").Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			second, model := newAgent(t, &opts, says("It is Bern."), callWith("final_answer", `{"name":"Bern"}`), callWith("final_answer", good))
			got, err := test.resume(t, second.Session("s"))
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "the answer", got, bern)
			wantEqual(t, "the requests", len(model.Requests()), 3)
		})
	}
}

// formatModel is a scripted model that claims to support structured output.
type formatModel struct{ *scripted.Model }

func (formatModel) CheckSettings(*belay.Request) error { return nil }

// SPEC L-12
func TestAnswerIsNativeWhereTheModelCanDoIt(t *testing.T) {
	t.Parallel()
	script := scriptOf(calls("echo"), says(`{"name":"Bern"}`), says(`{"name":"Bern","people":134000}`))
	s := agentOf(t, formatModel{script}, &belay.Options{Tools: []belay.Tool{echoTool("echo")}}).Session("s")
	got, turn, err := belay.Answer[city](t.Context(), s, "Which city?")
	if err != nil || turn.Reason != belay.EndTurn {
		t.Fatalf("the turn is %+v, %v", turn, err)
	}
	wantEqual(t, "the answer", got, city{Name: "Bern", People: 134000})
	for i, r := range script.Requests() {
		if !strings.Contains(string(r.Settings.Format), `"people"`) || len(r.Tools) != 1 || r.Tools[0].Name != "echo" {
			t.Errorf("request %d has the format %s and the tools %v", i, r.Settings.Format, r.Tools)
		}
	}
	if text := strings.Join(outline(seen(t, script)), "\n"); !strings.Contains(text, "/people: it is required") {
		t.Errorf("the model is not told what is missing:\n%s", text)
	}
}

// SPEC L-12
func TestAnswerForcesTheToolWhereNothingElseIsLeft(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		tools []belay.Tool
		want  []string
	}{
		{"no other tools", nil, []string{"final_answer", "final_answer"}},
		{"other tools, until it answers in text", []belay.Tool{echoTool("echo")}, []string{"", "final_answer"}},
	} {
		model := scriptOf(says("It is Bern."), callWith("final_answer", `{"name":"Bern","people":1}`))
		if _, _, err := belay.Answer[city](t.Context(), agentOf(t, model, &belay.Options{Tools: test.tools}).Session("s"), "Which city?"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range model.Requests() {
			got = append(got, r.Settings.ToolChoice)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the choices are %q, want %q", test.rule, got, test.want)
		}
	}
}

// Every request has the settings, but only the first request requires a call.
//
// SPEC L-12
func TestSettingsReachTheModel(t *testing.T) {
	t.Parallel()
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Settings: belay.Settings{Temperature: new(0.0), Stop: []string{"END"}, ToolChoice: belay.ToolChoiceRequired}}, calls("echo"))
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	for i, r := range model.Requests() {
		want := map[int]string{0: belay.ToolChoiceRequired}[i]
		if r.Settings.Temperature == nil || *r.Settings.Temperature != 0 || !slices.Equal(r.Settings.Stop, []string{"END"}) || r.Settings.ToolChoice != want {
			t.Errorf("request %d has %+v", i, r.Settings)
		}
	}
}

// plainModel is a model that rejects a temperature.
type plainModel struct{ *scripted.Model }

func (plainModel) CheckSettings(req *belay.Request) error {
	if req.Settings.Temperature != nil {
		return errors.New("setting temperature: it has none")
	}
	return nil
}

// New returns an error if a model cannot use the agent's settings, even if the model is a
// fallback.
//
// SPEC L-12
func TestNewRefusesSettings(t *testing.T) {
	t.Parallel()
	opts := &belay.Options{Settings: belay.Settings{Temperature: new(0.5)}}
	picky := plainModel{scriptOf(says("done"))}
	for rule, model := range map[string]belay.Model{"the model": picky, "a fallback": belay.Fallback(scriptOf(says("done")), picky)} {
		if _, err := belay.New(model, opts); err == nil || !strings.Contains(err.Error(), "setting temperature") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// askFor returns a gate that requires approval for one tool.
func askFor(tool string) hook.Subscription {
	return belay.ToolPre.On("gate", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		if call.Tool() == tool {
			return belay.Ask("it acts"), nil
		}
		return belay.Pass, nil
	}, nil)
}
