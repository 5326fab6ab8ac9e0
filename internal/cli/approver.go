package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/visible"
)

// approver asks the person at the terminal, one question at a time.
type approver struct {
	p      *printer
	advise func(context.Context, belay.Question) chat.Advice // describes the call
}

var _ belay.Approver = approver{}

// mostShown is how many lines of an input Belay prints with an approval question.
const mostShown = 40

// Approve prints what the call would do and waits for the user's answer.
func (v approver) Approve(ctx context.Context, q belay.Question) (d belay.Decision, err error) {
	advice := v.advise(ctx, q)
	v.p.asking(func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			return
		}
		a := v.p.a
		s := a.onErr
		tool := q.Tool
		if q.Depth > 0 {
			tool = q.Agent + "'s " + tool
		}
		a.remarkf("\n%s %s needs your approval: %s", s.bold(s.yellow("?")), s.bold(oneLine(tool)), oneLine(q.Reason))
		a.remarkf("  %s", s.dim(askedBy(q, &advice)))
		lines := proposedLines(s, &q, &advice)
		for _, line := range clipped(lines, mostShown, s.dim) {
			a.remarkf("    %s", line)
		}
		a.forgetTyped()
		if len(lines) <= mostShown {
			lines = nil
		}
		d, err = v.answer(ctx, &q, &advice, lines)
	})
	return d, err
}

// proposedLines returns what a call would do: the change of the file as it is now, the command and
// what it really runs, or the whole input.
func proposedLines(s style, q *belay.Question, advice *chat.Advice) []string {
	if chat.IsPlan(q) {
		var lines []string
		for _, l := range chat.Proposal(q, advice, nil) {
			lines = append(lines, l.Text)
		}
		return lines
	}
	lines := inputLines(s, q.Input)
	changes := advice.Change != nil && advice.Change.Diff != "" && !advice.Change.Cut
	if changes {
		lines = []string{s.bold(visible.All(advice.Change.Path) + " (" + advice.Change.Action + ")")}
	}
	for _, l := range chat.Proposal(q, advice, nil) {
		switch {
		case l.Mark == '!' && !changes:
			lines = append(lines, s.yellow("! "+l.Text))
		case !changes: // inputLines has shown it
		case l.Mark == '+':
			lines = append(lines, s.green("+ "+l.Text))
		case l.Mark == '-':
			lines = append(lines, s.red("- "+l.Text))
		default:
			lines = append(lines, s.dim(string(l.Mark)+" "+l.Text))
		}
	}
	return lines
}

// askedBy returns who asks, what the call affects and how the command would run.
func askedBy(q belay.Question, advice *chat.Advice) string {
	parts := []string{"asked by " + oneLine(q.By), advice.Reach}
	if advice.Run != "" {
		parts = append(parts, "would run "+advice.Run)
	}
	return strings.Join(parts, " · ")
}

// answer reads the user's answer. If lines is not nil, the user can choose to see all of
// them.
func (v approver) answer(ctx context.Context, q *belay.Question, advice *chat.Advice, lines []string) (belay.Decision, error) {
	a := v.p.a
	choice, session := "[y] once, [s] for this session, ", !chat.IsPlan(q)
	if !session {
		choice = "[y] approve and begin, "
	}
	if advice.Pattern != "" {
		choice += fmt.Sprintf("[p] all like %s, ", oneLine(advice.Pattern))
	}
	if lines != nil {
		choice += fmt.Sprintf("[v] see all %d lines, ", len(lines))
	}
	a.write(a.err, fmt.Sprintf("  allow? %s ", a.onErr.dim(choice+"[n] no, or type a reason to deny:")))
	d := belay.Decision{By: who()}
	line, ok, err := v.line(ctx)
	if err != nil || !ok {
		d.Reason = "no answer"
		return d, err
	}
	switch word := strings.ToLower(line); {
	case word == "y" || word == "yes":
		d.Allow = true
	case word == "s" && session:
		d.Allow, d.Scope.Kind = true, belay.ScopeSession
	case word == "p" && advice.Pattern != "":
		return v.pattern(ctx, d, advice)
	case word == "v" && lines != nil:
		for _, line := range lines {
			a.remarkf("    %s", line)
		}
		return v.answer(ctx, q, advice, nil)
	case word == "" || word == "n" || word == "no" || word == "p" || word == "v":
		d.Reason = "the user denied the call"
	default:
		d.Reason = line
	}
	return d, nil
}

// pattern asks for a pattern until the user gives a valid one, or the input ends.
func (v approver) pattern(ctx context.Context, d belay.Decision, advice *chat.Advice) (belay.Decision, error) {
	a := v.p.a
	for {
		a.write(a.err, fmt.Sprintf("  pattern? %s ", a.onErr.dim("[enter] "+oneLine(advice.Pattern)+", or another pattern:")))
		line, ok, err := v.line(ctx)
		if err != nil || !ok {
			d.Reason = "no answer"
			return d, err
		}
		if line == "" {
			line = advice.Pattern
		}
		if err := advice.Check(line); err != nil {
			a.remarkf("  %s", a.onErr.yellow(oneLine(err.Error())))
			continue
		}
		d.Allow, d.Scope = true, belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: line}
		return d, nil
	}
}

// line reads a line from the user. ok is false if the input ended without a line, for
// example after Ctrl-D.
func (v approver) line(ctx context.Context) (line string, ok bool, err error) {
	line, err = v.p.a.readLine(ctx)
	if line == "" && errors.Is(err, io.EOF) {
		v.p.a.remarkf("")
		return "", false, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		v.p.a.remarkf("")
		return "", false, fmt.Errorf("no answer: %w", err)
	}
	return strings.TrimSpace(line), true, nil
}

// lateApprover lets the caller set the approver and the asker after the agent exists.
type lateApprover struct {
	belay.Approver

	asker belay.Asker
}

// Ask asks the person a question of a tool that is running.
func (l *lateApprover) Ask(ctx context.Context, in belay.Inquiry) (string, error) {
	if l.asker == nil {
		return "", belay.ErrNobody
	}
	return l.asker.Ask(ctx, in)
}
