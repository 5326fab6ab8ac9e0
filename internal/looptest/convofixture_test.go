package looptest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// atOnce is a pace without deltas: a response is one chunk.
var atOnce = scripted.Pace{Chunk: scripted.Whole}

// scriptOf returns a model that plays the steps. After the last step, every request
// fails.
func scriptOf(steps ...scripted.Step) *scripted.Model {
	return scripted.New(steps, &scripted.Options{Pace: atOnce})
}

// say runs a turn and fails the test unless the turn ends normally.
func say(t testing.TB, s *belay.Session, text string) *belay.Turn {
	t.Helper()
	turn, err := s.Turn(t.Context(), text)
	if err != nil {
		t.Fatalf("the turn failed: %v", err)
	}
	if turn.Reason != belay.EndTurn {
		t.Fatalf("the turn ended %s (%s: %s)", turn.Reason, turn.By, turn.Why)
	}
	return turn
}

// outline describes a conversation with one line for each message: its kind, texts, calls
// and results.
func outline(messages []*belay.Message) []string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		parts := make([]string, len(m.Parts))
		for j := range m.Parts {
			switch p := &m.Parts[j]; {
			case p.Call != nil:
				parts[j] = "call " + p.Call.Tool
			case p.Result != nil:
				parts[j] = "result " + p.Result.Text
			default:
				parts[j] = strings.TrimSuffix(strings.TrimPrefix(p.Text, "<system-reminder>\n"), "\n</system-reminder>")
			}
		}
		lines[i] = fmt.Sprintf("%s: %s", m.Kind, strings.Join(parts, " | "))
	}
	return lines
}

// wantOutline compares the outline of a conversation with the wanted lines.
func wantOutline(t testing.TB, messages []*belay.Message, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, outline(messages), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
}

// wantEqual compares two values.
func wantEqual[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// last returns the last element. It fails the test if the list is empty.
func last[T any](t testing.TB, all []T) T {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("there is none")
	}
	return all[len(all)-1]
}

// seen returns the messages of the model's last request.
func seen(t testing.TB, model *scripted.Model) []*belay.Message {
	t.Helper()
	return last(t, model.Requests()).Messages
}

// tells returns a subscription at user.prompt.submit that adds a reminder to turns whose
// text contains a word.
func tells(id, word string, reminders ...belay.Reminder) hook.Subscription {
	return belay.UserPromptSubmit.On(id, func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
		if !strings.Contains(p.Text(), word) {
			return belay.PromptVerdict{}, nil
		}
		return belay.PromptVerdict{Aside: belay.Aside{Context: reminders}}, nil
	}, nil)
}

// remindersOf returns the texts of the reminders in messages.
func remindersOf(messages []*belay.Message) []string {
	var all []string
	for _, m := range messages {
		for i := range m.Parts {
			if m.Parts[i].IsReminder {
				all = append(all, m.Parts[i].Text)
			}
		}
	}
	return all
}

// plainMessages compares messages by their content. It ignores the time, which is not sent
// to a model.
var plainMessages = cmp.Options{cmpopts.IgnoreUnexported(belay.Message{}), cmpopts.IgnoreFields(belay.Message{}, "Time")}

// wantExtends asserts that each request begins with the previous one: the same system
// prompt, tools and messages.
func wantExtends(t testing.TB, requests []belay.Request) {
	t.Helper()
	for i := 1; i < len(requests); i++ {
		before, now := requests[i-1], requests[i]
		if before.System != now.System {
			t.Errorf("request %d has another system prompt", i+1)
		}
		if diff := cmp.Diff(before.Tools, now.Tools); diff != "" {
			t.Errorf("request %d has other tools:\n%s", i+1, diff)
		}
		if len(now.Messages) < len(before.Messages) {
			t.Fatalf("request %d has %d messages, and %d before", i+1, len(now.Messages), len(before.Messages))
		}
		if diff := cmp.Diff(before.Messages, now.Messages[:len(before.Messages)], plainMessages); diff != "" {
			t.Fatalf("request %d does not begin with the one before (-before +now):\n%s", i+1, diff)
		}
	}
}

// kindsOf returns the kinds of events. Equal kinds in a row are listed once.
func kindsOf(events []belay.Event) []belay.EventKind {
	kinds := make([]belay.EventKind, len(events))
	for i := range events {
		kinds[i] = events[i].Kind
	}
	return slices.Compact(kinds)
}

// logbook collects entries in order. It is safe for concurrent use.
type logbook struct {
	mu      sync.Mutex
	entries []string
}

func (l *logbook) notef(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, fmt.Sprintf(format, args...))
}

// all returns the entries so far.
func (l *logbook) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}
