// Package telegram shows approvals in a chat of Telegram. It uses long polling, so Belay needs
// no public address.
//
// # Usage
//
//	ch, err := telegram.New(&telegram.Options{To: "-100123", Token: token})
//	...
//	runner, err := channel.New("ops", ch, store, &channel.Options{Dir: dir, Approvers: []string{"4711"}})
//
// docs/channels.md shows how to make the bot. People decide with buttons. A reply to a message
// denies a call with a reason, or answers a question.
//
// # Why no SDK
//
// The package needs four methods. An update counts as received only when its decision is stored,
// so that a restart loses none. The well-known SDK acknowledges updates before their handlers have
// run.
//
// # Concurrency
//
// A Channel is safe for concurrent use.
//
// # Errors
//
// The error of a method names it, and has Telegram's description. It never has the token. If
// Telegram wants a pause, the error is a [channel.RetryError].
//
// # Testing
//
// Set Options.URL to the address of a server in your test.
package telegram
