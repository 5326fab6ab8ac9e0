package toolbox_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// The model keeps a to-do list, and the program shows it.
func ExampleTodoList() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "todo_write", Input: `{"todos": [{"content": "boil water", "status": "completed"}, {"content": "make tea", "status": "in_progress"}]}`}}},
		{Text: "The water boils."},
	}, nil)
	ctx := context.Background()

	// docs:begin todo
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{toolbox.TodoList()}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = agent.Close(ctx) }()
	session := agent.Session("demo")
	if _, err := session.Turn(ctx, "Make tea."); err != nil {
		panic(err)
	}
	todos, err := toolbox.Todos(session.Messages(ctx))
	if err != nil {
		panic(err)
	}
	for _, todo := range todos {
		fmt.Println(todo.Status, todo.Content)
	}
	// docs:end todo

	// Output:
	// completed boil water
	// in_progress make tea
}
