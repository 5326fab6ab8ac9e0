package belay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
)

// Each gate has its own type of decision. In JSON, "pass" and an empty text mean the
// same. Decoding fails for any other word that is not a decision of the gate.

// UnmarshalText accepts pass or deny.
func (d *promptDecision) UnmarshalText(text []byte) error {
	return parseDecision(d, text, promptDecisions)
}

// UnmarshalText accepts pass, ask, deny or halt.
func (d *ToolDecision) UnmarshalText(text []byte) error { return parseDecision(d, text, toolDecisions) }

// UnmarshalText accepts pass, allow or deny.
func (d *approvalDecision) UnmarshalText(text []byte) error {
	return parseDecision(d, text, approvalDecisions)
}

// UnmarshalText accepts pass or deny.
func (d *subagentDecision) UnmarshalText(text []byte) error {
	return parseDecision(d, text, subagentDecisions)
}

// UnmarshalText accepts pass or continue.
func (d *stopDecision) UnmarshalText(text []byte) error { return parseDecision(d, text, stopDecisions) }

// Words returns the decisions of the gate.
func (d promptDecision) Words() []string { return promptDecisions }

// Words returns the decisions of the gate.
func (d approvalDecision) Words() []string { return approvalDecisions }

// Words returns the decisions of the gate.
func (d subagentDecision) Words() []string { return subagentDecisions }

// Words returns the decisions of the gate.
func (d stopDecision) Words() []string { return stopDecisions }

// The decisions of each gate, for decoding and for the schemas.
var (
	promptDecisions   = []string{"pass", "deny"}
	toolDecisions     = []string{"pass", "ask", "deny", "halt"}
	approvalDecisions = []string{"pass", "allow", "deny"}
	subagentDecisions = []string{"pass", "deny"}
	stopDecisions     = []string{"pass", "continue"}
)

// checked marks an answer as invalid if the gate does not know its decision. An invalid
// answer counts as a failure of the hook. At most of the gates a failure denies. At the
// others it changes nothing. So a typing error never allows anything.
func checked[D ~string](decision D, words []string, ans *hook.Answer) *hook.Answer {
	if decision == "" || slices.Contains(words, string(decision)) {
		return ans
	}
	ans.Invalid = "the decision is not one of " + strings.Join(words, ", ")
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

// knownDecision returns a decision in the form that its gate uses: "pass" becomes "". An
// unknown word becomes the refusal, so that a typing error never allows anything.
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
