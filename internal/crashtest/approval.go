package crashtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// part is the role of one process in a story about approvals. Each story has several
// processes: one asks for approval and is killed, others decide, and others resume the
// turn.
type part struct {
	// Role is ask, decide or resume.
	Role string `json:"role"`
	// Calls is the number of calls that each step of the model makes. All are calls of the
	// tool act.
	Calls []int `json:"calls,omitempty"`
	// OnAsk and Expiry are options of the agent.
	OnAsk  belay.AskMode `json:"on_ask,omitempty"`
	Expiry time.Duration `json:"expiry,omitempty"`
	// Decisions are made in order, after the parent gives the signal.
	Decisions []belay.Decision `json:"decisions,omitempty"`
	// Kill is the point at which the process kills itself, as in a power failure.
	Kill string `json:"kill,omitempty"`
}

// ruling is the result of a decision.
type ruling struct {
	Approval string `json:"approval"`
	Error    string `json:"error,omitempty"`
	// By is the person who made the stored decision.
	By string `json:"by,omitempty"`
}

// refusals maps the names of errors in ruling.Error to the errors.
var refusals = map[string]error{
	"decided": belay.ErrDecided, "wrong hash": belay.ErrWrongHash, "expired": belay.ErrExpired, "not found": belay.ErrNotFound, "scope": belay.ErrScope,
}

// play performs a part.
func play(ctx context.Context, open Open, dir, role string) error {
	var p part
	if err := json.Unmarshal([]byte(role), &p); err != nil {
		return fmt.Errorf("part: %w", err)
	}
	opened, err := open(ctx, dir)
	if err != nil {
		return err
	}
	if p.Role == "decide" {
		return errors.Join(p.decide(ctx, opened), opened.Close())
	}
	wire := &tripwire{kill: p.Kill, seen: make(map[string]int)}
	agent, err := p.cast(dir, &store{opened, wire}, wire)
	if err != nil {
		return err
	}
	session := agent.Session(session)
	stream := session.Resume(ctx)
	if p.Role == "ask" {
		stream = session.Run(ctx, "Act.")
	}
	turn, err := belay.Await(stream)
	if err != nil {
		return fmt.Errorf("the turn: %w", err)
	}
	for i := range turn.Waits {
		if turn.Waits[i].Wait != "" {
			continue // the tool has parked this call, so nobody is asked
		}
		say(line{Asked: &turn.Waits[i].Approval})
	}
	say(line{End: turn.Reason})
	if p.Role == "ask" {
		<-ctx.Done() // wait until the process is killed
		return context.Cause(ctx)
	}
	return errors.Join(agent.Close(ctx), opened.Close())
}

// decide makes the decisions after the parent gives the signal.
func (p part) decide(ctx context.Context, s belay.Store) error {
	say(line{Ready: true})
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("no signal from the parent: %w", err)
	}
	for _, d := range p.Decisions {
		approval, err := s.Decide(ctx, d)
		told := &ruling{Approval: d.Approval}
		if approval.Decided != nil {
			told.By = approval.Decided.By
		}
		for name, is := range refusals {
			if errors.Is(err, is) {
				told.Error = name
			}
		}
		if err != nil && told.Error == "" {
			return fmt.Errorf("decide: %w", err)
		}
		say(line{Decided: told})
	}
	return nil
}

// cast makes the agent of the story. Every call of its only tool needs approval.
func (p part) cast(dir string, s belay.Store, wire *tripwire) (*belay.Agent, error) {
	var says model
	for step, calls := range p.Calls {
		var answer belay.Response
		answer.StopReason = belay.StopToolUse
		for i := range calls {
			answer.Parts = append(answer.Parts, callOf("act", fmt.Sprintf("%d-%d", step, i)))
		}
		says = append(says, answer)
	}
	says = append(says, belay.Response{Parts: []belay.Part{belay.Text("All done.")}, StopReason: belay.StopEnd})
	opts := &belay.Options{
		Store: s, OnAsk: p.OnAsk, ApprovalExpiry: p.Expiry,
		Tools: []belay.Tool{belay.NewRawTool(belay.ToolDeclaration{Name: "act", Description: "does something in the world"},
			func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				wire.pass("before act")
				if err := effect(dir, call.ID); err != nil {
					return belay.Result{}, err
				}
				wire.pass("after act")
				return belay.Result{Text: call.ID + " is done"}, nil
			}, nil)},
		Hooks: []hook.Subscription{belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.Ask("it acts"), nil
		}, nil)},
	}
	if p.OnAsk == belay.AskWait {
		opts.Approver = silent{}
	}
	return belay.New(says, opts)
}

// silent is a person who is asked and never answers.
type silent struct{}

// Approve sends the question to the parent and waits for the end of its context.
func (silent) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	say(line{Asked: &q.Approval})
	<-ctx.Done()
	return belay.Decision{}, context.Cause(ctx)
}
