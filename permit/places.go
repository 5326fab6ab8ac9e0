package permit

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Places returns a text that identifies what the call names, and where its paths lead now,
// with links followed. Two judgements of the same call have the same text unless a path
// leads elsewhere. It says nothing about links below a directory that the call goes through.
// It is the Places of [belay.Authorization].
func (e *Explanation) Places() string {
	var places []string
	for i := range e.Findings {
		f := &e.Findings[i]
		places = append(places, strings.Join([]string{string(f.Kind), f.Subject, f.tree}, "\x00"))
	}
	if len(places) == 0 {
		return ""
	}
	slices.Sort(places)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(places), "\x01")))
	return hex.EncodeToString(sum[:16])
}
