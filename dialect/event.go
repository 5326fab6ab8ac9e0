package dialect

// Kind is what an event is about, in all dialects.
type Kind string

// The kinds of events, by the names of Claude Code.
const (
	PreToolUse         Kind = "PreToolUse"
	PostToolUse        Kind = "PostToolUse"
	PostToolUseFailure Kind = "PostToolUseFailure"
	Stop               Kind = "Stop"
	SessionStart       Kind = "SessionStart"
	SessionEnd         Kind = "SessionEnd"
	UserPromptSubmit   Kind = "UserPromptSubmit"
	SubagentStart      Kind = "SubagentStart"
	SubagentStop       Kind = "SubagentStop"
	PreCompact         Kind = "PreCompact"
	Notification       Kind = "Notification"
	PermissionRequest  Kind = "PermissionRequest"
)

// Event is an event of a vendor's hooks, and what Belay does with it.
type Event struct {
	// Name is the vendor's name.
	Name string
	// Kind says which event it is. It is empty if Belay does not run hooks at this event.
	Kind Kind
	// Phase is Belay's phase. It is empty if Belay does not run hooks at this event.
	Phase string
	// Kept, Differs and Refused are sentences for the docs: what works as the vendor
	// defines it, what works in another way, and what Belay does not do.
	Kept, Differs, Refused string
	// Source is the address of the vendor's definition.
	Source string
}

// Events returns the events of a vendor's hook files, in the order of the docs.
func (v Vendor) Events() []Event {
	switch v {
	case ClaudeCode:
		return claudeEvents()
	case Codex:
		return codexEvents()
	case GeminiCLI:
		return geminiEvents()
	default:
		return nil
	}
}

// Event returns the event of a vendor with this name. The bool is false if Belay does not
// know the event.
func (v Vendor) Event(name string) (Event, bool) {
	for _, e := range v.Events() {
		if e.Name == name {
			return e, true
		}
	}
	return Event{}, false
}
