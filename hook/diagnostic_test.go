package hook_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// The table has every constant and no other code. The documentation is made from the table.
//
// SPEC H-16
func TestEveryCodeIsInTheTable(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "codes/codes.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var constants []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Code" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		constants = append(constants, value)
		return true
	})
	if len(constants) < 20 {
		t.Fatalf("only %d constants found: the test does not look at the right thing", len(constants))
	}
	var table []string
	for _, info := range codes.All() {
		table = append(table, string(info.Code))
		if !regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`).MatchString(string(info.Code)) {
			t.Errorf("%s: a code is two dotted words", info.Code)
		}
		for _, text := range []string{info.Meaning, info.Remedy} {
			if text == "" || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", info.Code, text)
			}
		}
		if !slices.Contains([]codes.Level{codes.LevelInfo, codes.LevelWarn, codes.LevelError}, info.Level) {
			t.Errorf("%s: unknown level %q", info.Code, info.Level)
		}
		equal(t, "level of "+string(info.Code), info.Code.Level(), info.Level)
	}
	slices.Sort(constants)
	slices.Sort(table)
	same(t, "codes in the table", table, constants)
	equal(t, "codes that are there twice", len(table)-len(slices.Compact(table)), 0)
}

// These codes must not change, because the specification names them.
//
// SPEC H-16
func TestCodesAreStable(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]string{
		codes.Timeout: "hook.timeout", codes.Panic: "hook.panic", codes.CapabilityMissing: "hook.capability_missing",
		codes.OutputInvalid: "hook.output_invalid", codes.Quarantined: "hook.quarantined",
		codes.PolicyConflict: "policy.conflict", codes.SectionTruncated: "prompt_section.truncated",
	} {
		equal(t, "code", string(code), want)
	}
	equal(t, "level of a code that nobody knows", codes.Code("x.y").Level(), codes.LevelWarn)
	table := codes.All()
	table[0].Code = "spoilt"
	equal(t, "the table after a caller changed its copy", codes.All()[0].Code, codes.Error)
}

// SPEC H-16
func TestDiagnosticReadsWell(t *testing.T) {
	t.Parallel()
	d := hook.Diagnostic{Code: codes.Timeout, Phase: "tool.pre", Subscription: "no-prod", Message: "no answer within 1s"}
	equal(t, "text", d.String(), "hook.timeout no-prod at tool.pre: no answer within 1s")
	equal(t, "text of a bare code", hook.Diagnostic{Code: codes.Timeout}.String(), "hook.timeout")
}

// The record gets a handler's own code and message only from a SafeError. They are cut at
// 512 characters, not bytes.
//
// SPEC H-16, J-02
func TestSafeErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 600)
	for _, test := range []struct {
		rule    string
		err     error
		code    codes.Code
		message string
	}{
		{"an ordinary error is recorded only with its class", errors.New("secret"), codes.Error, ""},
		{"a safe error is recorded with its message", &hook.SafeError{Message: "no config"}, codes.Error, "no config"},
		{"a safe error is recorded with its code", &hook.SafeError{Code: "my.code", Message: "no config"}, "my.code", "no config"},
		{"the cause of a safe error is not recorded", &hook.SafeError{Message: "no config", Err: errors.New("secret")}, codes.Error, "no config"},
		{"the reason of a safe error is not recorded", &hook.SafeError{Message: "no config", Reason: "secret"}, codes.Error, "no config"},
		{"a safe error that is joined with others is recorded", errors.Join(errors.New("secret"), &hook.SafeError{Message: "no config"}), codes.Error, "no config"},
		{"a long message is cut", &hook.SafeError{Message: long}, codes.Error, strings.Repeat("ä", 512)},
		{"a message of 512 characters is not cut", &hook.SafeError{Message: long[:1024]}, codes.Error, long[:1024]},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, nil, observePhase.On("a", fails[remark](test.err), nil))
			s := snapshot(t, rt)
			out := dispatch(t, observePhase, s, write)
			run := runOf(t, s.Take(), "a")
			equal(t, "class", run.Class, test.code)
			equal(t, "message on record", run.Diagnostics[0].Message, test.message)
			equal(t, "message", out.Diagnostics[0].Message, test.message)
			if !errors.Is(out.Diagnostics[0].Err, test.err) {
				t.Errorf("the caller does not get the error itself: %v", out.Diagnostics[0].Err)
			}
		})
	}
}
