package declare

import (
	"strings"
	"testing"
)

// Error messages of libraries are replaced by clearer ones for the author of the file.
func TestMistakesAreToldPlainly(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct{ file, want, not string }{
		"an expression that ends too early": {
			"hooks:\n  - id: a\n    phase: tool.pre\n    match: {when: '(args.path == '}\n    action: deny\n", "a.yaml:4: when: the expression is not complete", "EOF",
		},
		"a field that there is not": {
			"hooks:\n  - id: a\n    phase: tool.pre\n    match: {when: 'input.prompt == \"x\"'}\n    action: deny\n", "undefined field 'prompt': `belay hooks schema tool.pre` lists the fields of input", "<EOF>",
		},
		"a list that is not closed": {
			"hooks: [{id: a, phase: tool.pre, action: deny}\n", "is a ] or a comma missing?", "token",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("a.yaml", []byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), test.not) {
				t.Errorf("it says %v, want %q and no %q", err, test.want, test.not)
			}
		})
	}
}
