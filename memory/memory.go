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

// Memory is something worth knowing in a later conversation.
type Memory struct {
	ID    string `json:"id"`
	Scope Scope  `json:"scope"`
	State State  `json:"state"`
	// Text is what is remembered. It is empty once it was forgotten.
	Text string   `json:"text"`
	Tags []string `json:"tags,omitempty"`
	// Session and Turn are where it is from; empty if no conversation is its source.
	Session string    `json:"session,omitempty"`
	Turn    string    `json:"turn,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// State is where a memory stands.
//
//	proposed ──▶ active ──▶ forgotten
//	    └──────────────────────▶
type State string

// The states of a memory.
const (
	Active    State = "active"    // it is recalled
	Proposed  State = "proposed"  // it waits for somebody to accept it
	Forgotten State = "forgotten" // its text is gone; that there was one is all that is left
)

// Kind says whose a memory is.
type Kind string

// The kinds of scopes.
const (
	User    Kind = "user"    // a person's, in all projects and with all agents
	Project Kind = "project" // a project's
	Agent   Kind = "agent"   // of one agent, by its name
)

// Scope is whose a memory is. A turn sees the memories of its user, its project and
// its agent, and no others.
type Scope struct {
	Kind Kind
	// Name tells users, projects and agents apart. It may be empty.
	Name string
}

// String is the kind, and the name behind a colon if there is one.
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

// Draft is a memory on its way into a store.
type Draft struct {
	// Scope is whose it is. Defaults to the user without a name.
	Scope Scope
	// Text is what to remember: one fact, in words that stand for themselves.
	Text string
	// Tags are words that it can be found by, too. Defaults to none.
	Tags []string
	// Proposed has it wait for acceptance. Defaults to false.
	Proposed bool
	// Session and Turn are where it is from. Defaults to nowhere.
	Session, Turn string
}

// What is asked with errors.Is.
var (
	// ErrNotFound says that there is no memory of that id.
	ErrNotFound = errors.New("memory: not found")
	// ErrForgotten says that the text of a memory is gone.
	ErrForgotten = errors.New("memory: it was forgotten")
	// ErrTooLong says that a text is longer than a memory may be.
	ErrTooLong = errors.New("memory: the text is too long")
	// ErrEmpty says that there is no text.
	ErrEmpty = errors.New("memory: there is no text")
)

// The bounds of a memory. A longer text is refused, and not cut: what is left of it
// might say the opposite.
const (
	MaxText = 4_000 // characters
	maxTags = 16
	maxTag  = 64
)

// sound makes a draft fit to be stored, or says why it cannot be.
func (d Draft) sound() (Draft, error) {
	if d.Scope == (Scope{}) {
		d.Scope.Kind = User
	}
	if err := d.Scope.check(); err != nil {
		return d, err
	}
	if len(d.Text) > 4*MaxText || utf8.RuneCountInString(d.Text) > MaxText {
		return d, fmt.Errorf("%w: %d bytes, of at most %d characters: keep the fact, and leave the rest where it is", ErrTooLong, len(d.Text), MaxText)
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

// clean makes text of what may be none: what is not UTF-8 is replaced, and characters
// that steer a terminal or hide text are left out.
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

// digest tells texts apart that say different things. Case, spaces and the dot at the
// end make no difference.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), ".!")))
	return sum[:]
}
