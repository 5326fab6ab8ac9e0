package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

// A turn survives the end of its process. The next process that opens the file resumes the
// turn.
func Example_durable() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", "belay"))
	defer func() { check(os.RemoveAll(dir)) }()
	path := killed(ctx, dir)
	model := scripted.New([]scripted.Step{{Text: "I cannot tell whether it was deployed: please look."}}, nil)
	tools := []belay.Tool{deployTool()}

	// docs:begin durable
	store := must(sqlite.Open(ctx, path, nil))
	learnt := make(chan belay.EndReason, 1)
	learn := belay.TurnPostTurn.On("learn", func(_ context.Context, end belay.TurnEnded) (belay.Note, error) {
		learnt <- end.Reason()
		return belay.Note{}, nil
	}, &hook.Options{Execution: hook.Background, Idempotent: true})
	agent := must(belay.New(model, &belay.Options{Store: store, Tools: tools, Hooks: []hook.Subscription{learn}}))

	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- agent.Hooks().Work(working) }() // background hooks run only here

	session := agent.Session("demo")
	turn, err := belay.Await(session.Resume(ctx)) // what was cleaned up after a dead process
	if errors.Is(err, belay.ErrNoTurn) {
		turn, err = session.Turn(ctx, "Deploy it.")
	}
	check(err)
	fmt.Println(turn.Reason, "-", turn.Text)
	fmt.Println("learnt of", <-learnt)

	stop()
	check(<-worked)
	check(agent.Close(ctx))
	check(store.Close())
	// docs:end durable

	store = must(sqlite.Open(ctx, path, nil))
	for message, err := range store.Read(ctx, "demo", 0) {
		check(err)
		for _, part := range message.Parts {
			if part.Result != nil {
				fmt.Println("the model was told that", part.Result.Tool, "was", part.Result.Class)
			}
		}
	}
	check(store.Close())

	// Output:
	// end_turn - I cannot tell whether it was deployed: please look.
	// learnt of end_turn
	// the model was told that deploy was aborted
}

// killed returns the path of a store whose process was killed while a tool ran. It is a
// copy of the file from that moment.
func killed(ctx context.Context, dir string) (path string) {
	store := must(sqlite.Open(ctx, filepath.Join(dir, "first.db"), nil))
	defer func() { check(store.Close()) }()
	path = filepath.Join(dir, "belay.db")
	type target struct {
		Env string `json:"env"`
	}
	deploy := belay.NewTool("deploy", "Deploys.", func(ctx context.Context, _ target) (string, error) {
		return "", store.Backup(ctx, path)
	}, nil)
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "deploy", Input: `{"env": "prod"}`}}}, {Text: "Deployed."}}, nil)
	agent := must(belay.New(model, &belay.Options{Store: store, Tools: []belay.Tool{deploy}}))
	defer func() { check(agent.Close(ctx)) }()
	must(agent.Session("demo").Turn(ctx, "Deploy it."))
	return path
}

func deployTool() belay.Tool {
	type target struct {
		Env string `json:"env"`
	}
	return belay.NewTool("deploy", "Deploys.", func(_ context.Context, in target) (string, error) {
		fmt.Println("deploying to", in.Env)
		return "deployed", nil
	}, nil)
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
