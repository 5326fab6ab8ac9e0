package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

func chatPromises() []promise {
	return []promise{{"chat-key", 1.5, pairRatio(chatKeys)}}
}

// chatKeys compares a key in a session of 5,000 messages with a key in a session of ten, from the
// key to the bytes for the terminal. Half of the messages were there when the chat opened the
// session, and the chat showed the other half live.
func chatKeys() (*pair, error) {
	long, err := newTyping(5_000)
	if err != nil {
		return nil, err
	}
	short, err := newTyping(10)
	if err != nil {
		return nil, errors.Join(err, long.agent.Close(ctx))
	}
	return &pair{long.keys, short.keys, func() error {
		return errors.Join(long.err, short.err, long.agent.Close(ctx), short.agent.Close(ctx))
	}}, nil
}

// typing is a chat whose views are drawn for a terminal, as bubbletea draws them.
type typing struct {
	agent  *belay.Agent
	rig    *chat.Rig
	cells  uv.ScreenBuffer
	screen *uv.TerminalRenderer
	out    bytes.Buffer
	err    error // a key that did not appear on the screen
}

const chatWidth, chatHeight = 120, 40

// newTyping makes a chat with a session that has this number of messages.
func newTyping(messages int) (*typing, error) {
	store := memstore.New(nil)
	stored, err := store.Open(ctx, "s")
	if err != nil {
		return nil, err
	}
	half := make([]*belay.Message, messages/2)
	for i := range half {
		half[i] = chatMessage(i)
	}
	if err := errors.Join(store.Commit(ctx, &belay.Commit{Session: "s", Epoch: stored.Epoch, Messages: half}), store.Release(ctx, "s", stored.Epoch)); err != nil {
		return nil, err
	}
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: store})
	if err != nil {
		return nil, err
	}
	t := &typing{agent: agent, rig: chat.NewRig(ctx, chat.New(&chat.Options{Store: store}), agent.Session("s"), chatWidth, chatHeight)}
	t.screen = uv.NewTerminalRenderer(&t.out, []string{"TERM=xterm-256color"})
	t.screen.SetRelativeCursor(true)
	t.screen.SetFullscreen(false)
	t.cells = uv.NewScreenBuffer(chatWidth, 1)
	for i := range messages - messages/2 {
		t.rig.Show(chatEvents(i)...)
	}
	return t, nil
}

// chatMessage returns the i-th message of a conversation.
func chatMessage(i int) *belay.Message {
	m := &belay.Message{Seq: int64(i + 1), Turn: fmt.Sprint(i / 2), Step: 1, Role: belay.RoleUser, Kind: belay.KindUser, Time: time.Now(), Parts: []belay.Part{belay.Text("go on")}}
	if i%2 == 1 {
		m.Role, m.Kind, m.Parts = belay.RoleAssistant, belay.KindAssistant, []belay.Part{belay.Text(chatText(i))}
	}
	return m
}

func chatText(i int) string {
	return fmt.Sprintf("## Part %d\n\nThe change is in `main.go`:\n\n```go\nfunc main() { println(%d) }\n```\n\n- one\n- two\n", i, i)
}

// chatEvents are the events of a step: a call, its result, and a text of the model.
func chatEvents(i int) []belay.Event {
	now := time.Now()
	call := &belay.CallPart{ID: fmt.Sprint("call-", i), Tool: "read", Input: []byte(`{"path":"main.go"}`)}
	return []belay.Event{
		{Time: now, Kind: belay.EventToolUse, Call: call},
		{Time: now, Kind: belay.EventToolUseResult, Call: call, Result: &belay.Result{Text: strings.Repeat("a line\n", 20)}},
		{Time: now, Kind: belay.EventTextDelta, Text: chatText(i)},
		{Time: now, Kind: belay.EventModelResponse, Message: &belay.Message{Model: "test/one", Parts: []belay.Part{belay.Text(chatText(i))}}},
	}
}

// keys types n letters, and removes each second one.
func (t *typing) keys(n int) {
	for i := range n {
		key := tea.Key{Code: 'x', Text: "x"}
		if i%2 == 1 {
			key = tea.Key{Code: tea.KeyBackspace}
		}
		t.draw(t.rig.Press(key))
		if t.out.Len() == 0 {
			t.err = errors.New("a key changes nothing on the screen")
		}
	}
}

// draw writes the difference to the view before.
func (t *typing) draw(view tea.View) {
	t.out.Reset()
	content := uv.NewStyledString(view.Content)
	if area := uv.Rect(0, 0, chatWidth, content.Height()); area != t.cells.Bounds() {
		t.screen.Erase()
		t.cells.Touched = nil
		t.cells.Resize(area.Dx(), area.Dy())
	}
	t.cells.Clear()
	content.Draw(t.cells, t.cells.Bounds())
	t.screen.Render(t.cells.RenderBuffer)
	if view.Cursor != nil {
		t.screen.MoveTo(view.Cursor.X, view.Cursor.Y)
	}
	if err := t.screen.Flush(); err != nil {
		t.err = err
	}
}
