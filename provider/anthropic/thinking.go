package anthropic

import (
	"strconv"
	"strings"
)

// leastThinking is the smallest budget for thinking that the service accepts.
const leastThinking = 1024

// thinkingFor returns the settings for thinking of so many tokens in a response of at most
// bound tokens. If quiet is set the model gets no budget.
func (m *Model) thinkingFor(thinking, bound int, quiet bool) *thinkingConfig {
	budget := min(thinking, bound-1)
	switch {
	case thinking == Adaptive:
		return &thinkingConfig{Type: "adaptive", Display: "summarized", BlockBinding: m.binding()}
	case !quiet && budget >= leastThinking:
		return &thinkingConfig{Type: "enabled", BudgetTokens: budget, BlockBinding: m.binding()}
	case m.binds: // it thinks anyway, and block_binding has no other place
		return &thinkingConfig{Type: "adaptive", BlockBinding: m.binding()}
	default:
		return nil
	}
}

// binding asks the service to drop thinking whose preceding messages have changed. Models
// that bind their thinking would otherwise reject the request: after a compaction, with other
// tools or another system prompt, and after an ephemeral reminder. The field needs the header
// bindingHeader.
func (m *Model) binding() *blockBinding {
	if !m.binds {
		return nil
	}
	return &blockBinding{PrefixMismatch: "drop_block"}
}

const bindingHeader = "thinking-binding-controls-2026-08-01"

// bindsThinking reports whether a model binds its thinking: Claude 5.1 and later do. Names
// look like claude-opus-5-5 or claude-opus-5-5-20261001, and a gateway may put a vendor
// before them.
func bindsThinking(model string) bool {
	_, version, ok := strings.Cut(model[strings.LastIndexByte(model, '/')+1:], "claude-")
	if !ok {
		return false
	}
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	numbers := [2]int{}
	for i, part := range parts[:min(len(parts), len(numbers))] {
		if n, err := strconv.Atoi(part); err == nil && n < 100 { // a larger number is a date
			numbers[i] = n
		}
	}
	return numbers[0] > 5 || numbers[0] == 5 && numbers[1] >= 1
}
