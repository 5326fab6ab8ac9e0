package hooktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

// SPEC H-19
func TestDescriptorIsThatOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	hooktest.Descriptor(t, filepath.Join("testdata", "descriptors.json"), described("1", hook.CanBlock)...)
}

// described returns two subscriptions of one handler, on two phases, and one subscription
// of another handler.
func described(version string, can hook.Capability) []hook.Subscription {
	return []hook.Subscription{
		uploaded.On("watch", answers(remark{}), &hook.Options{Version: "2"}),
		noSecrets,
		upload.On("watch", answers(verdict{}), &hook.Options{Version: "2", Capabilities: hook.CanAudit}),
		upload.On("quota", answers(verdict{}), &hook.Options{Version: version, Kind: hook.HandlerCommand, Capabilities: can}),
	}
}

// copied returns a copy of the golden file with its line ends replaced. A test may
// overwrite the copy. copied skips the test if golden files are being updated, because no
// comparison fails then.
func copied(t *testing.T, lineEnd string) string {
	t.Helper()
	if os.Getenv("HOOKTEST_UPDATE") == "1" {
		t.Skip("golden files are being updated")
	}
	stored, err := os.ReadFile(filepath.Join("testdata", "descriptors.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.ReplaceAll(string(stored), "\r\n", "\n"), "\n", lineEnd)
	golden := filepath.Join(t.TempDir(), "descriptors.json")
	if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return golden
}

// SPEC H-19
func TestDescriptorCatchesAChange(t *testing.T) {
	t.Parallel()
	golden := copied(t, "\n")
	for _, test := range []struct {
		rule string
		subs []hook.Subscription
		want []string
	}{
		{"a new version", described("2", hook.CanBlock), []string{`-     "version": "1",`, `+     "version": "2",`, "HOOKTEST_UPDATE=1"}},
		{"a new capability", described("1", hook.CanBlock|hook.CanAsk), []string{`+       "ask"`, "descriptors.json"}},
		{"a handler that is gone", described("1", hook.CanBlock)[:3], []string{`-     "id": "quota",`}},
		{"a phase that is gone", described("1", hook.CanBlock)[1:], []string{`-       "uploaded"`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			probetest.Run(t, func(t testing.TB) { hooktest.Descriptor(t, golden, test.subs...) }).WantFailure(t, test.want...)
		})
	}
}

func TestDescriptorReadsOtherLineEnds(t *testing.T) {
	t.Parallel()
	golden := copied(t, "\r\n")
	hooktest.Descriptor(t, golden, described("1", hook.CanBlock)...)
}

func TestDescriptorTellsHowToBegin(t *testing.T) {
	t.Parallel()
	golden := copied(t, "\n") + ".none"
	probetest.Run(t, func(t testing.TB) { hooktest.Descriptor(t, golden, noSecrets) }).
		WantFailure(t, "there is no golden file", "HOOKTEST_UPDATE=1", `"id": "no-secrets"`)
	probetest.Run(t, func(t testing.TB) { hooktest.Descriptor(t, t.TempDir(), noSecrets) }).WantFailure(t, "cannot read the golden file")
}

// This test changes the environment, so it cannot run in parallel.
func TestDescriptorUpdates(t *testing.T) {
	golden := filepath.Join(t.TempDir(), "new", "descriptors.json")
	t.Setenv("HOOKTEST_UPDATE", "1")
	hooktest.Descriptor(t, golden, described("1", hook.CanBlock)...)
	hooktest.Descriptor(t, golden, described("7", hook.CanBlock)...)
	t.Setenv("HOOKTEST_UPDATE", "0")
	hooktest.Descriptor(t, golden, described("7", hook.CanBlock)...)
	t.Setenv("HOOKTEST_UPDATE", "1")
	probetest.Run(t, func(t testing.TB) { hooktest.Descriptor(t, filepath.Join(golden, "below-a-file"), noSecrets) }).
		WantFailure(t, "cannot update the golden file")
}

func TestLineDiff(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, a, b, want string }{
		{"equal texts differ in nothing", "a\nb\n", "a\nb\n", "  ...\n"},
		{"a changed line is shown twice", "a\nb\nc\n", "a\nx\nc\n", "  a\n- b\n+ x\n  c\n"},
		{"what is equal is cut short", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\n7\n", "  ...\n  4\n  5\n- 6\n+ 7\n"},
		{"a line that is added is marked", "a\n", "a\nb\n", "  a\n+ b\n"},
		{"a line that is gone is marked", "a\nb\n", "b\n", "- a\n  b\n"},
		{"an empty text is all new", "", "a\n", "+ a\n"},
		{"a last line may lack its end", "a", "b", "- a\n+ b\n"},
		{"a line that moves is gone and new", "a\nb\nc\n", "b\nc\na\n", "- a\n  b\n  c\n+ a\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := hooktest.LineDiff(test.a, test.b); got != test.want {
				t.Errorf("diff =\n%swant\n%s", got, test.want)
			}
		})
	}
}
