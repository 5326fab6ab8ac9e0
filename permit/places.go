package permit

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Places returns a fingerprint of the paths that the call names and of the places that
// they lead to now: sorted hashes, separated by blanks. It does not cover links below a
// directory that the call searches. It is the Places of [belay.Authorization].
func (e *Explanation) Places() string {
	places := make([]string, 0, len(e.Findings))
	for i := range e.Findings {
		f := &e.Findings[i]
		sum := sha256.Sum256([]byte(strings.Join([]string{string(f.Kind), f.Subject, f.tree}, "\x00")))
		places = append(places, hex.EncodeToString(sum[:12]))
	}
	slices.Sort(places)
	return strings.Join(slices.Compact(places), " ")
}
