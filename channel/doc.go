// Package channel sends approvals and questions to people in chat channels, and brings their
// decisions back. The packages below it know one service each: Slack, Telegram, and webhooks.
//
// # Usage
//
//	team, err := slack.New(&slack.Options{To: "C0123", BotToken: bot, AppToken: app})
//	...
//	runner, err := channel.New("team", team, store, &channel.Options{Dir: dir, Approvers: []string{"U0123"}})
//	...
//	runner.Run(ctx) // until ctx ends
//
// "belay serve" runs the channels of the settings. docs/channels.md shows them.
//
// # What happens
//
// The runner reads the pending approvals of the store. It sends each one once, and remembers
// this in a file, so that a restart does not send it again. A person who is listed as an approver
// decides with a button. The decision names the approval and the hash of the input that was
// shown, and the store takes the first decision only. When an approval was decided, here or
// elsewhere, or has expired, the runner changes the message.
//
// A message that cannot be sent is sent again later, with growing pauses of at most five minutes,
// until it is sent or the approval is no longer open. A channel never blocks a turn, and never
// decides by itself. A person cannot approve a text that was cut: see [Request.Hint].
//
// # Concurrency
//
// A Runner is safe for concurrent use. One process at a time runs a channel: the file is locked.
// Another process waits, and takes over when the first one ends.
//
// # Errors
//
// Run returns no errors: it tries again. Options.Logger gets them, and [Status] has those of the
// service.
//
// # Testing
//
// Implement [Channel] in the test. The tests of this package show how.
package channel
