package chat

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// listed is a store whose list of sessions the test sets.
type listed struct {
	belay.ListStore

	infos []belay.SessionInfo
	err   error
}

func (l *listed) Sessions(context.Context, belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for _, info := range l.infos {
			if !yield(info, nil) {
				return
			}
		}
		if l.err != nil {
			yield(belay.SessionInfo{}, l.err)
		}
	}
}

func TestOpeningTellsHowTheSessionStands(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	turn := func(parked bool) belay.SessionState {
		return belay.SessionState{Turn: &belay.TurnState{Parked: parked}, Usage: belay.Usage{In: 5}}
	}
	for _, test := range []struct {
		rule  string
		infos []belay.SessionInfo
		err   error
		want  string
	}{
		{"a session that is not there is new", nil, nil, ""},
		{"another with the same beginning is another", []belay.SessionInfo{{ID: "main-2", State: turn(true)}}, nil, ""},
		{"a parked turn", []belay.SessionInfo{{ID: "main-2"}, {ID: "main", State: turn(true)}}, nil, "waits for a decision: /resume"},
		{"an interrupted turn", []belay.SessionInfo{{ID: "main", State: turn(false)}}, nil, "was interrupted: /resume"},
		{"a session that is another process has this session open", []belay.SessionInfo{{ID: "main", Held: true, State: turn(false)}}, nil, "another process has this session open"},
		{"a list that fails", nil, errors.New("broken on purpose"), "broken on purpose"},
	} {
		o := open(t.Context(), agent.Session("main"), &listed{store, test.infos, test.err})
		got := o.unended + strings.Join(o.trouble, "|")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", test.rule, got, test.want)
		}
	}
}

// The chat opens a session with its last messages.
func TestOpeningShowsTheLastMessages(t *testing.T) {
	t.Parallel()
	var steps []scripted.Step
	for range 5 {
		steps = append(steps, scripted.Step{Text: "An answer."})
	}
	steps = append(steps, scripted.Step{Text: "Reading.", Calls: []scripted.Call{{Tool: "read", Input: `{"path":"notes.md"}`}}}, scripted.Step{Text: "The *last* answer."})
	store := memstore.New(nil)
	agent, err := belay.New(scripted.New(steps, nil), &belay.Options{Store: store, Tools: toolsOfStory()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	session := agent.Session("main")
	for range 6 {
		if _, err := session.Turn(t.Context(), "A question."); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []belay.ListStore{nil, store} {
		o := open(t.Context(), session, s)
		if len(o.messages) != replayed || o.more != 14-replayed {
			t.Errorf("%d messages are shown and %d are not, want %d and %d", len(o.messages), o.more, replayed, 14-replayed)
		}
		if o.unended != "" && s == nil {
			t.Errorf("it says %q, and the turn has ended", o.unended)
		}
		b := openBench(t, nil, o)
		shows(t, "the scrollback", strings.Join(b.printed, "\n"),
			"8 messages before these are not shown", "› A question.", "Reading.", "✓ read notes.md", "The last answer.")
		b.keys("/copy", "enter")
		shows(t, "the scrollback", strings.Join(b.printed, "\n"), "the last answer is on the clipboard")
		if b.m.answer != "The *last* answer." {
			t.Errorf("the last answer is %q", b.m.answer)
		}
	}
}

// A call without a result that does not run shows its state, without a time and without a
// spinner. After /resume it shows no time either, because its start is unknown.
func TestOpeningTellsHowOpenCallsStand(t *testing.T) {
	t.Parallel()
	part := &belay.CallPart{ID: "1", Tool: "write", Input: json.RawMessage(`{"content":"hello","path":"f.txt"}`)}
	message := &belay.Message{
		Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: []belay.Part{{Type: belay.PartCall, Call: part}},
	}
	turn := func(parked bool) belay.SessionState {
		return belay.SessionState{Turn: &belay.TurnState{Parked: parked}}
	}
	for _, test := range []struct {
		rule string
		info *belay.SessionInfo
		want string
	}{
		{"in an interrupted turn", &belay.SessionInfo{ID: "main", State: turn(false)}, "∙ write f.txt · interrupted"},
		{"in a parked turn", &belay.SessionInfo{ID: "main", State: turn(true)}, "∙ write f.txt · waits"},
		{"in another process", &belay.SessionInfo{ID: "main", Held: true, State: turn(false)}, "∙ write f.txt · running elsewhere"},
		{"nobody knows", nil, "∙ write f.txt · no result"},
	} {
		o := &opening{session: "main", messages: []*belay.Message{message}}
		if test.info != nil {
			o.lookUp(t.Context(), &listed{infos: []belay.SessionInfo{*test.info}})
		}
		b := openBench(t, nil, o)
		shows(t, "the scrollback: "+test.rule, strings.Join(b.printed, "\n"), test.want)
		b.wait(5 * time.Second)
		hides(t, "the view: "+test.rule, b.view(), "write", "⠋", "⠙")
		b.keys("/resume", "enter")
		b.answers(part, belay.Failed(belay.ClassFailed, "lost"))
		if last := b.printed[len(b.printed)-2]; last != "✗ write f.txt" {
			t.Errorf("%s: after resuming it prints %q, want the call without a time", test.rule, last)
		}
	}
}

// If the store cannot list sessions, the end of the transcript tells whether a turn may be
// open.
func TestOpeningGuessesFromTheTranscript(t *testing.T) {
	t.Parallel()
	call := belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: "1", Tool: "read", Input: json.RawMessage(`{}`)}}
	for _, test := range []struct {
		rule    string
		message *belay.Message
		want    bool
	}{
		{"an answer ends a turn", &belay.Message{Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: []belay.Part{belay.Text("x")}}, true},
		{"a call does not", &belay.Message{Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: []belay.Part{call}}, false},
		{"a question does not", &belay.Message{Role: belay.RoleUser, Kind: belay.KindUser}, false},
		{"a summary may", &belay.Message{Role: belay.RoleUser, Kind: belay.KindCompaction, IsCompaction: true}, true},
	} {
		if got := final(test.message); got != test.want {
			t.Errorf("%s: %t", test.rule, got)
		}
	}
}

// The footer shows the mode of a turn that another process began, and looks again when an activity
// has ended.
//
// SPEC U-02
func TestFooterShowsTheModeOfAnOpenTurn(t *testing.T) {
	t.Parallel()
	var looked atomic.Int32
	s := play(t, []scripted.Step{{Text: "Done."}}, nil, &Options{Controls: Controls{
		Mode: func(string) string { return []string{"none", "plan", "standard"}[min(looked.Load(), 2)] },
		Recall: func(_ context.Context, session string) error {
			if looked.Add(1) == 1 && session == "main" {
				return nil
			}
			return errors.New("the store is gone")
		},
	}})
	s.sees("plan · main")
	s.say("go")
	s.sees("the mode below may be wrong: the store is gone", "standard · main")
}
