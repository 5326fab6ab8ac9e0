package main

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// docs:begin hours

// Hours allows tools only at some hours of the day: from the beginning of From to the
// beginning of To, which can be on the next day.
type Hours struct {
	Tools    []string
	From, To time.Duration  // since midnight
	In       *time.Location // the time zone
	Now      func() time.Time
}

var (
	_ belay.HookExtension   = Hours{}
	_ belay.PromptExtension = Hours{}
)

// Name returns the name for errors.
func (Hours) Name() string { return "hours" }

// Prompt tells the model in advance, which saves a failed call.
func (h Hours) Prompt(belay.AgentConfig) (fragment, resources string) {
	return fmt.Sprintf("%v can be called from %s to %s.", h.Tools, clock(h.From), clock(h.To)), ""
}

// Hooks returns a gate for those tools.
func (h Hours) Hooks() []hook.Subscription {
	return []hook.Subscription{belay.ToolPre.On("hours", h.gate, &hook.Options{Match: hook.Match{Tools: h.Tools}})}
}

func (h Hours) gate(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	now := h.Now().In(h.In)
	at := time.Duration(now.Hour())*time.Hour + time.Duration(now.Minute())*time.Minute + time.Duration(now.Second())*time.Second
	open := at >= h.From && at < h.To
	if h.To < h.From { // over midnight
		open = at >= h.From || at < h.To
	}
	if open {
		return belay.Pass, nil
	}
	return belay.Deny(fmt.Sprintf("%s can be called from %s to %s, and it is %s", call.Tool(), clock(h.From), clock(h.To), clock(at))), nil
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

// docs:end hours
