package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/near"
)

// Capability is a set of things that an answer may contribute. Each constant is a set with
// one element. Join them with |.
//
// A subscription declares what it may contribute. The grants of its origin limit what it
// may declare. If an answer contributes more, the run fails and the answer is dropped,
// except for a denial in it.
type Capability uint32

// The capabilities, with the names that files and grants use.
const (
	CanBlock         Capability = 1 << iota // block: deny, halt, continue
	CanAsk                                  // ask: ask a person
	CanAddContext                           // context: send text to the model
	CanAudit                                // audit: add notes to the record
	CanSchedule                             // jobs: schedule background work
	CanSetPolicy                            // policy: set turn policy
	CanAddSections                          // sections: contribute prompt sections
	CanAddTools                             // tools: contribute tool bundles
	CanRewriteInput                         // rewrite_input: change a tool's input
	CanRewriteOutput                        // rewrite_output: change a tool's result
	CanRewritePrompt                        // rewrite_prompt: change the user's text
	CanAnswer                               // answer: answer instead of the model
	CanApprove                              // approve: decide instead of a person

	capabilityEnd

	// NoCapability declares that a subscription contributes nothing. The zero Capability
	// means the phase's default.
	NoCapability Capability = 1 << 31
)

const allCapabilities = capabilityEnd - 1

// rewriting are the capabilities to rewrite. Handlers that have one run first, one at a
// time.
const rewriting = CanRewriteInput | CanRewriteOutput | CanRewritePrompt

// exceptional capabilities are never part of a default, because they change the
// contributions of others, or replace the answer of the model or of a person.
const exceptional = rewriting | CanAnswer | CanApprove

var capabilityNames = []string{
	"block", "ask", "context", "audit", "jobs", "policy", "sections", "tools",
	"rewrite_input", "rewrite_output", "rewrite_prompt", "answer", "approve",
}

// Has reports whether c contains every capability of other.
func (c Capability) Has(other Capability) bool { return other&^c == 0 }

// Names returns the names of the capabilities, in the order of the constants.
func (c Capability) Names() []string {
	names := make([]string, 0, len(capabilityNames))
	for i, name := range capabilityNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names joined with commas, or "none".
func (c Capability) String() string {
	if names := c.Names(); len(names) > 0 {
		return strings.Join(names, ",")
	}
	return "none"
}

// MarshalJSON writes a list of names.
func (c Capability) MarshalJSON() ([]byte, error) { return json.Marshal(c.Names()) }

// UnmarshalJSON reads a list of names.
func (c *Capability) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	parsed, err := ParseCapabilities(names...)
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// ParseCapabilities returns the set of the capabilities with these names.
func ParseCapabilities(names ...string) (Capability, error) {
	var set Capability
	for _, name := range names {
		i := slices.Index(capabilityNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown capability %q%s", name, near.Hint(name, capabilityNames))
		}
		set |= 1 << i
	}
	return set, nil
}

// OriginKind says who wrote a hook or another thing.
type OriginKind uint8

const (
	// OriginHost is the program's own Go code. It is the default.
	OriginHost OriginKind = iota
	// OriginOperator is the user's or the system's configuration.
	OriginOperator
	// OriginProject is a file in the repository that the agent works on.
	OriginProject
	// OriginSpace is an installed directory of hooks, skills and agents.
	OriginSpace
)

var originNames = map[OriginKind]string{OriginHost: "host", OriginOperator: "operator", OriginProject: "project", OriginSpace: "space"}

// String returns the wire name.
func (k OriginKind) String() string { return enumName("origin", originNames, k) }

// MarshalText writes the wire name.
func (k OriginKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the wire name.
func (k *OriginKind) UnmarshalText(text []byte) error {
	return enumParse("origin", originNames, k, text)
}

// Origin says where a subscription came from.
type Origin struct {
	Kind OriginKind `json:"kind"`
	Name string     `json:"name,omitempty"` // the space's id, for instance
	File string     `json:"file,omitempty"` // the declaring file
	Line int        `json:"line,omitempty"`
}

// String returns text such as "space demo (hooks/a.yaml:4)".
func (o Origin) String() string {
	var b strings.Builder
	b.WriteString(o.Kind.String())
	if o.Name != "" {
		b.WriteString(" " + o.Name)
	}
	if o.File != "" {
		fmt.Fprintf(&b, " (%s:%d)", o.File, o.Line)
	}
	return b.String()
}

// DefaultGrants returns what an origin may contribute by default. Host and operator may
// contribute everything. Project and space may observe, deny, ask, add context and add
// audit notes.
func DefaultGrants(o Origin) Capability {
	switch o.Kind {
	case OriginHost, OriginOperator:
		return allCapabilities
	default:
		return CanBlock | CanAsk | CanAddContext | CanAudit
	}
}
