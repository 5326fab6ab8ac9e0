// Package chat is the conversation behind `belay chat`: an agent's session in a
// terminal.
//
// # Usage
//
// A [Chat] is made first, because it is also the agent's approver: it asks the
// person at the terminal. Then the agent is made, and [Chat.Run] has the
// conversation.
//
//	c := chat.New(&chat.Options{History: file})
//	agent, err := belay.New(model, &belay.Options{Approver: c})
//	...
//	err = c.Run(ctx, agent, "main")
//
// # How it is built
//
// What is finished is printed once and scrolls away with the rest of the
// terminal, so that scrolling back, searching and copying are the terminal's own.
// Only what still changes is drawn again: the block of text that the model is
// writing, the calls that run, the questions, the input. An alternate screen
// would take the scrollback away for no gain.
//
// The model (model.go) is a state that changes with messages and does nothing by
// itself: what it wants done it returns as a command. The view is a function of
// it. The runner (runner.go) takes turns and turns their events into messages.
//
// Text of models and tools is cleaned before it is shown: what a terminal would
// take for a command is made visible instead.
//
// # Concurrency
//
// Each turn has a goroutine that reads its events and one that hands them to the
// loop, several at a time if the loop is slower. The loop waits for neither. When
// Run returns, they have ended, unless the person forced their way out.
//
// # Errors
//
// What goes wrong in a turn is shown, and the conversation goes on. Run returns
// [ErrNoTerminal] where there is none, [ErrForced] if the person did not wait for
// a turn to end, and the cause if its context was cancelled.
package chat
