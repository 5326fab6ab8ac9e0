package scripted

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/near"
)

// suggestion says what somebody may have meant: the nearest of the known words,
// or if none is near, any of them.
func suggestion(word string, known []string) string {
	if hint := near.Hint(word, known); hint != "" {
		return hint
	}
	return fmt.Sprintf(": use one of %s", strings.Join(known, ", "))
}
