package scripted

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/near"
)

// suggestion returns the nearest known word, or if none is near, all of them.
func suggestion(word string, known []string) string {
	if hint := near.Hint(word, known); hint != "" {
		return hint
	}
	return fmt.Sprintf(": use one of %s", strings.Join(known, ", "))
}
