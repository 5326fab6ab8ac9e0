package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/belay-run/belay"
)

// approver asks the person at the terminal, one question at a time.
type approver struct{ p *printer }

var _ belay.Approver = approver{}

// mostShown is how many lines of an input are shown to whoever decides.
const mostShown = 40

// Approve shows what the call would do and waits for a yes, a no, or a reason.
func (v approver) Approve(ctx context.Context, q belay.Question) (d belay.Decision, err error) {
	v.p.asking(func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			return
		}
		a := v.p.a
		s := a.onErr
		a.remarkf("\n%s %s wants a word: %s", s.bold(s.yellow("?")), s.bold(oneLine(q.Tool)), oneLine(q.Reason))
		for _, line := range clipped(inputLines(s, q.Input), mostShown, s.dim) {
			a.remarkf("    %s", line)
		}
		a.forgetTyped()
		a.write(a.err, fmt.Sprintf("  allow? %s ", s.dim("[y] yes, [n] no, or say why not:")))
		d, err = v.answer(ctx)
	})
	return d, err
}

func (v approver) answer(ctx context.Context) (belay.Decision, error) {
	line, err := v.p.a.readLine(ctx)
	if line == "" && errors.Is(err, io.EOF) { // Ctrl-D
		v.p.a.remarkf("")
		return belay.Decision{By: who(), Reason: "no answer"}, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		v.p.a.remarkf("")
		return belay.Decision{}, fmt.Errorf("no answer: %w", err)
	}
	d := belay.Decision{By: who()}
	switch word := strings.TrimSpace(line); strings.ToLower(word) {
	case "y", "yes":
		d.Allow = true
	case "", "n", "no":
		d.Reason = "the user said no"
	default:
		d.Reason = word
	}
	return d, nil
}

// lateApprover is an approver that is known only when the agent is made.
type lateApprover struct{ belay.Approver }
