package memory

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Memory is a fact that is useful in a later conversation.
type Memory struct {
	ID    string `json:"id"`
	Scope Scope  `json:"scope"`
	State State  `json:"state"`
	// Text is the fact. It is empty once it was forgotten.
	Text string   `json:"text"`
	Tags []string `json:"tags,omitempty"`
	// Session and Turn are its source; empty if it is not from a conversation.
	Session string    `json:"session,omitempty"`
	Turn    string    `json:"turn,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// State is the state of a memory.
//
//	proposed ──▶ active ──▶ forgotten
//	    └──────────────────────▶
type State string

// The states of a memory.
const (
	Active    State = "active"    // it is recalled
	Proposed  State = "proposed"  // it waits for somebody to accept it
	Forgotten State = "forgotten" // its text is deleted; only the record of it is left
)

// Kind is the kind of a memory's owner.
type Kind string

// The kinds of scopes.
const (
	User    Kind = "user"    // a person's, in all projects and with all agents
	Project Kind = "project" // a project's
	Agent   Kind = "agent"   // of one agent, by its name
)

// Scope is the owner of a memory. A turn sees the memories of its user, its project
// and its agent, and no others.
type Scope struct {
	Kind Kind
	// Name is the name of the user, project or agent. It may be empty.
	Name string
}

// String returns the kind, followed by a colon and the name if there is one.
func (s Scope) String() string {
	if s.Name == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Name
}

// MarshalText writes what String returns.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Scope) UnmarshalText(text []byte) error {
	kind, name, _ := strings.Cut(string(text), ":")
	*s = Scope{Kind(kind), name}
	return s.check()
}

func (s Scope) check() error {
	if !slices.Contains([]Kind{User, Project, Agent}, s.Kind) {
		return fmt.Errorf("scope: %q is none of user, project, agent", s.Kind)
	}
	return nil
}

// Draft is a memory before it is stored.
type Draft struct {
	// Scope is its owner. Defaults to the user without a name.
	Scope Scope
	// Text is one self-contained fact.
	Text string
	// Tags are additional search words. Defaults to none.
	Tags []string
	// Proposed makes it wait for acceptance. Defaults to false.
	Proposed bool
	// Session and Turn are its source. Defaults to none.
	Session, Turn string
}

// Errors to check with errors.Is.
var (
	// ErrNotFound means that there is no memory with that id.
	ErrNotFound = errors.New("memory: not found")
	// ErrForgotten means that the memory was forgotten.
	ErrForgotten = errors.New("memory: it was forgotten")
	// ErrTooLong means that a text is too long for a memory.
	ErrTooLong = errors.New("memory: the text is too long")
	// ErrEmpty means that the text is empty.
	ErrEmpty = errors.New("memory: there is no text")
)

// The limits of a memory. A longer text is rejected and not cut: the rest could
// mean the opposite.
const (
	MaxText = 4_000 // characters
	maxTags = 16
	maxTag  = 64
)

// sound prepares a draft for storing, or returns why it is invalid.
func (d Draft) sound() (Draft, error) {
	if d.Scope == (Scope{}) {
		d.Scope.Kind = User
	}
	if err := d.Scope.check(); err != nil {
		return d, err
	}
	if len(d.Text) > 4*MaxText || utf8.RuneCountInString(d.Text) > MaxText {
		return d, fmt.Errorf("%w: %d bytes, at most %d characters are allowed: keep only the fact", ErrTooLong, len(d.Text), MaxText)
	}
	d.Text = clean(d.Text)
	if d.Text == "" {
		return d, ErrEmpty
	}
	var tags []string
	for _, tag := range d.Tags {
		tag = strings.ToLower(strings.Join(strings.Fields(clean(tag)), " "))
		if tag != "" && utf8.RuneCountInString(tag) <= maxTag && !slices.Contains(tags, tag) && len(tags) < maxTags {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	d.Tags = tags
	return d, nil
}

// clean returns valid text: invalid UTF-8 is replaced, and control and invisible
// characters are removed.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c': // joiners are part of words
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "\ufffd")))
}

// digest returns a hash of the text that ignores case, spaces and the dot at the end.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), ".!")))
	return sum[:]
}
