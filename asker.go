package belay

import (
	"context"
	"errors"
)

// ErrNobody says that the agent has no Asker, so nobody can be asked.
var ErrNobody = errors.New("belay: there is nobody to ask: the agent has no Asker")

// Asker asks the user a question and waits for the answer.
type Asker interface {
	Ask(ctx context.Context, question Inquiry) (string, error)
}

// Inquiry is a question to the user that is answered with text.
type Inquiry struct {
	Session, Turn, Agent string
	// Run and Depth are the run and the depth of a subagent. They are empty for the main
	// agent.
	Run   string
	Depth int
	Text  string
}
