package anthropic

import (
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// leastThinking is the smallest budget for thinking that the service takes.
const leastThinking = 1024

// thinkingFor returns the thinking that fits into a response; none if it is to be quiet.
func (m *Model) thinkingFor(bound int, quiet bool) sdk.ThinkingConfigParamUnion {
	budget := min(m.thinking, bound-1)
	switch {
	case m.thinking == Adaptive:
		return m.adaptive(sdk.ThinkingConfigAdaptiveDisplaySummarized)
	case !quiet && budget >= leastThinking:
		enabled := &sdk.ThinkingConfigEnabledParam{BudgetTokens: int64(budget)}
		if m.binds {
			enabled.SetExtraFields(dropUnbound)
		}
		return sdk.ThinkingConfigParamUnion{OfEnabled: enabled}
	case m.binds: // it thinks by itself, and there is no other place to say what follows
		return m.adaptive("")
	default:
		return sdk.ThinkingConfigParamUnion{}
	}
}

// adaptive lets the model decide how much it thinks.
func (m *Model) adaptive(display sdk.ThinkingConfigAdaptiveDisplay) sdk.ThinkingConfigParamUnion {
	adaptive := &sdk.ThinkingConfigAdaptiveParam{Display: display}
	if m.binds {
		adaptive.SetExtraFields(dropUnbound)
	}
	return sdk.ThinkingConfigParamUnion{OfAdaptive: adaptive}
}

// Models that bind their thinking to all that came before it refuse a request where that
// has changed, as it does when the context is summed up, when tools or the system prompt
// are others, and behind an ephemeral reminder. They are told to forget such thinking
// instead. It takes a header that lets a request say so.
var dropUnbound = map[string]any{"block_binding": map[string]any{"prefix_mismatch_behavior": "drop_block"}}

const bindingHeader = "thinking-binding-controls-2026-08-01"

// bindsThinking reports whether a model is one of those: Claude 5.1 or later. Names are
// claude-opus-5-5, or claude-opus-5-5-20261001; a gateway may put a vendor before them.
func bindsThinking(model string) bool {
	_, version, ok := strings.Cut(model[strings.LastIndexByte(model, '/')+1:], "claude-")
	if !ok {
		return false
	}
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	numbers := [2]int{}
	for i, part := range parts[:min(len(parts), len(numbers))] {
		if n, err := strconv.Atoi(part); err == nil && n < 100 { // or it is a date
			numbers[i] = n
		}
	}
	return numbers[0] > 5 || numbers[0] == 5 && numbers[1] >= 1
}
