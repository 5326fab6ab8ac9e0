package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
)

// README.md shows the same hook that "hooks new" writes.
func TestReadmeShowsTheHookThatIsWritten(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	h := &newHook{id: "no-prod", phase: belay.ToolPre.Name(), tools: []string{"write", "edit"}}
	contains(t, string(readme), h.declaration(), "belay hooks new no-prod --tools write,edit")
}

// For every phase, the new hook loads, its example input is valid, and its script says what
// exit code 2 means.
func TestNewHooksFitTheirPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range belay.Phases() {
		t.Run(phase.Name(), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			d.must("hooks", "new", "mine", "--phase", phase.Name())
			contains(t, d.out.String(), "shadow mode: ", "belay hooks try project/mine --input -")
			_, call, _ := strings.Cut(d.out.String(), "echo '")
			call, _, _ = strings.Cut(call, "' |")
			if !json.Valid([]byte(call)) {
				t.Fatalf("%q is not JSON", call)
			}
			file := filepath.Join(d.dir, "call.json")
			if err := os.WriteFile(file, []byte(call), 0o600); err != nil {
				t.Fatal(err)
			}
			script, err := os.ReadFile(filepath.Join(d.dir, ".belay", "hooks", "mine.sh"))
			if err != nil {
				t.Fatal(err)
			}
			want := "Exit 2: recorded, but stops nothing at this phase"
			switch {
			case phase.Name() == "turn.stop":
				want = "Exit 2: the turn continues"
			case phase.Info().Kind.String() == "gate":
				want = "Exit 2: deny"
			}
			contains(t, string(script), want)
			d.must("trust", "--yes")
			contains(t, d.out.String(), "project/mine at "+phase.Name(), "shadow mode: Belay ignores its answer")
			d.must("hooks", "try", "project/mine", "--input", file)
			contains(t, d.out.String(), "project/mine")
			if strings.Contains(d.out.String(), "not asked") {
				t.Errorf("the input to try it with does not match:\n%s", &d.out)
			}
			h := &newHook{id: "mine", phase: phase.Name(), worker: true}
			if _, err := declare.Parse("mine.yaml", []byte(h.declaration())); err != nil {
				t.Error(err)
			}
		})
	}
}
