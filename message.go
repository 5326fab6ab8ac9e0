package belay

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"
)

// Role says which side of the conversation wrote a message.
type Role string

// The roles. Tool results and reminders of hooks have the role user, because providers
// expect this.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// MessageKind is the origin of a message.
type MessageKind string

// The kinds of messages.
const (
	KindUser       MessageKind = "user"       // from the user
	KindAssistant  MessageKind = "assistant"  // from the model, or an answer that replaces the model's
	KindResults    MessageKind = "results"    // results of tools, in call order
	KindReminder   MessageKind = "reminder"   // reminders of hooks
	KindContext    MessageKind = "context"    // entries of [PromptContext] for the turn
	KindInjected   MessageKind = "injected"   // stored before a user message, for example by a skill
	KindCompaction MessageKind = "compaction" // a summary of earlier messages: see Message.IsCompaction
)

// Message is one entry of a transcript. A Message value never changes after it was stored
// or became part of a [Request], so all readers share it. Transcripts are append-only,
// except that [Commit].Amended may replace the last response by a new Message.
type Message struct {
	// Seq is the number of the message in the session, counted from 1.
	Seq int64 `json:"seq"`
	// Turn and Step are the turn and the step of the message.
	Turn string      `json:"turn"`
	Step int         `json:"step,omitempty"`
	Role Role        `json:"role"`
	Kind MessageKind `json:"kind"`
	// Parts are the content, in order.
	Parts []Part    `json:"parts"`
	Time  time.Time `json:"time"`
	// PreModifiedText is the text that the user typed, if a hook or a directive rewrote it.
	// Nil means that nothing was rewritten.
	PreModifiedText *string `json:"pre_modified_text,omitempty"`
	// Queued is the id of the [QueuedTurn] that this user message comes from. It is empty if
	// the message was not queued.
	Queued string `json:"queued,omitempty"`
	// IsSkillInjection marks a message that a skill injected in front of a user message.
	IsSkillInjection bool `json:"is_skill_injection,omitempty"`
	// IsCompaction marks a summary of earlier messages. The model gets the summary, then
	// the earlier messages whose Seq is at least Keep, then everything after the summary.
	// If Keep is 0, it gets no earlier messages.
	IsCompaction bool  `json:"is_compaction,omitempty"`
	Keep         int64 `json:"keep,omitempty"`
	// Model, StopReason and Usage describe a response.
	Model      string     `json:"model,omitempty"`
	StopReason StopReason `json:"stop_reason,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`

	encoded atomic.Pointer[encoding]
}

// encoding is a message in the format of one provider.
type encoding struct {
	by   any
	data any
}

// newMessage makes a message with room for one part. It needs only one allocation.
func newMessage(role Role, kind MessageKind) *Message {
	m := &struct {
		Message
		room [1]Part
	}{Message: Message{Role: role, Kind: kind}}
	m.Parts = m.room[:0]
	return &m.Message
}

// Encoded returns the result of encode for the message. It caches one result, for one key.
// Providers use it so that they encode each message only once. The key must be comparable,
// and encode must depend on the message and the key only.
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

// Text returns the text of the message, without thinking and reminders.
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

// PartType is the type of a part.
type PartType string

// The types of parts.
const (
	PartText     PartType = "text"
	PartThinking PartType = "thinking"
	PartMedia    PartType = "media"
	PartCall     PartType = "tool_call"
	PartResult   PartType = "tool_result"
)

// Part is one part of a message. Its type determines which fields are set.
type Part struct {
	Type PartType `json:"type"`
	// Text is the text of a text or a thinking part.
	Text string `json:"text,omitempty"`
	// IsReminder marks a text as a reminder: see [Reminder].
	IsReminder bool `json:"is_reminder,omitempty"`
	// Opaque is data that the provider needs back unchanged, such as the signature of its
	// thinking. Provider is the name of that provider.
	Opaque   json.RawMessage `json:"opaque,omitempty"`
	Provider string          `json:"provider,omitempty"`
	Media    *Media          `json:"media,omitempty"`
	Call     *CallPart       `json:"call,omitempty"`
	Result   *ResultPart     `json:"result,omitempty"`
}

// Media is an image or a file.
type Media struct {
	// MIME is the media type, such as image/png or application/pdf.
	MIME string `json:"mime"`
	// Name is the name of the file. It may be empty.
	Name string `json:"name,omitempty"`
	// Data is the content, and URL is its address. At least one of them is set.
	Data []byte `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// CallPart is a tool call in a response.
type CallPart struct {
	// ID is unique within the message.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Input is the JSON object that the model sent. The model sees it again in later
	// requests, even if the tool ran with another input.
	Input json.RawMessage `json:"input"`
	// Malformed is the text that the model sent, if that text was not a JSON object.
	Malformed string `json:"malformed,omitempty"`
	// Final is the input that was checked and run, if it differs from Input: somebody
	// rewrote it, or Belay added defaults. RewrittenBy lists the hooks and interceptors
	// that rewrote it, in order.
	Final       json.RawMessage `json:"final,omitempty"`
	RewrittenBy []string        `json:"rewritten_by,omitempty"`
}

// ResultPart is the result of a call.
type ResultPart struct {
	// Call is the call's id.
	Call string `json:"call"`
	Tool string `json:"tool"`
	Result
}

// Text returns a text part.
func Text(text string) Part { return Part{Type: PartText, Text: text} }

// Image returns a part with the bytes of an image.
func Image(mime string, data []byte) Part {
	return Part{Type: PartMedia, Media: &Media{MIME: mime, Data: data}}
}

// File returns a part with the bytes of a file.
func File(name, mime string, data []byte) Part {
	return Part{Type: PartMedia, Media: &Media{MIME: mime, Name: name, Data: data}}
}
