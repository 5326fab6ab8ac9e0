package webtool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/webtool"
)

// An agent reads a page. The floor decides which addresses it may read: here, those of one
// server.
func ExampleNew() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html><title>Knots</title><body><h1>Knots</h1><p>Tie a <b>figure eight</b>.</p></body></html>"))
	}))
	defer server.Close()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: webtool.FetchTool, Input: fmt.Sprintf(`{"url": %q}`, server.URL)}}},
		{Text: "Tie a figure eight."},
	}, nil)
	rule, err := permit.ParseRule("allow web_fetch(" + server.URL + "/**)")
	if err != nil {
		panic(err)
	}
	floor, err := permit.New(".", &permit.Options{Rules: []permit.Rule{rule}, Relax: []string{"net.loopback"}})
	if err != nil {
		panic(err)
	}

	// docs:begin agent
	web := webtool.New(&webtool.Options{Search: webtool.SearXNG("https://search.example.com")})
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{web}, Authorizer: floor})
	// docs:end agent
	if err != nil {
		panic(err)
	}
	defer func() { _ = agent.Close(ctx) }()
	for event, err := range agent.Session("knots").Run(ctx, "Which knot?") {
		if err != nil {
			panic(err)
		}
		if event.Kind == belay.EventToolUseResult {
			_, page, _ := strings.Cut(event.Result.Text, "\n")
			fmt.Println(page)
		}
	}
	// Output:
	// title: Knots
	//
	// # Knots
	//
	// Tie a **figure eight**.
}
