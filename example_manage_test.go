package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// Label the sessions of one user, list them page by page, and delete one.
func Example_sessionsOfAUser() {
	store := memstore.New(nil)
	agent := must(belay.New(scripted.New([]scripted.Step{{Text: "Hello."}}, nil), &belay.Options{Store: store}))
	ctx := context.Background()

	// docs:begin sessions-of-a-user
	title := "The refund"
	check(agent.Session("acme:42").Describe(ctx, belay.SessionUpdate{
		Title: &title, Labels: map[string]string{"tenant": "acme", "user": "ann"},
	}))

	page := belay.SessionFilter{Labels: map[string]string{"tenant": "acme", "user": "ann"}, Limit: 20}
	for info, err := range store.Sessions(ctx, page) {
		check(err)
		fmt.Println(info.ID, info.Title)
		page.After = info.Cursor() // the next page begins after the last one
	}

	check(agent.DeleteSession(ctx, "acme:42"))
	// docs:end sessions-of-a-user

	// Output:
	// acme:42 The refund
}
