package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/muesli/cancelreader"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
)

// dumb reports whether the terminal cannot move its cursor.
func dumb(environ []string) bool {
	for _, v := range environ {
		if name, value, _ := strings.Cut(v, "="); name == "TERM" {
			return value == "dumb"
		}
	}
	return false
}

// lineMsg is a line that the user typed.
type lineMsg string

// teletype runs the conversation line by line, for a terminal that cannot move its cursor.
// It uses the same model as a screen, but prints only finished output.
type teletype struct {
	model *model
	out   io.Writer
	msgs  chan tea.Msg
	over  chan struct{}
	shown string // the id of the question that was printed
	asks  bool   // the question about a pattern was printed
	err   error  // the first error of writing to out
}

// lines runs the conversation on a terminal that cannot move its cursor.
func (c *Chat) lines(ctx context.Context, s Session, o *opening, in io.Reader, out io.Writer) error {
	reader, err := cancelreader.NewReader(in)
	if err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	defer func() { _ = reader.Close() }()
	r := newRunner(ctx, c, s, o)
	t := &teletype{model: r.model, out: out, msgs: make(chan tea.Msg), over: make(chan struct{})}
	r.model.look.profile, r.model.md.profile = colorprofile.NoTTY, colorprofile.NoTTY
	r.model.printer, r.model.drawn = t.print, true
	r.attach(t.send)
	leave := context.AfterFunc(ctx, func() { t.send(leaveMsg{}) })
	defer leave()
	var reading sync.WaitGroup
	reading.Go(func() { t.read(reader) })
	t.loop()
	ended := r.end()
	if reader.Cancel() {
		reading.Wait()
	}
	return errors.Join(ended, t.err, context.Cause(ctx))
}

// send passes a message to the loop.
func (t *teletype) send(msg tea.Msg) {
	select {
	case t.msgs <- msg:
	case <-t.over:
	}
}

// read sends the lines that the user types, until the input ends.
func (t *teletype) read(in io.Reader) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		t.send(lineMsg(scanner.Text()))
	}
	t.send(leaveMsg{})
}

// loop handles messages until the chat ends.
func (t *teletype) loop() {
	defer close(t.over)
	t.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	t.prompt()
	for t.err == nil {
		msg := <-t.msgs
		if _, ok := msg.(tea.QuitMsg); ok {
			return
		}
		t.update(msg)
	}
}

func (t *teletype) update(msg tea.Msg) {
	line, typed := msg.(lineMsg)
	_, noted := msg.(noteMsg)
	wasWorking := t.model.working
	if typed {
		t.do(t.typed(string(line)))
		msg = nil
	}
	_, cmd := t.model.Update(msg)
	t.do(cmd)
	_, cmd = t.model.Update(printedMsg{})
	t.do(cmd)
	switch {
	case t.question():
	case !t.model.working && (typed || wasWorking || noted):
		t.prompt()
	}
}

// typed handles a line: it is the answer if a question is open, and otherwise a message.
func (t *teletype) typed(line string) tea.Cmd {
	m := t.model
	m.now = m.clock()
	if len(m.desk.waiting) == 0 || m.desk.waiting[0].question.ID != t.shown {
		m.editor.insert(line)
		m.pressed = m.now
		return m.send()
	}
	line = strings.TrimSpace(line)
	if m.desk.waiting[0].advice.words {
		return m.inWords(line)
	}
	if m.desk.typing == draftPattern {
		return m.allowLike(line)
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return m.allow(belay.ApprovalScope{})
	case "s":
		if m.desk.waiting[0].plan() {
			break
		}
		return m.allow(belay.ApprovalScope{Kind: belay.ScopeSession})
	case "p":
		if m.desk.waiting[0].advice.Pattern != "" {
			m.typed(draftPattern, "")
			return nil
		}
	case "n", "no":
		line = ""
	}
	return m.deny(line)
}

// question prints the first open question, once. It reports whether a question is open.
func (t *teletype) question() bool {
	m := t.model
	if len(m.desk.waiting) == 0 {
		return false
	}
	asked := &m.desk.waiting[0]
	switch {
	case !m.desk.armed:
	case asked.question.ID != t.shown:
		t.shown, t.asks = asked.question.ID, false
		head := m.questionView(1 << 20)
		t.write(m.toned(strings.Join(head[:len(head)-len(m.questionKeys())], "\n")) + "\n" + answers(asked))
	case m.desk.fault != "":
		t.write(visible.All(m.desk.fault) + "\npattern: ")
		m.desk.fault = ""
	case m.desk.typing == draftPattern && !t.asks:
		t.asks = true
		t.write("type another pattern, or press Enter for " + visible.All(asked.advice.Pattern) + ": ")
	}
	return true
}

// answers explains how to answer a question with a line.
func answers(q *askMsg) string {
	a := &q.advice
	if a.words {
		return "your answer (press Enter for no answer): "
	}
	if q.plan() {
		return "y approve and begin; any other text says what should change: "
	}
	if a.Pattern == "" {
		return "y allow once, s allow for this session; any other text denies and is the reason: "
	}
	return "y allow once, s allow for this session, p allow all like " + visible.All(a.Pattern) + "; any other text denies and is the reason: "
}

func (t *teletype) prompt() {
	if !t.model.gone {
		t.write("> ")
	}
}

// print writes finished output.
func (t *teletype) print(pages []string) tea.Cmd {
	for _, page := range pages {
		t.write(strings.TrimRight(page, " ") + "\n")
	}
	return nil
}

func (t *teletype) write(text string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.out, text)
	}
}

// do runs a command in its own goroutine, as the loop of bubbletea does.
func (t *teletype) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				t.do(c)
			}
		default:
			t.send(msg)
		}
	}()
}
