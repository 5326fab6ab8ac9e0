package hook

import "fmt"

// Kind says what the handlers of a phase may do.
type Kind uint8

const (
	// Gate handlers answer with a verdict that can stop the next action.
	Gate Kind = iota + 1
	// Collect handlers contribute something that the phase merges and uses.
	Collect
	// Observe handlers only watch. Their answers change no outcome.
	Observe
)

var kindNames = map[Kind]string{Gate: "gate", Collect: "collect", Observe: "observe"}

// String returns the wire name: gate, collect or observe.
func (k Kind) String() string { return enumName("kind", kindNames, k) }

// MarshalText writes the wire name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the wire name.
func (k *Kind) UnmarshalText(text []byte) error { return enumParse("kind", kindNames, k, text) }

// Execution says how a handler runs.
type Execution uint8

const (
	// Blocking runs the handler and waits for its answer. It is the default.
	Blocking Execution = iota
	// Deadline runs the handler and waits up to the timeout. If the handler has not
	// returned by then, the run is abandoned.
	Deadline
	// FireAndRecord starts the handler, does not wait, and records how it ended.
	FireAndRecord
	// Background stores a job that a worker runs later, and records every attempt.
	Background
)

var executionNames = map[Execution]string{
	Blocking: "blocking", Deadline: "deadline", FireAndRecord: "fire_and_record", Background: "background",
}

// String returns the wire name.
func (e Execution) String() string { return enumName("execution", executionNames, e) }

// MarshalText writes the wire name.
func (e Execution) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the wire name.
func (e *Execution) UnmarshalText(text []byte) error {
	return enumParse("execution", executionNames, e, text)
}

// waits reports whether the dispatch waits for the answer.
func (e Execution) waits() bool { return e == Blocking || e == Deadline }

// HandlerKind is the kind of a handler.
type HandlerKind string

// The handler kinds a runtime accepts.
const (
	HandlerGo      HandlerKind = "go"      // a Go function; the default
	HandlerCommand HandlerKind = "command" // a child process for each run
	HandlerWorker  HandlerKind = "worker"  // a long-lived child process
	HandlerWebhook HandlerKind = "webhook" // an HTTP endpoint
	HandlerAction  HandlerKind = "action"  // a built-in action named in a file
)

var handlerKinds = []HandlerKind{HandlerGo, HandlerCommand, HandlerWorker, HandlerWebhook, HandlerAction}

// Visibility says who sees the runs of a subscription.
type Visibility uint8

const (
	// VisibleInAudit runs are shown in run listings. It is the default.
	VisibleInAudit Visibility = iota
	// VisibleInternally runs are in the journal only.
	VisibleInternally
	// VisibleInDebug runs are shown in debug output.
	VisibleInDebug
	// VisibleToUser runs are shown in the user's own stream.
	VisibleToUser
)

var visibilityNames = map[Visibility]string{
	VisibleInternally: "internal", VisibleInDebug: "debug", VisibleInAudit: "user_audit", VisibleToUser: "user_visible",
}

// String returns the wire name.
func (v Visibility) String() string { return enumName("visibility", visibilityNames, v) }

// MarshalText writes the wire name.
func (v Visibility) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the wire name.
func (v *Visibility) UnmarshalText(text []byte) error {
	return enumParse("visibility", visibilityNames, v, text)
}

func enumName[T ~uint8](what string, names map[T]string, v T) string {
	if name, ok := names[v]; ok {
		return name
	}
	return fmt.Sprintf("%s(%d)", what, uint8(v))
}

func enumParse[T ~uint8](what string, names map[T]string, v *T, text []byte) error {
	known := make([]string, 0, len(names))
	for value, name := range names {
		if name == string(text) {
			*v = value
			return nil
		}
		known = append(known, name)
	}
	return fmt.Errorf("unknown %s %q (known: %s)", what, text, sortedList(known))
}
