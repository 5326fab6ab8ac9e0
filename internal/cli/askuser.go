package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
	"github.com/spf13/cobra"
)

// terminalAsker asks the person at the terminal, one question at a time.
type terminalAsker struct{ p *printer }

var _ belay.Asker = terminalAsker{}

// Ask prints the question and reads one line. It returns "" if the line is empty or the
// user types Ctrl-D.
func (v terminalAsker) Ask(ctx context.Context, in belay.Inquiry) (answer string, err error) {
	v.p.asking(func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			return
		}
		a, who := v.p.a, "the agent"
		if in.Depth > 0 {
			who = oneLine(in.Agent)
		}
		first, rest, _ := strings.Cut(visible.All(in.Text), "\n")
		a.remarkf("\n%s %s asks: %s", a.onErr.bold(a.onErr.yellow("?")), a.onErr.bold(who), first)
		for line := range strings.Lines(rest) {
			a.remarkf("  %s", strings.TrimSuffix(line, "\n"))
		}
		a.forgetTyped()
		a.write(a.err, "  "+a.onErr.dim("your answer (press Enter for no answer):")+" ")
		answer, _, err = approver{p: v.p}.line(ctx)
	})
	return answer, err
}

func (a *app) approvalsAnswer() *cobra.Command {
	return &cobra.Command{
		Use:   "answer APPROVAL TEXT...",
		Short: "Answer a question of the model",
		Long: `Answers a question that the model asked with the tool ask_user. TEXT is free text, or one of the question's options: its
text or its number. Several words are one answer. Then "belay resume" continues the turn. A worker continues a turn that was submitted.

"belay approvals show" prints the question, and "belay approvals deny" refuses to answer.`,
		Example: `  belay approvals answer ap-2k "on Thursday, not before noon"
  belay approvals answer ap-2k on Thursday
  belay approvals answer ap-2k 1`,
		Args:              arguments(2, 1000, "name the APPROVAL, and give the answer: `belay approvals list` lists the open questions"),
		ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.records(cmd.Context(), func(r records) error {
				return a.answer(cmd.Context(), r, args[0], strings.Join(args[1:], " "))
			})
		},
	}
}

// answer stores the user's answer to a question of the model.
func (a *app) answer(ctx context.Context, r records, word, said string) error {
	approval, err := findApproval(ctx, r, word)
	if err != nil {
		return err
	}
	return a.decideOn(ctx, r, &approval, api.DecideApproval{Allow: true, Answer: &said})
}

// wantsAnswer returns the error for a user who approves a question instead of answering it.
func wantsAnswer(approval *belay.Approval) error {
	return usage("approval %s is a question, which needs an answer: belay approvals answer %s TEXT", approval.ID, approval.ID)
}

// settledAs returns "answered", "allowed" or "refused".
func settledAs(approval *belay.Approval, allow bool) string {
	if allow && toolbox.IsQuestion(approval) {
		return "answered"
	}
	return decidedAs(allow)
}

// toDecide returns the commands with which a user decides the approvals of a turn. It names
// the first pending call and the first pending question.
func (a *app) toDecide(waits []belay.Question) []string {
	inWords := func(q belay.Question) bool { _, ok := toolbox.ReadQuestion(q); return ok }
	var lines []string
	if i := slices.IndexFunc(waits, func(q belay.Question) bool { return !inWords(q) }); i >= 0 {
		id := waits[i].ID
		lines = append(lines, "decide:  belay approvals approve "+id+a.serverFlag(), "    or:  belay approvals deny "+id+a.serverFlag()+` --reason "why not"`)
	}
	if i := slices.IndexFunc(waits, inWords); i >= 0 {
		lines = append(lines, "answer:  belay approvals answer "+waits[i].ID+a.serverFlag()+" TEXT")
	}
	return lines
}
