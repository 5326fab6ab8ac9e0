package api

import (
	"time"

	"github.com/belay-run/belay"
)

// The values of [StartTurn.Wait].
const (
	WaitNone = "none" // answer when the message is stored
	WaitEnd  = "end"  // answer when the turn has ended or is parked
)

// StartTurn is the input of startTurn.
type StartTurn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Text    string `json:"text" required:"true" jsonschema:"the message to the agent; it may be empty if there are files"`
	Files   []File `json:"files,omitempty" maxItems:"20" jsonschema:"images and files of the message"`
	Agent   string `json:"agent,omitempty" jsonschema:"the declared agent that runs the turn; by default the agent of the session, and first the one that the settings describe"`
	Model   string `json:"model,omitempty" jsonschema:"the model that answers, as PROVIDER/NAME; by default the agent's own"`
	Wait    string `json:"wait" enum:"none,end" default:"none" jsonschema:"none: answer when the message is stored. end: answer when the turn has ended or is parked"`
	// Key is the header Idempotency-Key. Requests with the same key and content run one turn. With
	// a key, package client sends the request again if its answer is lost.
	Key string `json:"-"`
}

// File is an image or a file of a message.
type File struct {
	Name string `json:"name,omitempty" maxLength:"255" jsonschema:"the name of the file"`
	MIME string `json:"mime,omitempty" maxLength:"255" jsonschema:"the media type, such as image/png; by default the content decides"`
	Data []byte `json:"data" required:"true" jsonschema:"the content, in base64"`
}

// StartedTurn is a turn that was queued.
type StartedTurn struct {
	// ID is the id of the queued turn. The user's message has it in its field queued, and so
	// has the event turn_start.
	ID      string `json:"id"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// After is the position from which the events of the turn can be followed.
	After string `json:"after" jsonschema:"pass it as after to the events of the session, to follow this turn"`
	// Result is set with wait=end. It is absent if the server stops before the turn has ended.
	Result *TurnResult `json:"result,omitempty"`
}

// TurnResult is the result of a turn that has ended or is parked.
type TurnResult struct {
	Turn   string          `json:"turn" jsonschema:"the id of the turn; empty if it has not begun"`
	Reason belay.EndReason `json:"reason" jsonschema:"why the turn ended; empty if a later turn has already begun"`
	Text   string          `json:"text" jsonschema:"the last text of the model"`
	Steps  int             `json:"steps,omitempty"`
	Usage  belay.Usage     `json:"usage"`
	By     string          `json:"by,omitempty" jsonschema:"who blocked the turn"`
	Why    string          `json:"why,omitempty" jsonschema:"what went wrong"`
	// Approvals are the ids of the approvals that a parked turn waits for.
	Approvals []string `json:"approvals,omitempty" jsonschema:"the approvals that a parked turn waits for"`
	// Queued says that the turn has not begun, because an earlier turn of the session is parked.
	// Reason and Approvals are about the earlier turn.
	Queued bool `json:"queued,omitempty" jsonschema:"the turn has not begun, because an earlier turn of the session is parked: reason and approvals are about the earlier turn"`
}

// QueuedTurn is a turn that has not begun.
type QueuedTurn struct {
	ID    string    `json:"id"`
	Agent string    `json:"agent"`
	Model string    `json:"model,omitempty"`
	Text  string    `json:"text"`
	Time  time.Time `json:"time"`
}

// Queue lists the turns that have not begun.
type Queue struct {
	Turns []QueuedTurn `json:"turns"`
}

// WithdrawTurn is the input of withdrawTurn.
type WithdrawTurn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Turn    string `json:"turn" in:"path" required:"true" maxLength:"128" jsonschema:"the id of the queued turn"`
}

// AbortTurn is the input of abortTurn.
type AbortTurn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Turn    string `json:"turn,omitempty" maxLength:"128" jsonschema:"the id of the turn, from the event turn_start: another turn is not aborted. By default the turn that is open when the request arrives"`
}
