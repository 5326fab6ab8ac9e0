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

// Memory is a fact that may be useful in a later conversation.
type Memory struct {
	ID    string `json:"id"`
	Scope Scope  `json:"scope"`
	State State  `json:"state"`
	// Text is the fact. It is empty if the memory was forgotten.
	Text string   `json:"text"`
	Tags []string `json:"tags,omitempty"`
	// Session and Turn say where the memory comes from. Both are empty if the memory does
	// not come from a conversation.
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
	Active    State = "active"    // can be recalled
	Proposed  State = "proposed"  // waits until somebody accepts it
	Forgotten State = "forgotten" // its text is deleted, only the record remains
)

// Kind is the kind of a scope.
type Kind string

// The kinds of scopes.
const (
	User    Kind = "user"    // belongs to a user, in all projects and with all agents
	Project Kind = "project" // belongs to a project
	Agent   Kind = "agent"   // belongs to one agent
)

// Scope is the owner of a memory. A turn sees only the memories of its user, its project
// and its agent.
type Scope struct {
	Kind Kind
	// Name is the name of the user, project or agent. It may be empty.
	Name string
}

// String returns the kind. If the scope has a name, a colon and the name follow.
func (s Scope) String() string {
	if s.Name == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Name
}

// MarshalText returns the same text as String.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the text that MarshalText returns.
func (s *Scope) UnmarshalText(text []byte) error {
	kind, name, _ := strings.Cut(string(text), ":")
	*s = Scope{Kind(kind), name}
	return s.check()
}

func (s Scope) check() error {
	if !slices.Contains([]Kind{User, Project, Agent}, s.Kind) {
		return fmt.Errorf("unknown kind of scope %q: use user, project or agent", s.Kind)
	}
	return nil
}

// Draft is a memory that is not stored yet.
type Draft struct {
	// Scope is the owner of the memory. Defaults to the user without a name.
	Scope Scope
	// Text is one self-contained fact.
	Text string
	// Tags are additional search words. Defaults to none.
	Tags []string
	// Proposed makes the memory wait for acceptance. Defaults to false.
	Proposed bool
	// Session and Turn say where the memory comes from. They default to none.
	Session, Turn string
}

// These are the errors of the package, for errors.Is.
var (
	// ErrNotFound means that there is no memory with that id.
	ErrNotFound = errors.New("memory: not found")
	// ErrForgotten means that the memory was forgotten.
	ErrForgotten = errors.New("memory: the memory was forgotten")
	// ErrTooLong means that a text is too long for a memory.
	ErrTooLong = errors.New("memory: the text is too long")
	// ErrEmpty means that the text is empty.
	ErrEmpty = errors.New("memory: the text is empty")
)

// These are the limits of a memory. A longer text is rejected, not cut, because the first
// part alone could mean the opposite.
const (
	MaxText = 4_000 // characters
	maxTags = 16
	maxTag  = 64
)

// sound prepares a draft for storing. It returns an error if the draft is invalid.
func (d Draft) sound() (Draft, error) {
	if d.Scope == (Scope{}) {
		d.Scope.Kind = User
	}
	if err := d.Scope.check(); err != nil {
		return d, err
	}
	if len(d.Text) > 4*MaxText || utf8.RuneCountInString(d.Text) > MaxText {
		return d, fmt.Errorf("%w: the text has %d bytes, but the limit is %d characters: shorten it to one fact", ErrTooLong, len(d.Text), MaxText)
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

// clean replaces invalid UTF-8, and removes control characters and invisible characters.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c': // joiners are part of words and stay
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "\ufffd")))
}

// digest returns a hash of a text. It ignores case and spaces, and also dots and
// exclamation marks at the end.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(text), " ")), ".!")))
	return sum[:]
}
