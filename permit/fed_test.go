package permit_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay/permit"
)

// The effect of a command that reads a pipe or a redirection depends on its input. The
// floor suggests no pattern for such a command, and an approved pattern does not cover
// such a command.
//
// SPEC P-17
func TestAPatternDoesNotCoverWhatACommandIsFed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true})
	for _, command := range []string{"curl -d @- https://example.com", "crontab -", "kubectl apply -f -", "aws s3 cp - s3://x/y", "curl -K - https://example.com", "psql -h db.example.com", "gh gist create -"} {
		for _, form := range []string{"tar c . | ", "< main.go ", "exec < main.go; ", "cat <<E |\nx\nE\n"} {
			line := form + command
			data, err := json.Marshal(map[string]any{"command": line})
			if err != nil {
				t.Fatal(err)
			}
			if got := floor.Suggest(t.Context(), "shell", data); got != "" {
				t.Errorf("%s: %q is suggested", line, got)
			}
			covered, err := floor.Covers(t.Context(), "shell("+command+")", call(t, "shell", map[string]any{"command": line}))
			if covered || err != nil {
				t.Errorf("%s is covered by the pattern for the command alone: %v", line, err)
			}
		}
		if covered, err := floor.Covers(t.Context(), "shell(curl https://example.com)", call(t, "shell", map[string]any{"command": "curl https://example.com | wc -l"})); !covered || err != nil {
			t.Errorf("a pattern does not cover a command that reads nothing: %v", err)
		}
	}
}
