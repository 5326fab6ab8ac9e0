package toolbox

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// TodoTool is the name of the tool that [TodoList] adds.
const TodoTool = "todo_write"

// The values of Todo.Status.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoCompleted  = "completed"
	TodoCancelled  = "cancelled"
)

// Todo is an item of a to-do list.
//
//nolint:godox // it is the name of a type
type Todo struct {
	Content string `json:"content"`
	// Status is pending, in_progress, completed or cancelled.
	Status string `json:"status"`
}

// TodoView is the render data of todo_write: the whole list.
type TodoView struct {
	Kind  string `json:"kind"` // "todo"
	Todos []Todo `json:"todos"`
}

// TodoList returns an extension with the tool todo_write. With it, the model keeps a to-do
// list for work with several steps. The list is part of the transcript: [Todos] reads it.
func TodoList() belay.Extension { return todoList{} } //nolint:ireturn // its concrete type is private

type todoList struct{}

var (
	_ belay.ToolExtension   = todoList{}
	_ belay.PromptExtension = todoList{}
	_ belay.HookExtension   = todoList{}
)

// Name returns "todo". Errors use it.
func (todoList) Name() string { return "todo" }

// Tools returns todo_write. It changes nothing but the list.
func (todoList) Tools() []belay.Tool {
	return []belay.Tool{newTool(TodoTool,
		"Replaces the to-do list, which the user sees. Pass the whole list each time. Set an item to in_progress before you work on it, and to completed as soon as it is done.",
		`{"type": "object", "additionalProperties": false, "required": ["todos"], "properties": {
			"todos": {"type": "array", "maxItems": 100, "items": {"type": "object", "additionalProperties": false, "required": ["content", "status"], "properties": {
				"content": {"type": "string", "minLength": 1, "maxLength": 500, "description": "what to do, in a few words"},
				"status": {"type": "string", "enum": ["pending", "in_progress", "completed", "cancelled"]}}}}}}`,
		lookOnly, writeTodos)}
}

func writeTodos(_ context.Context, _ *belay.Invocation, in *TodoView) (belay.Result, error) {
	in.Kind = "todo"
	count := make(map[string]int)
	for _, t := range in.Todos {
		count[t.Status]++
	}
	var states []string
	for _, s := range []string{TodoInProgress, TodoPending, TodoCompleted, TodoCancelled} {
		if n := count[s]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, strings.ReplaceAll(s, "_", " ")))
		}
	}
	text := "The to-do list is empty now."
	if len(states) > 0 {
		text = "The to-do list was replaced: " + strings.Join(states, ", ") + "."
	}
	return answer(text, in)
}

// Prompt tells the model when to use the list.
func (todoList) Prompt(belay.AgentConfig) (fragment, resources string) {
	return "For work with three or more steps, keep a to-do list with " + TodoTool + ".", ""
}

// Hooks returns a hook that keeps the list in summaries.
func (todoList) Hooks() []hook.Subscription {
	return []hook.Subscription{belay.TurnPreCompaction.On("todo", func(context.Context, belay.CompactionAhead) (belay.CompactionAdvice, error) {
		return belay.CompactionAdvice{Instructions: []belay.Reminder{{Text: "If there is a to-do list (" + TodoTool + "), repeat its items with their states."}}}, nil
	}, &hook.Options{Description: "keeps the to-do list in summaries", Capabilities: hook.CanAddContext, Visibility: hook.VisibleInternally})}
}

// Todos returns the to-do list of a session: the list of the last todo_write in its
// messages, such as those of [belay.Session.Messages]. It is empty if there is none.
func Todos(messages iter.Seq2[*belay.Message, error]) ([]Todo, error) {
	var last json.RawMessage
	for m, err := range messages {
		if err != nil {
			return nil, fmt.Errorf("read the to-do list: %w", err)
		}
		for _, p := range m.Parts {
			if p.Result != nil && p.Result.Tool == TodoTool && !p.Result.IsError && len(p.Result.Render) > 0 {
				last = p.Result.Render
			}
		}
	}
	if last == nil {
		return nil, nil
	}
	var view TodoView
	if err := json.Unmarshal(last, &view); err != nil {
		return nil, fmt.Errorf("read the to-do list: %w", err)
	}
	return slices.Clip(view.Todos), nil
}
