package belay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const summaryInstructions = "Summarize this conversation so that the work can continue without it. Keep: what the user wants, in their own words where these matter; " +
	"what was decided and why; what was done, with names of files, commands and values; what is open, and the next step. Leave out what no longer matters. " +
	"Answer with the summary alone and call no tools."

// compactIfFull summarizes the context when it is larger than Compaction.Share of the
// model's window. If the compaction fails, the turn usually continues with the full context:
// see ignoreFailedCompaction.
func (t *turn) compactIfFull() error {
	window, share := t.window(), t.agent.opts.Compaction.Share
	if window == 0 || share >= 1 || float64(t.size()) < share*float64(window) {
		return nil
	}
	if t.request.tooFull {
		return nil // an earlier compaction failed, and each attempt costs a request
	}
	err := t.compact("window")
	t.request.tooFull = err != nil
	return t.ignoreFailedCompaction(err)
}

// ignoreFailedCompaction returns nil if the turn can continue with the full context after a
// failed compaction. It returns the error if the turn was aborted, a hook failed closed or
// the store failed.
func (t *turn) ignoreFailedCompaction(err error) error {
	if err == nil || t.ctx.Err() != nil || hookClass(err) != "internal" {
		return err
	}
	if !t.session.held {
		return err // the store has failed: the turn cannot continue
	}
	t.agent.opts.Logger.WarnContext(t.ctx, "the context could not be summarized", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	return nil
}

func (t *turn) window() int {
	if w := t.agent.opts.Compaction.Window; w > 0 {
		return w
	}
	return t.model.info.Window
}

// size returns how many tokens the next request will have. It is the sum of the model's
// own count for the last request and response, and an estimate for later messages.
func (t *turn) size() int {
	since, summed := 0, int64(0)
	if first := t.session.messages; len(first) > 0 && first[0].IsCompaction {
		summed = first[0].Seq // usage of earlier responses includes the summarized messages
	}
	for _, m := range slices.Backward(t.session.messages) {
		if m.Usage != nil && m.Turn != "" && !m.IsCompaction && m.Seq > summed {
			return m.Usage.Tokens() + since
		}
		since += m.characters() / charactersPerToken
	}
	return since + len(t.request.system)/charactersPerToken
}

// charactersPerToken is a rough estimate, for text that no model has counted yet.
const charactersPerToken = 4

// characters returns the size of a message's text, counted in bytes.
func (m *Message) characters() int {
	n := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		n += len(p.Text)
		if p.Call != nil {
			n += len(p.Call.Input)
		}
		if p.Result != nil {
			n += len(p.Result.Text)
		}
	}
	return n
}

// compactNow summarizes the context because somebody asked for it. If there is nothing to
// summarize, it does nothing.
func (t *turn) compactNow() error {
	keep := t.keepFrom("forced")
	if !slices.ContainsFunc(t.session.messages, func(m *Message) bool { return !m.IsCompaction && (keep == 0 || m.Seq < keep) }) {
		return nil
	}
	return t.compact("forced")
}

// compact summarizes the context. The store keeps all messages, but the context now
// begins with the summary. If compact fails, the context does not change.
func (t *turn) compact(trigger string) error {
	before, count := t.size(), len(t.session.messages)
	if count == 0 {
		return errors.New("compaction: there is nothing to summarize")
	}
	instructions := []string{t.agent.opts.Compaction.Instructions}
	if TurnPreCompaction.Active(t.snap) {
		outcome, err := fire(t.ctx, t, TurnPreCompaction, CompactionAhead{newInput(t.scope, compactionAhead{
			Trigger: trigger, Messages: count, Tokens: before, Window: t.window(), soFar: t.soFar(),
		})})
		t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
		if err != nil {
			return err
		}
		for _, i := range outcome.Output.Instructions {
			instructions = append(instructions, i.Text)
		}
	}
	t.emit(Event{Kind: EventCompactionStart, Text: trigger})
	summary, err := t.summarize(trigger, strings.Join(instructions, "\n\n"))
	if err == nil {
		err = t.storeSummary(summary)
	}
	end := Event{Kind: EventCompactionEnd, Text: trigger, Message: summary}
	if err != nil {
		err = fmt.Errorf("compaction: %w", err)
		end.Message, end.Text = nil, err.Error()
	}
	t.emit(end)
	if TurnPostCompaction.Active(t.snap) {
		ctx, cancel := t.afterAbort()
		defer cancel()
		outcome, ferr := fire(ctx, t, TurnPostCompaction, CompactionDone{newInput(t.scope, compactionDone{
			Trigger: trigger, Before: before, After: t.size(), Failed: err != nil, soFar: t.soFar(),
		})})
		t.keepNote(outcome.Output, outcome.Diagnostics, ferr)
	}
	return err
}

// storeSummary stores a summary. From then on, the context begins with the summary.
func (t *turn) storeSummary(summary *Message) error {
	kept := slices.DeleteFunc(slices.Clone(t.session.messages), func(m *Message) bool {
		return summary.Keep == 0 || m.Seq < summary.Keep || m.IsCompaction
	})
	if err := t.commit([]*Message{summary}, nil, nil); err != nil {
		return err
	}
	t.session.messages = append([]*Message{summary}, kept...)
	return nil
}

// keepFrom returns the number of the first message that compaction keeps. Compaction
// usually keeps the messages that the model has not answered yet. 0 means that it keeps
// no message.
func (t *turn) keepFrom(trigger string) int64 {
	messages := t.session.messages
	from := len(messages)
	for from > 0 && messages[from-1].Role == RoleUser && !messages[from-1].IsCompaction {
		from--
	}
	if from > 0 && len(messages[from-1].Calls()) > 0 {
		from-- // a response with calls needs its results after it
	}
	if from == len(messages) {
		return 0
	}
	size := 0
	for _, m := range messages[from:] {
		size += m.characters() / charactersPerToken
	}
	if trigger == "too_long" && messages[from].Role == RoleAssistant && size > t.window()/2 && t.unanswered() == nil {
		return 0 // the results themselves are too long
	}
	return messages[from].Seq
}

// summarize asks the model for a summary of the conversation. It sends the conversation
// itself, because the provider has cached it. If the conversation is too long, or has calls
// without results, it sends a shortened text.
func (t *turn) summarize(trigger, instructions string) (*Message, error) {
	model := t.model
	if m := t.agent.opts.Compaction.Model; m != nil {
		model = named(m)
	}
	whole := trigger != "too_long" && t.unanswered() == nil
	var response *Response
	for attempt := 1; ; attempt++ {
		req := &exchange{Request: Request{System: t.request.system, Tools: t.request.tools.declared, MaxTokens: t.agent.opts.MaxTokens, Settings: t.agent.summarySettings()}}
		if whole {
			req.Messages = append(slices.Clip(t.session.messages), &Message{Role: RoleUser, Kind: KindUser, Parts: []Part{Text(instructions)}})
		} else {
			req.Tools = nil
			req.Messages = []*Message{{Role: RoleUser, Kind: KindUser, Parts: []Part{Text(t.transcriptText() + "\n\n" + instructions)}}}
		}
		var err error
		response, err = t.askSilently(model, req)
		if response != nil {
			t.countSummary(response.Usage)
		}
		if err == nil {
			break
		}
		failure, _ := errors.AsType[*ModelError](err)
		if whole && failure != nil && failure.Kind == ModelTooLong {
			whole = false
			continue
		}
		if err := t.waitToRetry(attempt, err); err != nil {
			next := model.next()
			if next == nil || failure == nil || t.ctx.Err() != nil {
				return nil, err
			}
			model, attempt = next, 0
		}
	}
	var texts []string
	for _, p := range response.Parts {
		if text := strings.TrimSpace(p.Text); p.Type == PartText && text != "" {
			texts = append(texts, validText(text))
		}
	}
	if len(texts) == 0 {
		return nil, errors.New("the model gave no summary")
	}
	keep := t.keepFrom(trigger)
	text := "Summary of the conversation so far:\n\n" + strings.Join(texts, "\n\n")
	if keep == 0 && !t.quiet && t.state.Text != "" {
		text += "\n\nThe user's current request, word for word:\n\n" + t.state.Text
	}
	return &Message{
		Role: RoleUser, Kind: KindCompaction, IsCompaction: true, Keep: keep, Parts: []Part{Text(text)},
		Model: model.info.Name, Usage: &response.Usage,
	}, nil
}

// countSummary counts the cost of a summary. Outside a turn, only the usage of the session
// grows.
func (t *turn) countSummary(u Usage) {
	t.spend(u)
	if t.quiet {
		t.session.addUsage(u)
	}
	t.write.clean = false
}

// askSilently sends a request to a model and emits no events.
func (t *turn) askSilently(model *namedModel, req *exchange) (*Response, error) {
	quiet := turn{agent: t.agent, session: t.session, scope: t.scope, ctx: t.ctx, base: t.base, outbox: turnOutbox{silent: true}}
	return quiet.stream(model, req)
}

// transcriptText returns the conversation as plain text that is short enough to summarize.
// It cuts the middle of long parts, and leaves out the oldest parts.
func (t *turn) transcriptText() string {
	room := 8000 // used if the window is unknown
	if window := t.window(); window > 0 {
		room = window * charactersPerToken / 2
	}
	most := min(2000, room/4)
	var lines []string
	for _, m := range slices.Backward(t.session.messages) {
		for i := range slices.Backward(m.Parts) {
			line := describe(m, &m.Parts[i], most)
			if line == "" {
				continue
			}
			if room -= len(line); room < 0 {
				lines = append(lines, "[earlier messages are left out]")
				slices.Reverse(lines)
				return strings.Join(lines, "\n\n")
			}
			lines = append(lines, line)
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n\n")
}

func describe(m *Message, p *Part, most int) string {
	switch {
	case p.Type == PartText:
		return fmt.Sprintf("%s: %s", m.Kind, middleCut(p.Text, most))
	case p.Call != nil:
		return fmt.Sprintf("call of %s: %s", p.Call.Tool, middleCut(string(p.Call.Input), most))
	case p.Result != nil:
		return fmt.Sprintf("result of %s: %s", p.Result.Tool, middleCut(p.Result.Text, most))
	case p.Media != nil:
		return fmt.Sprintf("%s: (%s)", m.Kind, p.Media.MIME)
	default:
		return ""
	}
}

func middleCut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	first, _ := firstCharacters(text, most/2)
	return first + " [...] " + lastCharacters(text, most/2)
}
