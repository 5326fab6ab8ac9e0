// Package chat is the conversation of `belay chat`: a session of an agent in a terminal.
//
// # Usage
//
// Make the [Chat] first, because it is also the approver of the agent: it asks the person
// at the terminal. Then make the agent, and call [Chat.Run].
//
//	c := chat.New(&chat.Options{History: file})
//	agent, err := belay.New(model, &belay.Options{Approver: c})
//	...
//	err = c.Run(ctx, agent.Session("main"))
//
// # How it is built
//
// The chat prints finished output once, and that output scrolls with the terminal. So
// scrolling, searching and copying work as usual. The chat redraws only the view, the part
// at the bottom that changes: the block of text that the model is writing, the running
// calls, the questions and the input. It does not use the alternate screen, because the
// alternate screen has no scrollback.
//
// The model (model.go) is the state. It does nothing by itself: messages change it, and it
// returns commands. The view is a function of the state. The runner (runner.go) runs turns
// and converts their events to messages.
//
// The chat makes control characters in the text of models and tools visible before it shows
// the text.
//
// # Concurrency
//
// Each turn has two goroutines. One reads the events of the turn. The other passes them to
// the loop, in batches if the loop is slower. The loop waits for neither. When Run returns,
// both goroutines have ended, unless the user forced the exit.
//
// # Errors
//
// The chat shows the errors of a turn, and the conversation continues. Run returns
// [ErrNoTerminal] without a terminal, [ErrForced] if the user did not wait for the end of a
// turn, and the cause if its context was cancelled.
package chat
