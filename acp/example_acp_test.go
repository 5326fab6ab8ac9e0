package acp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// An editor drives an agent of your own. A program passes os.Stdin and os.Stdout.
func Example() {
	model := scripted.New([]scripted.Step{{Text: "Hello, editor."}}, nil)
	// docs:begin acp
	store := memstore.New(nil)
	agent, err := belay.New(model, &belay.Options{Store: store, OnAsk: belay.AskPark})
	if err != nil {
		panic(err)
	}
	server := acp.New(acp.Fixed(agent, store, "/srv/project"), nil)
	// docs:end acp
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	go func() {
		if err := server.Serve(context.Background(), in, out); err != nil {
			panic(err)
		}
		_ = out.Close()
	}()
	lines := bufio.NewScanner(fromServer)
	send := func(line string) {
		fmt.Fprintln(toServer, line)
		lines.Scan()
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	_, session, _ := strings.Cut(lines.Text(), `"sessionId":"`)
	session, _, _ = strings.Cut(session, `"`)
	lines.Scan() // the slash commands
	send(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"Hi."}]}}`)
	for !strings.Contains(lines.Text(), `"id":3`) {
		if strings.Contains(lines.Text(), "agent_message_chunk") {
			_, text, _ := strings.Cut(lines.Text(), `"text":"`)
			text, _, _ = strings.Cut(text, `"`)
			fmt.Print(text)
		}
		lines.Scan()
	}
	fmt.Println()
	_ = toServer.Close()
	// Output:
	// Hello, editor.
}
