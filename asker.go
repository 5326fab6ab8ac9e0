package belay

import (
	"context"
	"errors"
)

// ErrNobody says that the agent has no Asker, so it cannot ask the user.
var ErrNobody = errors.New("belay: the user cannot be asked: the agent has no Options.Asker")

// Asker asks the user a question and waits for the answer.
type Asker interface {
	Ask(ctx context.Context, question Inquiry) (string, error)
}

// Inquiry is a question to the user. The answer is a text.
type Inquiry struct {
	Session, Turn, Agent string
	// Run and Depth are the id and the depth of a subagent's run. They are zero for the
	// main agent.
	Run   string
	Depth int
	Text  string
}
