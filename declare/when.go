package declare

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
)

const (
	// costLimit limits the cost of evaluating a condition. One step costs about 1. Ten
	// characters of text also cost about 1.
	costLimit = 1_000_000
	// longestWhen is the maximum length of a condition in characters.
	longestWhen = 4096
)

// condition is a CEL expression over the input of a phase. It implements
// [hook.Condition].
type condition struct {
	text    string
	phase   string
	program cel.Program
	wire    *phasejson.Phase
}

var _ hook.Condition = (*condition)(nil)

// environment returns the CEL environment for a phase. It has the variable input, which
// is the phase's input. If the phase is about a tool, it also has args, which is the
// tool's input.
func environment(phase hook.AnyPhase) (*cel.Env, error) {
	described, err := phasejson.Describe(phase.Name())
	if err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	provider, err := newFieldTypes(phase.Name(), described.Input)
	if err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	opts := []cel.EnvOption{
		cel.CustomTypeProvider(provider),
		cel.Variable("input", cel.ObjectType(provider.root)),
		cel.ParserExpressionSizeLimit(longestWhen),
		cel.ParserRecursionLimit(100),
		cel.Function("clean", cel.Overload("clean_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(clean))),
	}
	if hasArgs(phase) {
		opts = append(opts, cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	return env, nil
}

// clean is the CEL function clean. It returns the shortest form of a path, as path.Clean
// does: without // and ., and with .. only at the start of a relative path. It does not
// follow links, and a relative path stays relative.
func clean(v ref.Val) ref.Val { //nolint:ireturn // the library defines it
	text, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	return types.String(path.Clean(string(text)))
}

// withArgs is a phase input that contains the input of a tool.
type withArgs interface{ Input() json.RawMessage }

func hasArgs(phase hook.AnyPhase) bool {
	in, _ := phase.Types()
	_, ok := in.MethodByName("Input")
	return ok
}

// compile checks and compiles an expression.
func compile(env *cel.Env, phase *phasejson.Phase, text string) (*condition, error) {
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		message := issues.Errors()[0].Message
		if strings.Contains(message, "undeclared reference to 'args'") {
			message = phase.Name() + " has no tool input: use input"
		}
		message = plainly(message, phase.Name())
		return nil, fmt.Errorf("%s (in %s)", message, text)
	}
	if t := ast.OutputType(); !t.IsExactType(types.BoolType) && !t.IsExactType(types.DynType) {
		return nil, fmt.Errorf("the result has the type %s, but it must be true or false (in %s)", t, text)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, text)
	}
	return &condition{text, phase.Name(), program, phase}, nil
}

// plainly makes a message of the CEL library clearer for the author of the expression.
func plainly(message, phase string) string {
	switch {
	case strings.Contains(message, "<EOF>"):
		return "the expression is not complete: is a bracket, a quotation mark or an operand missing at its end?"
	case strings.Contains(message, "expecting"):
		before, _, _ := strings.Cut(message, " expecting")
		return before
	case strings.Contains(message, "undefined field"):
		return message + ": `belay hooks schema " + phase + "` lists the fields of input"
	default:
		return message
	}
}

// String returns the expression.
func (c *condition) String() string { return c.text }

// Check returns an error if the condition was compiled for another phase.
func (c *condition) Check(phase hook.AnyPhase, _ any) error {
	if phase.Name() != c.phase {
		return fmt.Errorf("the condition was written for the phase %s", c.phase)
	}
	return nil
}

// Holds evaluates the expression. A missing value, a wrong type, or a too expensive
// expression is an error.
func (c *condition) Holds(input any) (bool, error) {
	result, _, err := c.program.Eval(&activation{in: input, wire: c.wire})
	if err != nil {
		return false, fmt.Errorf("when: %w", err)
	}
	held, ok := result.Value().(bool)
	if !ok {
		return false, errors.New("when: the result is neither true nor false")
	}
	return held, nil
}

// activation gives the variables to CEL. It reads an input only when the expression uses
// it.
type activation struct {
	in    any
	wire  *phasejson.Phase
	args  any
	input any
}

// ResolveName returns the value of a variable.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		if a.args == nil {
			a.args = a.readArgs()
		}
		return a.args, true
	case "input":
		if a.input == nil {
			a.input = &object{wire: a.wire, in: a.in}
		}
		return a.input, true
	default:
		return nil, false
	}
}

// Parent returns nil, because there is no outer activation.
func (a *activation) Parent() cel.Activation { return nil } //nolint:ireturn // the interface asks for it

func (a *activation) readArgs() any {
	tool, ok := a.in.(withArgs)
	if !ok {
		return types.NewErr("there is no tool input")
	}
	args, err := newLazyMap(tool.Input())
	if err != nil {
		return types.NewErr("the tool's input cannot be read: %v", err)
	}
	return args
}
