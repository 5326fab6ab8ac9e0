package hook_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// misuse is a program with two phases. Each test case replaces BODY, and the result
// compiles or not.
const misuse = `package misuse

import (
	"context"

	"github.com/belay-run/belay/hook"
)

type (
	upload  struct{ name string }
	prompt  struct{ text string }
	allowed struct{ deny bool }
	section struct{ text string }
)

func (allowed) Answer() *hook.Answer { return nil }
func (section) Answer() *hook.Answer { return nil }

var (
	beforeUpload = hook.Define(hook.Definition[upload, allowed]{Name: "upload", Kind: hook.Gate})
	buildPrompt  = hook.Define(hook.Definition[prompt, section]{Name: "prompt", Kind: hook.Collect})
)

func judge(context.Context, upload) (allowed, error)    { return allowed{deny: true}, nil }
func decorate(context.Context, upload) (section, error) { return section{"be kind"}, nil }
func write(context.Context, prompt) (section, error)    { return section{"be kind"}, nil }

var _ = []any{beforeUpload, buildPrompt, judge, decorate, write}

BODY
`

// An answer that a phase cannot use does not compile. So nobody can install a handler whose
// answer would be ignored.
//
// SPEC H-01
func TestWrongAnswerDoesNotCompile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, body string
		want       []string // parts of the compiler's message; empty: the program compiles
	}{
		{
			rule: "a handler that answers with its phase's output compiles",
			body: `var _ = []hook.Subscription{beforeUpload.On("judge", judge, nil), buildPrompt.On("write", write, nil)}`,
		},
		{
			rule: "a handler that answers with another phase's output does not compile",
			body: `var _ = beforeUpload.On("decorate", decorate, nil)`,
			want: []string{"cannot use decorate", "(section, error)", "hook.Handler[upload, allowed]"},
		},
		{
			rule: "a handler that takes another phase's input does not compile",
			body: `var _ = buildPrompt.On("decorate", decorate, nil)`,
			want: []string{"cannot use decorate", "upload", "hook.Handler[prompt, section]"},
		},
		{
			rule: "a fallback of the phase's output compiles",
			body: `var _ = hook.Options{Failure: beforeUpload.Fallback(allowed{})}`,
		},
		{
			rule: "a fallback of another phase's output does not compile",
			body: `var _ = hook.Options{Failure: beforeUpload.Fallback(section{})}`,
			want: []string{"cannot use section{}", "allowed"},
		},
		{
			rule: "an output type without the method Answer does not compile",
			body: `var _ hook.Definition[upload, string]`,
			want: []string{"string does not satisfy hook.Output", "missing method Answer"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			message := compile(t, strings.Replace(misuse, "BODY", test.body, 1))
			if len(test.want) == 0 && message != "" {
				t.Fatalf("it does not compile:\n%s", message)
			}
			if len(test.want) > 0 && message == "" {
				t.Fatal("it compiles")
			}
			if strings.Count(message, "misuse.go:") > 1 {
				t.Errorf("there is more than one mistake:\n%s", message)
			}
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					t.Errorf("the compiler says nothing of %q:\n%s", want, message)
				}
			}
		})
	}
}

// compile builds a package with one file, using an overlay, and returns the compiler's
// output.
func compile(t *testing.T, src string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "misuse.go")
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(here, "misuse", "misuse.go"): file},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{file: []byte(src), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "./misuse")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off", "GOWORK=off") // without cgo, other steps have compiled what it needs
	out, err := cmd.CombinedOutput()
	if (err == nil) != (len(out) == 0) {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return string(out)
}
