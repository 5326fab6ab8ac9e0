package belay

import (
	"context"
	"errors"
)

// ErrNobody says that there is nobody to ask: the agent has no Asker.
var ErrNobody = errors.New("belay: there is nobody to ask: the agent has no Asker")

// Asker puts a question to the user, and waits for the answer.
type Asker interface {
	Ask(ctx context.Context, question Inquiry) (string, error)
}

// Inquiry is a question to the user, which has words for an answer.
type Inquiry struct {
	Session, Turn, Agent string
	// Run and Depth place the question of a subagent; those of the main agent have none.
	Run   string
	Depth int
	Text  string
}
