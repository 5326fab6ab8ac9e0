// Package chat is the conversation behind `belay chat`: an agent's session in a
// terminal.
//
// # Usage
//
// A [Chat] is made first, because it is also the agent's approver: it asks the
// person at the terminal. Then make the agent, and call [Chat.Run].
//
//	c := chat.New(&chat.Options{History: file})
//	agent, err := belay.New(model, &belay.Options{Approver: c})
//	...
//	err = c.Run(ctx, agent, "main")
//
// # How it is built
//
// Finished output is printed once and scrolls with the terminal, so that
// scrolling, searching and copying work as usual. Only the changing part is
// redrawn: the block of text that the model is writing, the calls that run, the
// questions, the input. An alternate screen would lose the scrollback for no
// gain.
//
// The model (model.go) is the state. Messages change it, and it returns
// commands; it does nothing itself. The view is a function of the state. The
// runner (runner.go) runs turns and converts their events into messages.
//
// Text of models and tools is cleaned before it is shown: control characters
// are made visible.
//
// # Concurrency
//
// Each turn has a goroutine that reads its events and one that passes them to the
// loop, in batches if the loop is slower. The loop waits for neither. When Run
// returns, they have ended, unless the user forced the exit.
//
// # Errors
//
// Errors of a turn are shown, and the conversation continues. Run returns
// [ErrNoTerminal] without a terminal, [ErrForced] if the user did not wait for
// the end of a turn, and the cause if its context was cancelled.
package chat
