package gemini

import (
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// maxName is how long the name of a tool may be.
const maxName = 64

// sentName returns the name by which the service knows a tool. A name that it
// would refuse, for its length or its characters, becomes one that it takes; the
// end of it is made of the whole name, so that no two become the same. It depends
// on nothing else, so that a call in the conversation has the name of its tool.
func sentName(name string) string {
	fits := strings.Map(func(r rune) rune {
		if isWord(r) || strings.ContainsRune(".:-", r) {
			return r
		}
		return '_'
	}, name)
	if fits == name && len(name) <= maxName && beginsAName(name) {
		return name
	}
	if !beginsAName(fits) {
		fits = "_" + fits
	}
	end := "_" + wire.Hash(name)[:10]
	return fits[:min(len(fits), maxName-len(end))] + end
}

// beginsAName reports whether a name begins as the service wants it: not with a
// digit, and not with a mark other than an underscore.
func beginsAName(name string) bool {
	return name != "" && isWord(rune(name[0])) && (name[0] < '0' || name[0] > '9')
}

func isWord(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
