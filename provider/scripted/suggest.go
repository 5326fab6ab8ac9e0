package scripted

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/near"
)

// suggestion returns a hint with a similar known word. If there is none, it lists all known
// words.
func suggestion(word string, known []string) string {
	if hint := near.Hint(word, known); hint != "" {
		return hint
	}
	return fmt.Sprintf(": use one of %s", strings.Join(known, ", "))
}
