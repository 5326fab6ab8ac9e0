package belay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
)

// Each gate has its own type of decision. In JSON, "pass" and an empty text mean the same.
// A word that the gate does not know is refused.

// UnmarshalText reads pass or deny.
func (d *promptDecision) UnmarshalText(text []byte) error {
	return parseDecision(d, text, promptDecisions)
}

// UnmarshalText reads pass, ask, deny or halt.
func (d *ToolDecision) UnmarshalText(text []byte) error { return parseDecision(d, text, toolDecisions) }

// UnmarshalText reads pass, allow or deny.
func (d *approvalDecision) UnmarshalText(text []byte) error {
	return parseDecision(d, text, approvalDecisions)
}

// UnmarshalText reads pass or deny.
func (d *subagentDecision) UnmarshalText(text []byte) error {
	return parseDecision(d, text, subagentDecisions)
}

// UnmarshalText reads pass or continue.
func (d *stopDecision) UnmarshalText(text []byte) error { return parseDecision(d, text, stopDecisions) }

// Words returns the words that the gate knows.
func (d promptDecision) Words() []string { return promptDecisions }

// Words returns the words that the gate knows.
func (d approvalDecision) Words() []string { return approvalDecisions }

// Words returns the words that the gate knows.
func (d subagentDecision) Words() []string { return subagentDecisions }

// Words returns the words that the gate knows.
func (d stopDecision) Words() []string { return stopDecisions }

// The words of each gate, for decoding and for the schemas.
var (
	promptDecisions   = []string{"pass", "deny"}
	toolDecisions     = []string{"pass", "ask", "deny", "halt"}
	approvalDecisions = []string{"pass", "allow", "deny"}
	subagentDecisions = []string{"pass", "deny"}
	stopDecisions     = []string{"pass", "continue"}
)

// checked marks an answer as malformed if its decision is not one of the gate's words. At a
// gate that fails closed that denies: a typing error is not consent.
func checked[D ~string](decision D, words []string, ans *hook.Answer) *hook.Answer {
	if decision == "" || slices.Contains(words, string(decision)) {
		return ans
	}
	ans.Invalid = "its decision is not one of " + strings.Join(words, ", ")
	return ans
}

func parseDecision[D ~string](d *D, text []byte, words []string) error {
	word := string(text)
	switch {
	case word == "pass" || word == "":
		*d = ""
	case slices.Contains(words, word):
		*d = D(word)
	default:
		return fmt.Errorf("unknown decision %q: want %s", word, strings.Join(words, ", "))
	}
	return nil
}

// knownDecision returns a decision in the form that its gate uses. "pass" is the same as no
// decision. An unknown word becomes the refusal: a typing error is not consent.
func knownDecision[D ~string](d D, words []string, refusal D) D {
	switch {
	case d == "" || d == "pass":
		return ""
	case slices.Contains(words, string(d)):
		return d
	default:
		return refusal
	}
}
