package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// docs:begin client

// runTask runs a task on a server, prints what the agent says, and approves calls of the tool
// write. It denies all other calls that need approval.
func runTask(ctx context.Context, url, token, task string) error {
	c, err := client.New(url, token, nil)
	if err != nil {
		return err
	}
	session, err := c.CreateSession(ctx, api.CreateSession{Title: "An example"})
	if err != nil {
		return err
	}
	turn, err := c.StartTurn(ctx, api.StartTurn{Session: session.ID, Text: task})
	if err != nil {
		return err
	}
	for event, err := range c.Events(ctx, session.ID, turn.After) {
		if _, missed := errors.AsType[*belay.MissedError](err); missed {
			continue // only events that are not stored can be missed
		}
		if err != nil {
			return err
		}
		switch {
		case event.Kind == belay.EventModelResponse:
			fmt.Println("agent:", event.Message.Text())
		case event.Kind == belay.EventTurnEnd && event.End.Reason != belay.EndParked:
			fmt.Println("ended:", event.End.Reason)
			return nil
		case event.Kind == belay.EventTurnEnd:
			for _, question := range event.End.Waits { // a worker continues the turn after the last decision
				decision := api.DecideApproval{Approval: question.ID, Hash: question.Hash, Allow: question.Tool == "write"}
				if _, err := c.DecideApproval(ctx, decision); err != nil && !errors.Is(err, belay.ErrDecided) {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// docs:end client

// A client runs a task on a server, and decides about the calls that need approval.
func ExampleClient() {
	err := withServer(func(ctx context.Context, url, token string) error {
		return runTask(ctx, url, token, "write the notes")
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// agent: I need a file.
	// agent: The notes are written.
	// ended: end_turn
}

// withServer calls f with a server whose model follows a script.
func withServer(f func(ctx context.Context, url, token string) error) (err error) {
	dir, err := os.MkdirTemp("", "belay-example-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	h, err := host.Open(ctx, &host.Options{
		Dir: dir, UserDir: filepath.Join(dir, "user"), Environ: []string{}, NoJobs: true, Settings: []host.Setting{{Path: "mode", Value: "strict"}},
		Model: scripted.New([]scripted.Step{
			{Text: "I need a file.", Calls: []scripted.Call{{Tool: "write", Input: `{"path": "notes.md", "content": "notes"}`}}},
			{Text: "The notes are written."},
		}, nil),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	tokens := serve.OpenTokens(filepath.Join(dir, "user", "belay", "tokens"))
	token, err := tokens.Create("example", []serve.Role{serve.RoleRun, serve.RoleApprove}, nil)
	if err != nil {
		return err
	}
	server, err := serve.New(h, &serve.Options{Tokens: tokens, Workers: 1})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }() // ends with stop
	err = f(ctx, "http://"+listener.Addr().String(), token)
	stop()
	return errors.Join(err, <-served)
}
