package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// conversationView is what the page of a session shows.
type conversationView struct {
	Session  api.Session
	Messages []*belay.Message
	Earlier  int64 // the number before which there are more messages, or 0
	Later    bool  // the page does not end with the newest message
	Turns    api.TurnList
	Address  turnAddress
	Timeline *api.Timeline // of the selected turn; nil if there is none
	waterfall

	// Bar is the bar that the user chose, with its call or its explanation.
	Bar       *api.Span
	Call      *belay.CallPart
	CallIn    *belay.Message
	Explained *api.Explanation
	// Gates explain what the hooks at tool.pre said about the call. SharedGates says that some of
	// them were about other calls of the same response.
	Gates       []api.Explanation
	SharedGates bool

	Queue   api.Queue
	results map[string]*belay.ResultPart // by call
}

// messagesPerPage is how many messages a page shows.
const messagesPerPage = 100

// conversation shows the messages of a session, and the waterfall of one turn.
func conversation(ctx context.Context, v *visit) (templ.Component, error) {
	var b conversationView
	var err error
	id := v.r.PathValue("session")
	if b.Session, err = v.ReadSession(ctx, id); err != nil {
		return nil, err
	}
	if b.Turns, err = v.ListTurns(ctx, api.ListTurns{Session: id, Limit: 20}); err != nil {
		return nil, err
	}
	if b.Queue, err = v.ListQueue(ctx, id); err != nil {
		return nil, err
	}
	b.Address = turnAddress{Session: id, Turn: v.query("turn"), Bar: v.query("bar")}
	b.Address.Before, _ = strconv.ParseInt(v.query("before"), 10, 64) // 0: the newest
	b.Address.From, _ = time.ParseDuration(v.query("from"))           // 0: from the begin
	b.Address.To, _ = time.ParseDuration(v.query("to"))               // 0: to the end
	turn := b.Address.Turn
	if turn == "" && len(b.Turns.Turns) > 0 {
		turn = b.Turns.Turns[0].ID
	}
	if turn != "" {
		timeline, err := v.ReadTimeline(ctx, api.ReadTimeline{Session: id, Turn: turn})
		if err != nil {
			return nil, err
		}
		b.Timeline, b.waterfall = &timeline, draw(&timeline, b.Address.From, b.Address.To)
	}
	if err := b.readMessages(ctx, v); err != nil {
		return nil, err
	}
	if err := b.choose(ctx, v); err != nil {
		return nil, err
	}
	return conversationPage(v, &b), nil
}

// readMessages reads the messages of the page. The address of an old turn shows the messages of
// this turn.
func (b *conversationView) readMessages(ctx context.Context, v *visit) error {
	before := b.Address.Before
	if before == 0 && b.Address.Turn != "" && b.Session.Last-b.Timeline.Turn.Last >= messagesPerPage {
		before = b.Timeline.Turn.Last + 1
	}
	list, err := v.ListMessages(ctx, api.ListMessages{Session: b.Session.ID, Newest: true, Before: before, Limit: messagesPerPage, NoMedia: true})
	if err != nil {
		return err
	}
	b.Earlier, b.Later = list.Next, before > 0 && before <= b.Session.Last
	b.results = make(map[string]*belay.ResultPart)
	for _, m := range slices.Backward(list.Messages) {
		b.Messages = append(b.Messages, m)
		b.addResults(m)
	}
	return nil
}

// addResults keeps the results of a message for their calls.
func (b *conversationView) addResults(m *belay.Message) {
	for j := range m.Parts {
		if r := m.Parts[j].Result; r != nil {
			b.results[m.Turn+" "+r.Call] = r
		}
	}
}

// choose finds what a bar of the waterfall stands for.
func (b *conversationView) choose(ctx context.Context, v *visit) error {
	if b.Address.Bar == "" || b.Timeline == nil {
		return nil
	}
	b.Bar = find(b.Timeline, b.Address.Bar)
	switch {
	case b.Bar == nil:
	case b.Bar.Run != "":
		x, err := v.ExplainRun(ctx, b.Session.ID, b.Bar.Run)
		if err != nil {
			return err
		}
		b.Explained = &x
	case b.Bar.Call != "":
		if err := b.findCall(ctx, v); err != nil {
			return err
		}
		return b.explainGates(ctx, v)
	}
	return nil
}

// findCall finds the call of the bar. The messages of the page may not have it, if the turn is
// longer than a page.
func (b *conversationView) findCall(ctx context.Context, v *visit) error {
	turn := &b.Timeline.Turn
	look := func(m *belay.Message) {
		for _, c := range m.Calls() {
			if m.Turn == turn.ID && c.ID == b.Bar.Call && (m.Step == b.Bar.Step || b.Bar.Step == 0) {
				b.Call, b.CallIn = c, m
			}
		}
	}
	for _, m := range b.Messages {
		look(m)
	}
	for after := turn.First - 1; b.Call == nil && after < turn.Last; {
		list, err := v.ListMessages(ctx, api.ListMessages{Session: b.Session.ID, After: after, Limit: messagesPerPage, NoMedia: true})
		if err != nil {
			return err
		}
		for _, m := range list.Messages {
			look(m)
			b.addResults(m)
		}
		if after = list.Next; after == 0 {
			break
		}
	}
	return nil
}

// mostGates is how many dispatches of tool.pre the page explains.
const mostGates = 10

// explainGates explains what the hooks said about the call of the bar.
func (b *conversationView) explainGates(ctx context.Context, v *visit) error {
	if b.CallIn == nil {
		return nil
	}
	var runs []string
	runs, b.SharedGates = gatesOf(b.Timeline, b.CallIn.Step)
	for _, run := range runs[:min(len(runs), mostGates)] {
		x, err := v.ExplainRun(ctx, b.Session.ID, run)
		if err != nil {
			return err
		}
		b.Gates = append(b.Gates, x)
	}
	return nil
}

// didWhat says what a hook did on a dispatch.
func didWhat(e *hook.Explained) string {
	switch {
	case !e.Asked:
		return cmp.Or(sentence(e.Why), "Was not asked.")
	case e.Code != "":
		return "Failed: " + cmp.Or(e.Why, string(e.Code))
	case len(e.Contributed) == 0:
		return "No objection."
	default:
		return strings.TrimSpace(sentence(listed(e.Contributed)) + " " + sentence(e.Why))
	}
}

// listed says what a hook contributed, and how often.
func listed(words []string) string {
	var all []string
	counts := make(map[string]int)
	for _, w := range words {
		if counts[w]++; counts[w] == 1 {
			all = append(all, w)
		}
	}
	for i, w := range all {
		switch {
		case w == "deny":
			all[i] = "denied"
		case w == "ask":
			all[i] = "asked for approval"
		case counts[w] > 1:
			all[i] = fmt.Sprintf("gave %s (%d times)", w, counts[w])
		default:
			all[i] = "gave " + w
		}
	}
	return strings.Join(all, ", ")
}

// began says when a bar begins.
func (b *conversationView) began() string {
	if after := b.Bar.Begin.Sub(b.Begin); after > 0 {
		return short(after) + " after the turn began"
	}
	return "with the turn"
}

// anchor aligns the text of a mark of the axis.
func anchor(i, n int) string {
	switch i {
	case 0:
		return "start"
	case n - 1:
		return "end"
	default:
		return "middle"
	}
}

// livePath is the address of the stream of a session.
func (b *conversationView) livePath() string {
	return "/live?" + url.Values{"session": {b.Session.ID}, "after": {b.Session.Position}}.Encode()
}

// result returns the result of a call, or nil.
func (b *conversationView) result(m *belay.Message, call string) *belay.ResultPart {
	return b.results[m.Turn+" "+call]
}

// author says who wrote a message.
func author(m *belay.Message) string {
	switch m.Kind {
	case belay.KindUser:
		return "User"
	case belay.KindAssistant:
		return cmp.Or(m.Model, "Agent")
	case belay.KindReminder:
		return "Reminder of a hook"
	case belay.KindContext:
		return "Context"
	case belay.KindInjected:
		if m.IsSkillInjection {
			return "Injected by a skill"
		}
		return "Injected"
	case belay.KindCompaction:
		return "Summary of earlier messages"
	case belay.KindResults:
		return "Results"
	default:
		return string(m.Kind)
	}
}

// isQuiet reports whether a message is folded: the model gets it, but no person wrote it.
func isQuiet(m *belay.Message) bool {
	return m.Kind == belay.KindReminder || m.Kind == belay.KindContext || m.Kind == belay.KindInjected || m.Kind == belay.KindCompaction
}

// callID returns the id of a call in the page. The call of the chosen bar may be there twice.
func callID(m *belay.Message, c *belay.CallPart, chosen bool) string {
	id := "call-" + strconv.FormatInt(m.Seq, 10) + "-" + c.ID
	if chosen {
		return "bar-" + id
	}
	return id
}

// callLine describes a call in one line.
func callLine(c *belay.CallPart) string {
	input := c.Input
	if len(c.Final) > 0 {
		input = c.Final
	}
	s := subject(&api.Approval{Approval: belay.Approval{Tool: c.Tool}, Input: input})
	return cut(s.What, 100)
}

// outcome returns how a call ended: ok, failed or denied. A call without a result is running,
// or waiting for a person.
func (b *conversationView) outcome(r *belay.ResultPart) string {
	switch {
	case r == nil && b.open() && b.Session.Turn.Parked:
		return "waiting"
	case r == nil && b.open():
		return "running"
	case r == nil:
		return "no result"
	case !r.IsError:
		return "ok"
	case r.Class == belay.ClassDenied:
		return "denied"
	default:
		return "failed"
	}
}

// changed returns the diff in the render data of a result, or "".
func changed(r *belay.ResultPart) string {
	if r == nil {
		return ""
	}
	var view struct {
		Kind string `json:"kind"`
		Diff string `json:"diff"`
	}
	if json.Unmarshal(r.Render, &view) != nil || view.Kind != "change" {
		return ""
	}
	return view.Diff
}

// gateWon reports whether a hook decided about the call.
func (b *conversationView) gateWon() bool {
	return slices.ContainsFunc(b.Gates, func(x api.Explanation) bool { return x.Won != "" })
}

// open reports whether the session has an open turn.
func (b *conversationView) open() bool { return b.Session.Turn != nil }

func newPage(ctx context.Context, v *visit) (templ.Component, error) {
	agents, err := v.agents(ctx)
	if err != nil {
		return nil, err
	}
	return newSessionPage(v, agents), nil
}

// startSession creates a session and sends its first message.
func startSession(ctx context.Context, v *visit) error {
	in, err := message(v.r)
	if err != nil {
		return err
	}
	session, err := v.CreateSession(ctx, api.CreateSession{})
	if err != nil {
		return err
	}
	in.Session = session.ID
	if _, err := v.StartTurn(ctx, in); err != nil {
		_ = v.DeleteSession(ctx, session.ID) // ignore errors: an empty session stays, if the token may not delete it
		return err
	}
	v.w.Header().Set("Hx-Redirect", sessionPath(session.ID))
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// sendMessage sends a message to a session.
func sendMessage(ctx context.Context, v *visit) error {
	in, err := message(v.r)
	if err != nil {
		return err
	}
	in.Session, in.Key = v.r.PathValue("session"), v.r.Header.Get("Idempotency-Key")
	if _, err := v.StartTurn(ctx, in); err != nil {
		return err
	}
	v.w.Header().Set("Hx-Trigger", "belay:sent")
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// message reads a message with its files from a form.
func message(r *http.Request) (api.StartTurn, error) {
	var in api.StartTurn
	if err := r.ParseMultipartForm(mostForm); err != nil && !errors.Is(err, http.ErrNotMultipart) { //nolint:gosec // act limits the body
		return in, fmt.Errorf("read the message: %w", err)
	}
	in.Text, in.Agent = strings.TrimSpace(r.FormValue("text")), r.FormValue("agent")
	if r.MultipartForm == nil {
		return in, nil
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }() // ignore errors: the files are temporary
	for _, f := range r.MultipartForm.File["files"] {
		if f.Size == 0 {
			continue // an empty file input
		}
		opened, err := f.Open()
		if err != nil {
			return in, fmt.Errorf("read the file %q: %w", f.Filename, err)
		}
		data, err := io.ReadAll(opened)
		_ = opened.Close() // ignore errors: all is read
		if err != nil {
			return in, fmt.Errorf("read the file %q: %w", f.Filename, err)
		}
		mime := f.Header.Get("Content-Type")
		if mime == "" || mime == "application/octet-stream" {
			mime = http.DetectContentType(data)
		}
		in.Files = append(in.Files, api.File{Name: f.Filename, MIME: mime, Data: data})
	}
	return in, nil
}

func abortTurn(ctx context.Context, v *visit) error {
	if _, err := v.AbortTurn(ctx, v.r.PathValue("session"), v.r.FormValue("turn")); err != nil {
		return err
	}
	v.say("The turn is being stopped.")
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// withdrawTurn takes a queued message back.
func withdrawTurn(ctx context.Context, v *visit) error {
	session := v.r.PathValue("session")
	said := "The message is withdrawn."
	if err := v.WithdrawTurn(ctx, session, v.r.PathValue("turn")); errors.Is(err, belay.ErrNotFound) {
		said = "The message is no longer in the queue: its turn has begun, or somebody else has withdrawn it."
	} else if err != nil {
		return err
	}
	v.say(said)
	v.goTo(sessionPath(session))
	return nil
}

// revokeGrant takes back an approval that covers more than one call.
func revokeGrant(ctx context.Context, v *visit) error {
	session := v.r.PathValue("session")
	if err := v.RevokeGrant(ctx, session, v.r.PathValue("grant")); err != nil {
		return err
	}
	v.say("Revoked: such calls ask again.")
	v.goTo(sessionPath(session))
	return nil
}

// covers says which calls a grant covers.
func covers(g *belay.Grant) string { return cmp.Or(g.Pattern, "every call of "+g.Tool) }

// forkSession makes a new session from the messages up to one of them.
func forkSession(ctx context.Context, v *visit) error {
	at, err := strconv.ParseInt(v.r.FormValue("at"), 10, 64)
	if err != nil {
		return &api.Problem{Status: http.StatusBadRequest, Detail: "the number of the message is missing"}
	}
	session, err := v.ForkSession(ctx, api.ForkSession{Session: v.r.PathValue("session"), At: at})
	if err != nil {
		return err
	}
	v.w.Header().Set("Hx-Redirect", sessionPath(session.ID))
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}
