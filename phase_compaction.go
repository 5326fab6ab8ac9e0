package belay

import (
	"strconv"

	"github.com/belay-run/belay/hook"
)

// CompactionAhead is the input of turn.pre_compaction.
type CompactionAhead struct{ input[compactionAhead] }

type compactionAhead struct {
	Trigger  string `json:"trigger" jsonschema:"window, forced or too_long"`
	Messages int    `json:"messages" jsonschema:"how many messages the context has"`
	Tokens   int    `json:"tokens" jsonschema:"how many tokens the context has, as an estimate"`
	Window   int    `json:"window" jsonschema:"the model's window, in tokens"`
	soFar
}

// part distinguishes the compactions of one step by their trigger and number of
// tokens.
func (c *compactionAhead) part() string { return c.Trigger + ":" + strconv.Itoa(c.Tokens) }

// Trigger is window, forced or too_long.
func (c CompactionAhead) Trigger() string { return c.data().Trigger }

// Messages is how many messages the context has.
func (c CompactionAhead) Messages() int { return c.data().Messages }

// Tokens is how many tokens the context has, as an estimate.
func (c CompactionAhead) Tokens() int { return c.data().Tokens }

// Window is the model's window, in tokens.
func (c CompactionAhead) Window() int { return c.data().Window }

// CompactionAdvice is the answer at turn.pre_compaction.
type CompactionAdvice struct {
	// Instructions say what the summary must keep.
	Instructions []Reminder `json:"instructions,omitempty" jsonschema:"what the summary must keep"`
	Aside
}

// Answer returns the advice in the form that the hook runtime uses.
func (a CompactionAdvice) Answer() *hook.Answer {
	var parts []hook.Part
	for _, i := range a.Instructions {
		parts = append(parts, hook.Part{Kind: "instruction", Needs: hook.CanAddContext, Content: i.Text})
	}
	return answer(hook.SeverityPass, parts, a.Note, a.Context...)
}

func mergeCompaction(m *hook.Merging, merged, a CompactionAdvice) CompactionAdvice {
	for _, i := range a.Instructions {
		i.From = m.From
		merged.Instructions = append(merged.Instructions, i)
	}
	merged.Aside = mergeAside(m, merged.Aside, a.Aside)
	return merged
}

// CompactionDone is the input of turn.post_compaction.
type CompactionDone struct{ input[compactionDone] }

type compactionDone struct {
	Trigger string `json:"trigger" jsonschema:"window, forced or too_long"`
	Before  int    `json:"before" jsonschema:"tokens before"`
	After   int    `json:"after" jsonschema:"tokens after"`
	Failed  bool   `json:"failed,omitempty" jsonschema:"whether it failed, in which case nothing changed"`
	soFar
}

func (c *compactionDone) part() string { return c.Trigger + ":" + strconv.Itoa(c.Before) }

// Trigger is window, forced or too_long.
func (c CompactionDone) Trigger() string { return c.data().Trigger }

// Before is how many tokens the context had before the compaction, as an estimate.
func (c CompactionDone) Before() int { return c.data().Before }

// After is how many tokens the context has now, as an estimate: the summary and the
// messages that the compaction kept.
func (c CompactionDone) After() int { return c.data().After }

// Failed reports whether the compaction failed. Then nothing has changed.
func (c CompactionDone) Failed() bool { return c.data().Failed }
