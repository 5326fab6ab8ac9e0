package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay/internal/wholefile"
)

// Delivery is what a channel knows about one approval. It is kept in a file.
type Delivery struct {
	// Key names the request in the channel.
	Key      string `json:"key"`
	Approval string `json:"approval"`
	Session  string `json:"session"`
	// Hash is the hash of the input that was shown. Decisions name it.
	Hash string `json:"hash"`
	// Question says that the model asks a question.
	Question bool `json:"question,omitempty"`
	// Cut says that the message does not show everything. It cannot be approved there.
	Cut bool `json:"cut,omitempty"`
	// Place is where the message is. It is empty until the message was sent.
	Place string `json:"place,omitempty"`
	// Outcome is set when the approval was decided. Closed means that the message shows it.
	Outcome string    `json:"outcome,omitempty"`
	Closed  bool      `json:"closed,omitempty"`
	Asked   time.Time `json:"asked"`
	// Attempts counts failed attempts since the last success. Error is the last failure, and Next
	// the time of the next attempt.
	Attempts int       `json:"attempts,omitempty"`
	Error    string    `json:"error,omitempty"`
	Next     time.Time `json:"next,omitzero"`
}

// Refusal records that somebody tried to decide who is not an approver.
type Refusal struct {
	User     string    `json:"user"`
	Approval string    `json:"approval"`
	Time     time.Time `json:"time"`
}

// Status is the state of a channel.
type Status struct {
	Deliveries []*Delivery `json:"deliveries"`
	// Refused are the last people who tried to decide and may not.
	Refused []Refusal `json:"refused,omitempty"`
	// Error is why the connection for answers failed last, or "".
	Error string `json:"error,omitempty"`
	// Mark is the mark of the channel. See [Inbox].
	Mark string `json:"mark,omitempty"`
}

// Bounds of the file.
const (
	mostRefused = 100
	keepClosed  = 7 * 24 * time.Hour
)

// file returns the file of a channel.
func file(dir, name string) string { return filepath.Join(dir, name+".json") }

// ReadStatus reads the state of a channel. A channel that never ran has an empty one.
func ReadStatus(dir, name string) (*Status, error) {
	var s Status
	data, err := os.ReadFile(file(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return &s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("channel %s: the file %s cannot be read: %w: remove it, and open approvals are sent again", name, file(dir, name), err)
	}
	return &s, nil
}

// save writes the state.
func (s *Status) save(dir, name string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = wholefile.Write(file(dir, name), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("channel %s: %w", name, err)
	}
	return nil
}

// find returns the first delivery that fits, or nil.
func (s *Status) find(fits func(*Delivery) bool) *Delivery {
	for _, d := range s.Deliveries {
		if fits(d) {
			return d
		}
	}
	return nil
}
