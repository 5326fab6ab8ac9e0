package belay

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/policy"
)

// TurnPolicy is the answer at turn.pre_policy: settings for this turn.
type TurnPolicy struct {
	// Policy holds the settings. Make them with a [policy.Key].
	Policy policy.Settings `json:"policy,omitempty" jsonschema:"settings for this turn; each has a key"`
	Aside
}

// SetPolicy returns an answer with the settings.
func SetPolicy(settings ...policy.Setting) TurnPolicy {
	return TurnPolicy{Policy: slices.Clone(settings)}
}

// Answer returns the policy in the form that the hook runtime uses.
func (t TurnPolicy) Answer() *hook.Answer {
	var parts []hook.Part
	for _, s := range t.Policy {
		parts = append(parts, hook.Part{Kind: "policy", Needs: hook.CanSetPolicy, Content: s.String()})
	}
	return answer(hook.SeverityPass, parts, t.Note, t.Context...)
}

func mergePolicy(m *hook.Merging, merged, t TurnPolicy) TurnPolicy {
	settings, conflicts := merged.Policy.Merge(t.Policy)
	for _, key := range conflicts {
		m.Diagnose(codes.PolicyConflict, fmt.Sprintf("hooks set the policy key %q to conflicting values; the first valid value is used", key))
	}
	merged.Policy = settings
	merged.Aside = mergeAside(m, merged.Aside, t.Aside)
	return merged
}
