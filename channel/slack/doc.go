// Package slack shows approvals in a channel of Slack. It uses Socket Mode, so Belay needs no
// public address.
//
// # Usage
//
//	ch, err := slack.New(&slack.Options{To: "C0123", BotToken: bot, AppToken: app})
//	...
//	runner, err := channel.New("team", ch, store, &channel.Options{Dir: dir, Approvers: []string{"U0123"}})
//
// docs/channels.md shows how to make the app in Slack.
//
// # Why no SDK
//
// The package needs five methods of the Web API and one kind of message on a WebSocket. The
// well-known SDK has 25,000 lines in one package for them. docs/design/dependencies.md has the
// comparison.
//
// # Concurrency
//
// A Channel is safe for concurrent use.
//
// # Errors
//
// The error of a method names it, and Slack's own word for the problem. If Slack wants a pause,
// the error is a [channel.RetryError].
//
// # Testing
//
// Set Options.URL to the address of a server in your test.
package slack
