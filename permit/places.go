package permit

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Places returns a fingerprint of what the call uses: sorted hashes of the findings,
// separated by blanks. The fingerprint changes if a path of the call leads to another
// file. It does not cover links below a directory that the call searches. Use it as
// Places in [belay.Authorization].
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
