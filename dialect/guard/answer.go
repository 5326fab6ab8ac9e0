package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// Request is one call of Belay as a hook.
type Request struct {
	// Agent is the agent that calls.
	Agent dialect.Vendor
	// Event is the name of the event, for agents that do not write it. It may be empty.
	Event string
	// Stdin is what the agent wrote.
	Stdin []byte
	// Dir is the project's directory.
	Dir string
}

// Output is what the process must print, and its exit code.
type Output struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Code   int    `json:"code,omitempty"`
}

// answer is Belay's answer to an event.
type answer struct {
	// decision is pass, ask, deny or halt. At turn.stop, deny means that the turn must
	// continue.
	decision belay.ToolDecision
	reason   string
	// input replaces the input of the vendor's call.
	input json.RawMessage
	// result replaces the result of a call.
	result *string
	// context is text for the model.
	context []string
	// lost says what the dialect could not express and nothing safer replaces.
	lost string
}

// speaker is the dialect of one agent.
type speaker struct {
	// read reads an event.
	read func(f fields, name, project string) (*event, error)
	// write writes an answer. It gets only answers that the event can express.
	write func(e *event, a answer) Output
	// refuse writes a denial for an event that could not be read. name may be empty.
	refuse func(name, reason string) Output
}

// speakers has the dialects.
var speakers = map[dialect.Vendor]speaker{
	dialect.ClaudeCode: {readClaude, writeClaude, refuseWithExitCode},
	dialect.Codex:      {readCodex, writeCodex, refuseWithExitCode},
	dialect.GeminiCLI:  {readGemini, writeGemini, refuseWithExitCode},
	dialect.Cursor:     {readCursor, writeCursor, refuseWithExitCode},
	dialect.Copilot:    {readCopilot, writeCopilot, refuseCopilot},
}

// Answer reads an event, asks the engine, and returns what the process must print. If the
// engine is nil, the answer denies, with why as the reason.
func Answer(ctx context.Context, engine *Engine, r Request) Output {
	return answerWith(r, func(e *event) (answer, error) { return engine.handle(ctx, e) })
}

// Refuse returns the output for an event that cannot be checked, for example because the
// settings have a mistake. Gates deny.
func Refuse(r Request, why error) Output {
	return answerWith(r, func(*event) (answer, error) { return answer{}, why })
}

func answerWith(r Request, handle func(*event) (answer, error)) (out Output) {
	s, ok := speakers[r.Agent]
	if !ok {
		return refuseWithExitCode("", fmt.Sprintf("Belay does not know the agent %q", r.Agent))
	}
	defer func() {
		if sudden := recover(); sudden != nil {
			out = s.refuse(r.Event, fmt.Sprintf("Belay could not check this: panic: %v", sudden))
		}
	}()
	e, err := readEvent(s, r)
	if err != nil {
		return s.refuse(r.Event, "Belay could not check this: "+err.Error())
	}
	if e.phase == "" {
		return s.write(e, answer{})
	}
	a, err := handle(e)
	if err != nil {
		return s.write(e, e.failure(err))
	}
	return s.write(e, e.fit(a))
}

func readEvent(s speaker, r Request) (*event, error) {
	f, err := readFields(r.Stdin)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(r.Event, f.text("hook_event_name"))
	if name == "" {
		return nil, errors.New("the event has no name")
	}
	e, err := s.read(f, name, r.Dir)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", name, err)
	}
	e.agent, e.name = r.Agent, name
	return e, nil
}

// failure returns the answer for an event that could not be checked. Gates deny. A turn may
// end, because nothing happens after that.
func (e *event) failure(err error) answer {
	why := "Belay could not check this: " + err.Error()
	if e.gate() {
		return answer{decision: belay.ToolDeny, reason: why}
	}
	return answer{lost: why}
}

// fit returns an answer that the event can express. It replaces what cannot be expressed by
// something safer.
func (e *event) fit(a answer) answer {
	title := e.agent.Title()
	deny := func(why string) {
		if a.decision == belay.ToolDeny || a.decision == belay.ToolHalt {
			return
		}
		if e.can.deny {
			a.decision, a.reason = belay.ToolDeny, why
		} else {
			a.lost = why
		}
	}
	if a.decision == belay.ToolAsk && !e.can.ask {
		deny(a.reason)
	}
	if a.input != nil && !e.can.input {
		a.input = nil
		deny(title + " cannot change the input of this call, and a hook wants to change it")
	}
	if a.result != nil && !e.can.result {
		a.result = nil
		why := title + " cannot change this result, and a hook wants to change it"
		if e.can.halt {
			a.decision, a.reason = belay.ToolHalt, why
		} else {
			a.lost = why
		}
	}
	if a.decision == belay.ToolHalt && !e.can.halt {
		a.decision = belay.ToolPass
		deny(cmp.Or(a.reason, "Belay ends the turn"))
	}
	if a.decision == belay.ToolDeny && !e.can.deny {
		a.lost = cmp.Or(a.lost, title+" cannot deny here: "+a.reason)
		a.decision = belay.ToolPass
	}
	if a.decision != belay.ToolPass {
		a.reason = cmp.Or(strings.TrimSpace(a.reason), "Belay gives no reason")
		if a.decision != belay.ToolAsk {
			a.input = nil
		}
	}
	if !e.can.context {
		a.context = nil
	}
	return a
}

// refuseWithExitCode refuses with exit code 2 and the reason on standard error. The events
// that can block obey it, and the others show the reason.
func refuseWithExitCode(_, reason string) Output {
	return Output{Stderr: []byte(oneParagraph(reason) + "\n"), Code: 2}
}

// oneParagraph returns a text without empty lines.
func oneParagraph(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "\n")
}

// printed returns the output with a JSON object, and with what was lost on standard error.
func printed(value any, a answer) Output {
	data, err := json.Marshal(value)
	if err != nil {
		return refuseWithExitCode("", "Belay could not write its answer: "+err.Error())
	}
	out := silent(a)
	data = append(data, '\n')
	out.Stdout = data
	return out
}

// silent returns the output without an answer.
func silent(a answer) Output {
	if a.lost == "" {
		return Output{}
	}
	return Output{Stderr: []byte("belay: " + oneParagraph(a.lost) + "\n")}
}

// joined returns the context as one text.
func (a answer) joined() string { return strings.Join(a.context, "\n\n") }

// blocks reports whether the answer denies. At turn.stop it then makes the turn continue.
func (a answer) blocks() bool {
	return a.decision == belay.ToolDeny || a.decision == belay.ToolHalt
}
