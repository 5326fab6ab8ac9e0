// Package belay is an agent runtime. Everything around the model (policy,
// context, tools, approvals, memory, skills, subagents, audit) hangs on one
// typed hook runtime that orders it, bounds it, records it and can explain it.
//
// So far the package holds the phases of an agent: the moments at which a
// program can look, steer and stop. The loop that fires them comes next.
//
// # Usage
//
// A hook is a function on a phase. Each phase has its own input and its own
// answer, so a hook that answers what its phase cannot use does not compile:
//
//	var NoProd = belay.ToolPre.On("no-prod", noProd, &hook.Options{
//		Match: hook.Match{Tools: []string{"write", "edit"}},
//	})
//
//	func noProd(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
//		var in struct{ Path string }
//		if err := call.Decode(&in); err != nil {
//			return belay.Pass, err // tool.pre is a gate: an error denies
//		}
//		if !path.IsAbs(in.Path) {
//			return belay.Pass, errors.New("the path is missing or relative")
//		}
//		if strings.HasPrefix(path.Clean(in.Path)+"/", "/srv/prod/") {
//			return belay.Deny("production is off limits in this session"), nil
//		}
//		return belay.Pass, nil
//	}
//
// [Phases] lists the phases; docs/hooks.md says when each fires and what its
// handlers may do. Package hook has the runtime that they are installed in.
//
// # Concurrency
//
// Inputs are immutable values and safe to share between goroutines. Answers
// are plain data: fill one in and return it, and do not touch it afterwards.
//
// # Errors
//
// A denied tool is a verdict, not an error. An error that a handler returns is
// a failure of the handler, and means what the subscription's failure mode
// says: at a gate, denial, unless the gate is one of the two that fail open.
//
// # Testing
//
// A handler is a plain function of an input that can be written as JSON:
// hooktest.Input makes one, and hooktest.Try runs a subscription on it as a
// runtime would.
package belay
