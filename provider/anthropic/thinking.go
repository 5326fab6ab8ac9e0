package anthropic

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
)

// leastThinking is the smallest thinking budget that the service accepts.
const leastThinking = 1024

// thinkingFor returns the thinking settings of a request. The number thinking is a budget in
// tokens or [Adaptive], and bound limits the whole response. If quiet is set, there is no
// budget.
func (m *Model) thinkingFor(thinking, bound int, quiet bool) *thinkingConfig {
	budget := min(thinking, bound-1)
	switch {
	case thinking == Adaptive:
		return &thinkingConfig{Type: "adaptive", Display: "summarized", BlockBinding: m.binding()}
	case !quiet && budget >= leastThinking:
		return &thinkingConfig{Type: "enabled", BudgetTokens: budget, BlockBinding: m.binding()}
	case m.binds: // this model always thinks, and block_binding is a field of thinkingConfig
		return &thinkingConfig{Type: "adaptive", BlockBinding: m.binding()}
	default:
		return nil
	}
}

// ignored returns why a request has no thinking budget although one is set, or nil.
func (m *Model) ignored(req *belay.Request, quiet bool) []string {
	thinking, bound := cmp.Or(req.Settings.Thinking, m.thinking), m.boundOf(req)
	switch {
	case thinking <= 0: // none, or Adaptive
		return nil
	case quiet:
		return []string{"the thinking budget, because the turn began without thinking, and the service rejects a budget then; the next turn has it again"}
	case min(thinking, bound-1) < leastThinking:
		return []string{fmt.Sprintf("the thinking budget, because the response is limited to %d tokens: set MaxTokens to more than %d", bound, leastThinking)}
	default:
		return nil
	}
}

// binding asks the service to drop thinking if anything before it has changed: messages,
// tools or the system prompt. Messages change after a compaction or an ephemeral reminder.
// Without this field, models that bind their thinking reject the request. The field needs
// the header bindingHeader.
func (m *Model) binding() *blockBinding {
	if !m.binds {
		return nil
	}
	return &blockBinding{PrefixMismatch: "drop_block"}
}

const bindingHeader = "thinking-binding-controls-2026-08-01"

// bindsThinking reports whether a model binds its thinking to the messages before it. Claude
// 5.1 and later do. A name looks like claude-opus-5-5 or claude-opus-5-5-20261001. A gateway
// may add a vendor before the name.
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
