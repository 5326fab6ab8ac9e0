package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/subagent"
)

// timelineRuns is the maximum number of hook runs in a timeline.
const timelineRuns = 2000

// Timeline returns everything that happened in a turn, on one axis of time. The hook runs and
// approvals have stored times. The times of model calls and tool calls are not stored, so they
// are estimated from the messages, hook runs and approvals around them. at is the number of a
// message of the turn, or 0. Timeline returns belay.ErrNotFound if the session has no message
// of the turn.
func Timeline(ctx context.Context, store belay.ListStore, journal hook.ListJournal, info *belay.SessionInfo, turn string, at int64) (api.Timeline, error) {
	messages, err := messagesOfTurn(ctx, store, info, turn, at)
	if err != nil {
		return api.Timeline{}, err
	}
	newestFirst := slices.Clone(messages)
	slices.Reverse(newestFirst)
	l := &timeline{info: info, out: api.Timeline{Turn: TurnOf(info, newestFirst)}, messages: messages}
	for r, err := range journal.List(ctx, hook.Filter{Session: info.ID, Turn: turn, Limit: timelineRuns + 1}) {
		if err != nil {
			return api.Timeline{}, err
		}
		if len(l.runs) == timelineRuns {
			l.out.Truncated = true
			break
		}
		l.runs = append(l.runs, r)
	}
	for a, err := range store.Approvals(ctx, belay.ApprovalFilter{Session: info.ID}) {
		if err != nil {
			return api.Timeline{}, err
		}
		if a.Turn == turn {
			l.approvals = append(l.approvals, a)
		}
	}
	for i, m := range messages {
		if m.Kind == belay.KindAssistant {
			l.addResponse(i)
		}
	}
	l.addHooks()
	l.addApprovals(time.Now())
	if err := l.addSubagents(ctx, store); err != nil {
		return api.Timeline{}, err
	}
	slices.SortStableFunc(l.out.Spans, func(a, b api.Span) int { return a.Begin.Compare(b.Begin) })
	return l.out, nil
}

// messagesOfTurn reads the messages of a turn, the oldest first.
func messagesOfTurn(ctx context.Context, store belay.Store, info *belay.SessionInfo, turn string, at int64) ([]*belay.Message, error) {
	found, err := hasTurn(ctx, store, info.ID, turn, at)
	if err != nil {
		return nil, err
	}
	for before := info.Last + 1; !found; { // the newest turns are read most often
		window, err := MessagesBefore(ctx, store, info.ID, before, turnWindow)
		if err != nil {
			return nil, err
		}
		if len(window) == 0 {
			return nil, belay.ErrNotFound
		}
		for _, m := range window {
			if before = m.Seq; m.Turn == turn {
				at, found = m.Seq, true
				break
			}
		}
	}
	var all []*belay.Message
	for before, more := at+1, true; more; {
		window, err := MessagesBefore(ctx, store, info.ID, before, turnWindow)
		if err != nil {
			return nil, err
		}
		more = len(window) > 0
		for _, m := range window {
			if m.Turn != turn {
				more = false
				break
			}
			all, before = append(all, m), m.Seq
		}
	}
	slices.Reverse(all)
	for m, err := range store.Read(ctx, info.ID, at) {
		if err != nil {
			return nil, err
		}
		if m.Turn != turn {
			break
		}
		all = append(all, m)
	}
	return all, nil
}

// hasTurn reports whether the message with this number belongs to the turn.
func hasTurn(ctx context.Context, store belay.Store, session, turn string, at int64) (bool, error) {
	if at < 1 {
		return false, nil
	}
	for m, err := range store.Read(ctx, session, at-1) {
		if err != nil {
			return false, err
		}
		return m.Turn == turn, nil
	}
	return false, nil
}

// timeline collects the spans of a turn.
type timeline struct {
	info      *belay.SessionInfo
	messages  []*belay.Message // the oldest first
	runs      []hook.Run
	approvals []belay.Approval
	out       api.Timeline
}

func (l *timeline) add(s api.Span) { l.out.Spans = append(l.out.Spans, s) }

// addResponse adds the request of a response, and its calls.
func (l *timeline) addResponse(i int) {
	m := l.messages[i]
	begin := m.Time
	if i > 0 {
		begin = l.messages[i-1].Time
	}
	end := m.Time
	requests := make(map[string]bool)
	for j := range l.runs {
		r := &l.runs[j]
		switch {
		case r.Scope.Step != m.Step:
		case r.Phase == belay.ModelPre.Name() && !r.Ended.After(m.Time):
			requests[r.Dispatch] = true
			if r.Ended.After(begin) {
				begin = r.Ended
			}
		case r.Phase == belay.ToolPre.Name() || r.Phase == belay.TurnStop.Name(): // they run when the response is complete
			if r.Started.Before(end) && r.Started.After(begin) {
				end = r.Started
			}
		}
	}
	if m.Model != "" || m.Usage != nil { // otherwise a hook has answered in the place of the model
		l.add(api.Span{
			Kind: api.SpanModel, Name: m.Model, Begin: begin, End: end, Step: m.Step, Seq: m.Seq, Estimated: true, Outcome: "ok", Usage: m.Usage, Attempts: len(requests),
		})
	}
	calls := m.Calls()
	for _, c := range calls {
		l.addCall(m, i, c, len(calls) == 1)
	}
}

// addCall adds a tool call. If the response has only one call, the runs of tool.post in its
// step belong to it.
func (l *timeline) addCall(m *belay.Message, i int, c *belay.CallPart, only bool) {
	s := api.Span{Kind: api.SpanTool, Name: c.Tool, Begin: m.Time, Step: m.Step, Seq: m.Seq, Call: c.ID, Estimated: true, Outcome: "running"}
	for j := range l.approvals {
		a := &l.approvals[j]
		if a.Call != c.ID {
			continue
		}
		s.Approval = a.ID
		switch d := a.Decided; {
		case d == nil:
			s.Outcome = "waiting"
		case d.Time.After(s.Begin):
			s.Begin = d.Time
		}
	}
	for _, later := range l.messages[i+1:] {
		for j := range later.Parts {
			if r := later.Parts[j].Result; later.Kind == belay.KindResults && r != nil && r.Call == c.ID && later.Step == m.Step {
				l.endCall(&s, later, r, only)
			}
		}
	}
	if c.Tool == subagent.InvokeTool {
		s.Session = durableChild(l.info.ID, c)
	}
	l.add(s)
}

// endCall adds the result of a call.
func (l *timeline) endCall(s *api.Span, at *belay.Message, r *belay.ResultPart, only bool) {
	s.Seq, s.End, s.Outcome, s.Class = at.Seq, at.Time, "ok", string(r.Class)
	switch r.Class {
	case belay.ClassDenied:
		s.Outcome, s.End = "denied", s.Begin
		return
	case belay.ClassNotFound, belay.ClassScope, belay.ClassInvalid: // the tool never ran
		s.Outcome, s.End = "failed", s.Begin
		return
	default:
		if r.IsError {
			s.Outcome = "failed"
		}
	}
	for j := range l.runs {
		if run := &l.runs[j]; only && run.Phase == belay.ToolPost.Name() && run.Scope.Step == s.Step && run.Started.Before(s.End) && !run.Started.Before(s.Begin) {
			s.End = run.Started
		}
	}
	if s.End.Before(s.Begin) {
		s.End = s.Begin
	}
}

// durableChild returns the session of a subagent that keeps its session, as the input of a call
// names it. Other subagents are found by the ids of their sessions.
func durableChild(parent string, c *belay.CallPart) string {
	var in struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil || in.Name == "" {
		return ""
	}
	return parent + "/" + in.Name
}

// addHooks adds the hook runs.
func (l *timeline) addHooks() {
	for i := range l.runs {
		r := &l.runs[i]
		s := api.Span{
			Kind: api.SpanHook, Name: cmp.Or(r.Subscription, r.JobHandler), Begin: r.Started, End: r.Ended, Step: r.Scope.Step, Outcome: OutcomeOf(r), Code: r.Class,
			Phase: r.Phase, Dispatch: r.Dispatch, Run: r.ID, State: r.State.String(), Shadow: r.Shadow,
		}
		for _, d := range r.Contributed {
			s.Contributed = append(s.Contributed, d.Kind)
		}
		l.add(s)
	}
}

// OutcomeOf returns the outcome of a hook run as one word.
func OutcomeOf(r *hook.Run) string {
	switch {
	case !r.State.Final():
		return "running"
	case IsFailure(r.State):
		return "failed"
	case r.Severity >= hook.SeverityDeny:
		return "denied"
	case r.Severity == hook.SeverityAsk:
		return "asked"
	default:
		return "ok"
	}
}

// IsFailure reports whether a run in this state has failed.
func IsFailure(s hook.State) bool {
	return s == hook.Failed || s == hook.TimedOut || s == hook.Interrupted
}

// addApprovals adds the times in which calls waited for a person.
func (l *timeline) addApprovals(now time.Time) {
	for i := range l.approvals {
		a := &l.approvals[i]
		s := api.Span{Kind: api.SpanApproval, Name: a.Tool, Begin: a.Asked, Call: a.Call, Approval: a.ID, By: a.By, Outcome: "waiting"}
		switch d := a.Decided; {
		case d != nil && d.Allow:
			s.End, s.By, s.Outcome = d.Time, d.By, "ok"
		case d != nil:
			s.End, s.By, s.Outcome = d.Time, d.By, "denied"
		case IsExpired(a, now):
			s.End, s.Outcome = a.Expires, "failed"
		}
		l.add(s)
	}
}

// addSubagents adds the sessions of subagents that calls of the turn have started.
func (l *timeline) addSubagents(ctx context.Context, store belay.ListStore) error {
	children := make(map[string]belay.SessionInfo)
	for info, err := range store.Sessions(ctx, belay.SessionFilter{Prefix: l.info.ID + "/" + l.out.Turn.ID + "."}) {
		if err != nil {
			return err
		}
		children[info.ID] = info
	}
	for i := range l.out.Spans {
		s := &l.out.Spans[i]
		if s.Session == "" {
			continue
		}
		info, found, err := FindSession(ctx, store, s.Session)
		if err != nil {
			return err
		}
		if !found {
			s.Session = ""
			continue
		}
		children[info.ID] = info
	}
	for _, info := range children {
		s := api.Span{Kind: api.SpanSubagent, Name: info.State.Agent, Begin: info.Created, End: info.Changed, Session: info.ID, Outcome: "ok"}
		switch state := StateOf(info); {
		case state == "running":
			s.Outcome, s.End = "running", time.Time{}
		case info.State.Turn != nil:
			s.Outcome, s.End = "waiting", time.Time{}
		case state != "done" && state != "new":
			s.Outcome = "failed"
		}
		if s.Begin.Before(l.out.Turn.Begin) { // a durable subagent worked in earlier turns too
			s.Begin, s.Estimated = l.out.Turn.Begin, true
		}
		l.add(s)
	}
	return nil
}
