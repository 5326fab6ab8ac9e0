package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/scripted"
)

type place struct {
	Zone string `json:"zone,omitempty" default:"UTC" jsonschema:"a time zone, such as Europe/Berlin"`
}

var clock = belay.NewTool("clock", "Returns the time at a place.", func(_ context.Context, in place) (string, error) {
	zone, err := time.LoadLocation(in.Zone)
	if err != nil {
		return "", fmt.Errorf("read the time zone: %w", err) // the model gets this error
	}
	return time.Now().In(zone).Format("15:04"), nil
}, nil)

// model returns a real model if there is a key, and a scripted one otherwise.
func model() belay.Model { //nolint:ireturn // it is one of two
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		return anthropic.New("claude-sonnet-4-5", nil)
	}
	return scripted.New([]scripted.Step{{Compute: lookAtTheClock}}, &scripted.Options{
		Repeat: true, Pace: scripted.Pace{Pause: 50 * time.Millisecond},
	})
}

// lookAtTheClock is the scripted model: it calls the tool, and then says what the tool returned.
func lookAtTheClock(_ context.Context, req *belay.Request) (scripted.Step, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Kind == belay.KindResults {
		return scripted.Step{Text: "In Berlin it is " + last.Parts[0].Result.Text + "."}, nil
	}
	return scripted.Step{
		Text:  fmt.Sprintf("You said %q. Let me look at the clock.", last.Text()),
		Calls: []scripted.Call{{Tool: "clock", Input: `{"zone": "Europe/Berlin"}`}},
	}, nil
}
