// Command retrieval is an agent whose subagent searches its memories. The agent itself has
// no memory tools, so its context stays small. The subagent uses a small model, and answers
// with the relevant facts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

func main() {
	dir, err := os.MkdirTemp("", "belay-retrieval-")
	if err == nil {
		err = errors.Join(run(context.Background(), dir), os.RemoveAll(dir))
	}
	if err != nil {
		panic(err)
	}
}

func run(ctx context.Context, dir string) (err error) {
	memories, err := memory.Open(ctx, filepath.Join(dir, "memory.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memories.Close()) }()
	if _, err := memories.Add(ctx,
		memory.Draft{Text: "Ann is allergic to nuts.", Tags: []string{"food", "health"}},
		memory.Draft{Text: "Ann's favourite restaurant is Da Enzo."},
		memory.Draft{Text: "Ann's printer is in the attic."},
	); err != nil {
		return err
	}
	small := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: memory.SearchTool, Input: `{"query": "food allergic restaurant"}`}}},
		{Text: "Ann is allergic to nuts, and likes the restaurant Da Enzo."},
		{Calls: []scripted.Call{{Tool: memory.RememberTool, Input: `{"text": "Ann dines at eight."}`}}},
		{Text: "That may not be kept."},
	}, nil)
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "archivist", "prompt": "What matters for a dinner with Ann?"}`}}},
		{Text: "I would book Da Enzo, and tell them about the nuts."},
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "archivist", "prompt": "Remember that Ann dines at eight."}`}}},
		{Text: "As you wish, I have not kept it."},
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "archivist", "prompt": "Where is the printer?"}`}}},
		{Text: "Then I do not know."},
	}, nil)

	// docs:begin retrieval
	remembers, err := memory.New(memories, &memory.Options{Subagent: "archivist", Recall: 1})
	if err != nil {
		return err
	}
	subagents, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{
		Name: "archivist", Description: "Keeps notes about the user from earlier conversations. Ask it in a sentence.",
		Factory: subagent.Agent(small, &belay.Options{
			Instructions: "You look things up in notes, and answer with what matters and no more.",
			Tools:        remembers.SubagentTools(),
		}),
	}}})
	if err != nil {
		return err
	}
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{remembers, subagents}})
	// docs:end retrieval
	if err != nil {
		return err
	}
	for _, text := range []string{
		"Plan a dinner for me.",
		"I dine at eight, but do not remember that.",
		"Without your memory and without remembering this: where is the printer?",
	} {
		fmt.Println(">", text)
		for event, err := range agent.Session("dinner").Run(ctx, text) {
			switch {
			case err != nil:
				return err
			case event.Result != nil && event.Depth > 0:
				fmt.Println(strings.TrimRight(fmt.Sprint("  archivist: ", event.Call.Tool, " ", event.Result.Class), " "))
			case event.Result != nil:
				fmt.Println("  " + event.Result.Text)
			case event.End != nil && event.Depth == 0:
				fmt.Println(event.End.Text)
			}
		}
	}
	return agent.Close(ctx)
}
