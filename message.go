package belay

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"
)

// Role says on whose side of the conversation a message is.
type Role string

// The roles. What a tool answered and what a hook told the model are on the
// user's side, as providers want it.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// MessageKind says where a message came from.
type MessageKind string

// The kinds of messages.
const (
	KindUser       MessageKind = "user"       // a person said it
	KindAssistant  MessageKind = "assistant"  // the model said it, or a hook in its place
	KindResults    MessageKind = "results"    // what the tools answered, in call order
	KindReminder   MessageKind = "reminder"   // told to the model because of a hook
	KindContext    MessageKind = "context"    // prompt context of the turn
	KindInjected   MessageKind = "injected"   // put in front of a user message, by a skill for one
	KindCompaction MessageKind = "compaction" // a summary: the context restarts here
)

// Message is one entry of a transcript. Transcripts are append-only: a message
// that is stored, or part of a [Request], is never changed again, and is shared
// by everyone who reads it.
type Message struct {
	// Seq is its place in the session, counted from 1.
	Seq int64 `json:"seq"`
	// Turn and Step are where it was said.
	Turn string      `json:"turn"`
	Step int         `json:"step,omitempty"`
	Role Role        `json:"role"`
	Kind MessageKind `json:"kind"`
	// Parts are what it consists of, in order.
	Parts []Part    `json:"parts"`
	Time  time.Time `json:"time"`
	// PreModifiedText is what the user typed, if a hook or a directive rewrote
	// it; empty counts.
	PreModifiedText *string `json:"pre_modified_text,omitempty"`
	// IsSkillInjection marks what a skill put in front of a user message.
	IsSkillInjection bool `json:"is_skill_injection,omitempty"`
	// IsCompaction marks a summary. The model sees it, the messages from Keep on
	// that came before it, and all that came after it.
	IsCompaction bool  `json:"is_compaction,omitempty"`
	Keep         int64 `json:"keep,omitempty"`
	// Model, StopReason and Usage are those of a response.
	Model      string     `json:"model,omitempty"`
	StopReason StopReason `json:"stop_reason,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`

	encoded atomic.Pointer[encoding]
}

// encoding is a message as one provider sends it.
type encoding struct {
	by   any
	data any
}

// newMessage makes a message with room for one part, in one allocation.
func newMessage(role Role, kind MessageKind) *Message {
	m := &struct {
		Message
		room [1]Part
	}{Message: Message{Role: role, Kind: kind}}
	m.Parts = m.room[:0]
	return &m.Message
}

// Encoded returns what encode makes of the message, from a cache of one if it
// was made for the same key before. Providers use it so that a request costs what
// it adds and not what the conversation holds. The key must be comparable and
// encode must depend on nothing but the message and the key.
func (m *Message) Encoded(by any, encode func(*Message) (any, error)) (any, error) {
	if e := m.encoded.Load(); e != nil && e.by == by {
		return e.data, nil
	}
	data, err := encode(m)
	if err == nil {
		m.encoded.Store(&encoding{by, data})
	}
	return data, err
}

// Text joins the text of the message, without thinking and reminders.
func (m *Message) Text() string {
	var first string
	var rest []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == PartText && !p.IsReminder {
			if first == "" {
				first = p.Text
			} else {
				rest = append(rest, p.Text)
			}
		}
	}
	if rest == nil {
		return first
	}
	return first + "\n" + strings.Join(rest, "\n")
}

// Calls returns the tool calls of the message, in order.
func (m *Message) Calls() []*CallPart {
	var calls []*CallPart
	for i := range m.Parts {
		if c := m.Parts[i].Call; c != nil {
			calls = append(calls, c)
		}
	}
	return calls
}

// PartType says what a part is.
type PartType string

// The types of parts.
const (
	PartText     PartType = "text"
	PartThinking PartType = "thinking"
	PartMedia    PartType = "media"
	PartCall     PartType = "tool_call"
	PartResult   PartType = "tool_result"
)

// Part is one part of a message. Which fields it has depends on its type.
type Part struct {
	Type PartType `json:"type"`
	// Text is that of a text or a thinking part.
	Text string `json:"text,omitempty"`
	// IsReminder marks text that a hook tells the model.
	IsReminder bool `json:"is_reminder,omitempty"`
	// Opaque is what the provider named by Provider wants back with the part as
	// it was, such as the signature of its thinking.
	Opaque   json.RawMessage `json:"opaque,omitempty"`
	Provider string          `json:"provider,omitempty"`
	Media    *Media          `json:"media,omitempty"`
	Call     *CallPart       `json:"call,omitempty"`
	Result   *ResultPart     `json:"result,omitempty"`
}

// Media is an image or a file.
type Media struct {
	// MIME is its type: image/png, application/pdf, ...
	MIME string `json:"mime"`
	// Name is the file's name, if it has one.
	Name string `json:"name,omitempty"`
	// Data is its content, or URL says where it is.
	Data []byte `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// CallPart is a tool call in a response.
type CallPart struct {
	// ID is unique within the message.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Input is what the model asked for: a JSON object. It is what the model sees
	// again, whatever the tool ran with.
	Input json.RawMessage `json:"input"`
	// Malformed is what the model wrote in place of a JSON object, as far as it
	// came.
	Malformed string `json:"malformed,omitempty"`
	// Final is the input as it was judged and run, if it was rewritten, and
	// RewrittenBy is who did, in order.
	Final       json.RawMessage `json:"final,omitempty"`
	RewrittenBy []string        `json:"rewritten_by,omitempty"`
}

// ResultPart is what came of a call.
type ResultPart struct {
	// Call is the call's id.
	Call string `json:"call"`
	Tool string `json:"tool"`
	Result
}

// Text makes a part of text.
func Text(text string) Part { return Part{Type: PartText, Text: text} }

// Image makes a part of an image's content.
func Image(mime string, data []byte) Part {
	return Part{Type: PartMedia, Media: &Media{MIME: mime, Data: data}}
}

// File makes a part of a file's content.
func File(name, mime string, data []byte) Part {
	return Part{Type: PartMedia, Media: &Media{MIME: mime, Name: name, Data: data}}
}
